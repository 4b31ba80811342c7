"""Topology on language: attention graphs, PH dimension, RTD-Lite, lives of neighbourhoods (12)."""
