"""How far a word's vectors follow its context: SelfSim, IntraSim, MEV, each beside its null."""

from shrink_utils.geometry.contextuality.intrasim import IntraSim, intra_sim
from shrink_utils.geometry.contextuality.mev import (
    MaxExplainableVariance,
    max_explainable_variance,
)
from shrink_utils.geometry.contextuality.selfsim import SelfSim, self_sim

__all__ = [
    "IntraSim",
    "MaxExplainableVariance",
    "SelfSim",
    "intra_sim",
    "max_explainable_variance",
    "self_sim",
]
