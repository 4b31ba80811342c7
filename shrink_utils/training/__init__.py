"""Fine-tuning with the regularizer as a part of the loss."""

from shrink_utils.rooms import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
