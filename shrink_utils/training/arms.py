"""The arms of the ablation: what, if anything, is added to the task loss.

To add an arm, add a line to `ARMS`: its name and the options of its regularizer. That is a
`BarcodeRegularizer`, or the penalty that ``"penalty"`` names, one of `penalties.PENALTIES`. An
arm of options that exist leaves finished runs valid; a new penalty is new code, and they are run
again.
"""

from shrink_utils.names import known_name

Options = dict[str, str | int | float]

ARMS: dict[str, Options | None] = {
    "none": None,
    "prominent": {"selection": "prominent", "rule": "ratio"},  # the paper's prose
    "published": {"selection": "prominent", "rule": "published"},  # the paper's code
    "all": {"selection": "all"},
    # Beyond the paper: is topology what helps?
    "random": {"selection": "random", "rule": "ratio"},  # as many bars as prominent keeps
    "cosine": {"penalty": "cosine"},
    "isoscore": {"penalty": "isoscore"},
    "spectral": {"penalty": "spectral"},
    "sigreg": {"penalty": "sigreg"},
    # One ingredient of `prominent` replaced: the groups of rows, or the choice of bars.
    "whole_batch": {"penalty": "regrouped", "groups": "batch"},
    "shuffled_classes": {"penalty": "regrouped", "groups": "shuffled"},
    "longest": {"penalty": "ranked", "keep": "longest"},
    "shortest": {"penalty": "ranked", "keep": "shortest"},
}


def arm_options(arm: str) -> Options | None:
    """Options of an arm's regularizer; None for the arm without one.

    Raises
    ------
    ValueError
        No arm has that name.

    Examples
    --------
    >>> arm_options("sigreg")
    {'penalty': 'sigreg'}
    """
    return ARMS[known_name("arm", "arm", arm, ARMS)]
