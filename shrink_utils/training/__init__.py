"""A regularization term as a part of the loss: the terms, the Trainer, what training changed."""

from shrink_utils.names import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
