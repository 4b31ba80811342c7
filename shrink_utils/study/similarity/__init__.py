"""How alike the layers of encoders are: measured and shown (chapter 03)."""
