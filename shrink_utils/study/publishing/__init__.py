"""Notebooks executed and stored; the course, the book and the hosted pair made of them."""
