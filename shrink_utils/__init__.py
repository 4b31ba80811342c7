"""Embedding geometry and the barcode regularizer of *Shrink the longest*, as a reproducible study.

Six rooms, imports only downward: ``study`` → ``training`` → ``models`` → ``text`` → ``topology``,
``geometry``. Nothing is imported here, so that ``shrink_utils.topology`` stays light to load.
"""

__version__ = "0.3.0"
