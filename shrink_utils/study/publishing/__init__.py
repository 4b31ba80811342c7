"""Notebooks executed and stored, the course and the book that are made of them."""
