"""The arms of the ablation: what, if anything, is added to the task loss.

To add an arm, add a line to `ARMS`: its name and the options of its `BarcodeRegularizer`.
"""

from __future__ import annotations

from difflib import get_close_matches

__all__ = ["ARMS", "arm_options"]

ARMS: dict[str, dict[str, str] | None] = {
    "none": None,
    "prominent": {"selection": "prominent", "rule": "ratio"},  # the paper's prose
    "published": {"selection": "prominent", "rule": "published"},  # the paper's code
    "all": {"selection": "all"},
}


def arm_options(arm: str) -> dict[str, str] | None:
    """Options of an arm's regularizer; None for the arm without one.

    Raises
    ------
    ValueError
        If no arm has that name.
    """
    if arm not in ARMS:
        close = get_close_matches(arm, ARMS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"arm: no arm is called {arm!r}; known are {', '.join(ARMS)}.{hint}")
    return ARMS[arm]
