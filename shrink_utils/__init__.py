"""Embedding geometry and the barcode regularizer of *Shrink the longest*, as a reproducible study.

The library, imports only downward: ``training`` → ``models`` → ``geometry`` → ``topology``. Above
it the study: ``study``, and its texts in ``text``. Nothing is imported here, so that
``shrink_utils.topology`` stays light to load.
"""

__version__ = "0.3.0"
