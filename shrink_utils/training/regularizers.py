"""The regularizer that an arm of the ablation adds to the loss, as a module of torch alone."""

from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training.arms import arm_options
from shrink_utils.training.penalties import (
    AverageCosine,
    ClassPenalty,
    IsoScoreStar,
    SpectralEntropy,
)

PENALTIES: dict[str, type[ClassPenalty]] = {
    "cosine": AverageCosine,
    "isoscore": IsoScoreStar,
    "spectral": SpectralEntropy,
}


def make_regularizer(arm: str, *, weight: float = 1.0) -> BarcodeRegularizer | ClassPenalty | None:
    """Regularizer of an arm of `ARMS`, None for the arm without one; `weight` is its factor."""
    if (options := arm_options(arm)) is None:
        return None
    others = {name: value for name, value in options.items() if name != "penalty"}
    kind = PENALTIES[options["penalty"]] if "penalty" in options else BarcodeRegularizer
    return kind(**others, weight=weight)
