"""What each measure does not see, as data: tables and property tests are made of it."""

# What can be done to a cloud x (n, d), the other side of a comparison left as it is.
CHANGES = {
    "shift": "one vector added to every row",
    "rotation": "all rows times an orthogonal matrix; a permutation of the columns is one",
    "scale": "all entries times one factor above 0",
    "row lengths": "every row times a factor above 0 of its own",
    "linear": "all rows times an invertible matrix",
}

_PLACE = ("shift", "rotation", "scale")
_COSINES = ("rotation", "scale", "row lengths")

# By the measure and, where these matter, its options. What stands here is exact up to rounding;
# what does not stand here is seen.
INVARIANCES: dict[str, tuple[str, ...]] = {
    "avg_sim": _COSINES,
    "rogue_dimensions": ("scale", "row lengths"),
    "pair_distances": _COSINES,
    "self_sim": _COSINES,
    "intra_sim": ("rotation", "scale"),
    "max_explainable_variance": ("rotation", "scale"),
    "anisotropy": ("rotation", "scale"),
    "anisotropy, center": _PLACE,
    "elongated_directions": _PLACE,
    "effective_rank": _PLACE,
    "effective_rank, raw": ("rotation", "scale"),
    "participation_ratio": _PLACE,
    "participation_ratio, bias_corrected": _PLACE,
    "iso_score": _PLACE,
    "iso_score, bias_corrected": _PLACE,
    "partition_isotropy": ("rotation",),
    "mean_squared_distance": ("shift", "rotation"),
    "intrinsic_dimension": _PLACE,
    "intrinsic_dimension, ph": ("shift", "scale"),  # it draws from rows in lexicographic order
    "between_share": _PLACE,
    "rsa": _COSINES,
    "mutual_knn": _COSINES,
    "cka": _PLACE,
    "cka, debiased": _PLACE,
    "minibatch_cka": _PLACE,
    "cca": (*_PLACE, "linear"),
    "svcca": _PLACE,
    "pwcca": ("shift", "scale"),
    "pwcca, of y": (*_PLACE, "linear"),
}
