"""Notebooks executed and stored; the course and the book made of them."""
