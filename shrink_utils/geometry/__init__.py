"""Geometry of embedding clouds: pure functions of matrices whose rows are samples."""

from shrink_utils.geometry.contextuality import (
    intra_sim as intra_sim,
    max_explainable_variance as max_explainable_variance,
    self_sim as self_sim,
)
from shrink_utils.geometry.dimension import intrinsic_dimension as intrinsic_dimension
from shrink_utils.geometry.isotropy import (
    anisotropy as anisotropy,
    avg_sim as avg_sim,
    avg_sim_pseudo_values as avg_sim_pseudo_values,
    between_share as between_share,
    effective_rank as effective_rank,
    elongated_directions as elongated_directions,
    iso_score as iso_score,
    mean_squared_distance as mean_squared_distance,
    pair_distances as pair_distances,
    participation_ratio as participation_ratio,
    partition_isotropy as partition_isotropy,
    rogue_dimensions as rogue_dimensions,
    within_classes as within_classes,
)
from shrink_utils.geometry.maps import (
    affine as affine,
    principal_axes as principal_axes,
    procrustes as procrustes,
)
from shrink_utils.geometry.search import (
    all_but_the_top as all_but_the_top,
    random_rotation as random_rotation,
    search as search,
    whitening as whitening,
)
from shrink_utils.geometry.similarity import (
    MEASURES as MEASURES,
    calibrated_maximum as calibrated_maximum,
    cca as cca,
    cka as cka,
    cka_distance as cka_distance,
    mutual_knn as mutual_knn,
    pwcca as pwcca,
    rsa as rsa,
    similarity_grid as similarity_grid,
    svcca as svcca,
)
