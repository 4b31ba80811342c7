"""The regularizer that an arm of the ablation adds to the loss, as a module of torch alone."""

from torch.nn import Module

from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training.arms import arm_options
from shrink_utils.training.ingredients import RankedBars, Regrouped
from shrink_utils.training.penalties import AverageCosine, IsoScoreStar, SIGReg, SpectralEntropy

PENALTIES: dict[str, type[Module]] = {
    "cosine": AverageCosine,
    "isoscore": IsoScoreStar,
    "spectral": SpectralEntropy,
    "sigreg": SIGReg,
    "ranked": RankedBars,
    "regrouped": Regrouped,
}


def make_regularizer(arm: str, *, weight: float = 1.0) -> Module | None:
    """Regularizer of an arm of `ARMS`, None for the arm without one; `weight` is its factor."""
    if (options := arm_options(arm)) is None:
        return None
    others = {name: value for name, value in options.items() if name != "penalty"}
    kind = PENALTIES[options["penalty"]] if "penalty" in options else BarcodeRegularizer
    return kind(**others, weight=weight)
