"""What is run, run-or-load, verdicts, and what people look at."""

from shrink_utils.names import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
