"""What a drawn figure becomes: a table of its marks, a dark picture."""
