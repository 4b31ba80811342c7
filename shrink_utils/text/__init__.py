"""The texts of the study: verified sources, labelled tasks, sentences for diagnostics."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
