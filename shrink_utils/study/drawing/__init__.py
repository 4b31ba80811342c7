"""What the figures are made of: their style, dark pages, what their marks say, and widgets."""
