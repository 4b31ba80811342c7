"""What the house style of the figures is made of."""
