"""What is run, run-or-load, verdicts, and what people look at."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
