"""One kind of progress bar: live where somebody watches, sparse in a log, none when asked."""

from __future__ import annotations

import os
import sys

from tqdm.auto import tqdm

__all__ = ["progress_bar"]


def progress_bar(*, total: int, unit: str, description: str = "") -> tqdm:
    """A bar that counts to `total`, to be used in a ``with`` statement.

    There is none when `total` is 0, and none under ``TQDM_DISABLE=1``, which is how notebooks are
    stored: in a notebook, tqdm by itself does not heed that variable.

    Parameters
    ----------
    total : int
        What is to be done.
    unit : str
        What is counted, such as ``"step"``.
    description : str
        Stands before the bar.
    """
    watched = sys.stderr.isatty() or "ipykernel" in sys.modules
    return tqdm(
        total=total,
        unit=unit,
        desc=description or None,
        mininterval=0.5 if watched else 15.0,
        maxinterval=1.0 if watched else 30.0,
        dynamic_ncols=True,
        disable=total == 0 or os.environ.get("TQDM_DISABLE", "0") not in ("", "0"),
    )
