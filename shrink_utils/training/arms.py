"""The arms of the ablation: what, if anything, is added to the task loss.

To add an arm, add a line to `ARMS`: its name and the options of its `BarcodeRegularizer`.
"""

from __future__ import annotations

from shrink_utils.names import unknown_name

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
        raise unknown_name("arm", "arm", arm, ARMS)
    return ARMS[arm]
