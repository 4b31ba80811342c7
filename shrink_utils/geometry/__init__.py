"""Geometry of embedding clouds: pure functions of matrices whose rows are samples."""

from shrink_utils.geometry.dimension import intrinsic_dimension
from shrink_utils.geometry.isotropy import (
    Estimate,
    avg_sim,
    mean_squared_distance,
    pair_distances,
    partition_isotropy,
    rogue_dimensions,
)
from shrink_utils.geometry.spectrum import (
    anisotropy,
    effective_rank,
    iso_score,
    participation_ratio,
)

__all__ = [
    "Estimate",
    "anisotropy",
    "avg_sim",
    "effective_rank",
    "intrinsic_dimension",
    "iso_score",
    "mean_squared_distance",
    "pair_distances",
    "participation_ratio",
    "partition_isotropy",
    "rogue_dimensions",
]
