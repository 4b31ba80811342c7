"""The arms of the ablation: what, if anything, is added to the task loss.

To add an arm, add a line to `ARMS`: its name and the options of its regularizer.
"""

from __future__ import annotations

from difflib import get_close_matches

from shrink_utils.topology import BarcodeRegularizer

__all__ = ["ARMS", "make_regularizer"]

ARMS: dict[str, dict[str, str] | None] = {
    "none": None,
    "prominent": {"selection": "prominent", "rule": "ratio"},  # the paper's prose
    "published": {"selection": "prominent", "rule": "published"},  # the paper's code
    "all": {"selection": "all"},
}


def make_regularizer(arm: str, *, weight: float = 1.0) -> BarcodeRegularizer | None:
    """Regularizer of an arm; None for the arm without one.

    Parameters
    ----------
    arm : str
        A name in `ARMS`.
    weight : float
        Factor of the summed class entropies in the loss.

    Raises
    ------
    ValueError
        If no arm has that name.
    """
    if arm not in ARMS:
        close = get_close_matches(arm, ARMS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"arm: no arm is called {arm!r}; known are {', '.join(ARMS)}.{hint}")
    options = ARMS[arm]
    return None if options is None else BarcodeRegularizer(**options, weight=weight)
