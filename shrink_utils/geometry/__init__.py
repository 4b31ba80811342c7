"""Geometry of embedding clouds: pure functions of matrices whose rows are samples."""

from shrink_utils.geometry.alignment import Alignment, affine, procrustes
from shrink_utils.geometry.bootstrap import BootstrapInterval, bootstrap_interval
from shrink_utils.geometry.cca import cca, pwcca, svcca
from shrink_utils.geometry.classes import between_share, within_classes
from shrink_utils.geometry.contextuality import (
    IntraSim,
    MaxExplainableVariance,
    SelfSim,
    intra_sim,
    max_explainable_variance,
    self_sim,
)
from shrink_utils.geometry.dimension import intrinsic_dimension
from shrink_utils.geometry.isotropy import (
    Estimate,
    avg_sim,
    avg_sim_pseudo_values,
    mean_squared_distance,
    pair_distances,
    partition_isotropy,
    rogue_dimensions,
)
from shrink_utils.geometry.local import (
    PrincipalAxes,
    Treatment,
    elongated_directions,
    nearest_centre,
    principal_axes,
)
from shrink_utils.geometry.similarity import cka, cka_distance, minibatch_cka, rsa, similarity_grid
from shrink_utils.geometry.spectrum import (
    anisotropy,
    effective_rank,
    iso_score,
    participation_ratio,
)

__all__ = [
    "Alignment",
    "BootstrapInterval",
    "Estimate",
    "IntraSim",
    "MaxExplainableVariance",
    "PrincipalAxes",
    "SelfSim",
    "Treatment",
    "affine",
    "anisotropy",
    "avg_sim",
    "avg_sim_pseudo_values",
    "between_share",
    "bootstrap_interval",
    "cca",
    "cka",
    "cka_distance",
    "effective_rank",
    "elongated_directions",
    "intra_sim",
    "intrinsic_dimension",
    "iso_score",
    "max_explainable_variance",
    "mean_squared_distance",
    "minibatch_cka",
    "nearest_centre",
    "pair_distances",
    "participation_ratio",
    "partition_isotropy",
    "principal_axes",
    "procrustes",
    "pwcca",
    "rogue_dimensions",
    "rsa",
    "self_sim",
    "similarity_grid",
    "svcca",
    "within_classes",
]
