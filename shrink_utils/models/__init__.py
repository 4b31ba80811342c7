"""Encoders: load one, read its layers, pool its tokens."""

from shrink_utils.names import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
