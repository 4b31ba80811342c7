"""What the room refuses: the call, and what its one line says."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from shrink_utils import geometry as g
from shrink_utils.geometry.similarity import MEASURES
from tests.geometry.conftest import ROW_FUNCTIONS

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 5)), RNG.normal(size=(12, 4))
THREE = np.repeat([0, 1, 2], 4)
NAN, ZEROS, MASKED = X.copy(), X.copy(), np.ma.masked_array(X, mask=False)
NAN[3, 2], MASKED[3, 1] = math.nan, np.ma.masked
ZEROS[[4, 7]] = 0
HUGE = X.clip(-1, 1) * 1.7e308
ONES = np.full((12, 5), 0.1)
GRID = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
LINE = np.linspace(-1, 1, 200)[:, None] * RNG.normal(size=7)
ALL_BUT_ONE = np.tile(np.float16([-0.3625, 1.824]), (6, 1))
ALL_BUT_ONE[4] = -0.7627, 2.803
ORTHOCENTRE = np.array([[0.0, 0], [4, 0], [1, 3], [1, 1]])  # each side orthogonal to its height
FLAT = RNG.normal(size=(40, 3)) @ RNG.normal(size=(3, 6))  # varies in three directions
CANCEL = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]
CENTRES = np.array([[30.0, 0, 0, 0, 0], [0, 30, 0, 0, 0], [1e6] * 5])

ROWS = [
    (NAN, r"x of shape \(12, 5\) has NaN or infinity in 1 row"),
    (MASKED, r"x is a masked array .*\(12, 5\) with 1 masked value"),
    (np.zeros(5), r"x must have two axes .* got shape \(5,\)"),
    (np.zeros((2, 3, 4)), r"x must have two axes .* got shape \(2, 3, 4\)"),
    (np.zeros((0, 4)), "x needs at least"),
    (np.zeros((4, 0)), "x needs at least"),
]
WITHOUT_VARIANCE = [
    lambda x: g.anisotropy(x, center=True),
    g.participation_ratio,
    lambda x: g.participation_ratio(x, bias_corrected=True),
    g.iso_score,
    g.effective_rank,
    g.elongated_directions,
    lambda x: g.between_share(x, THREE),
    *(
        lambda x, name=name: g.similarity_grid(name, [Y], [x])
        for name in MEASURES
        if name not in ("rsa", "mutual_knn")
    ),
]
UNITS = {"self_sim": g.self_sim, "mev": g.max_explainable_variance}
FITTED, AXES = g.procrustes(X, Y), g.principal_axes(X)


def _with_groups(groups):
    return lambda: g.avg_sim(X, groups=groups)


def _words(words, x=X[:4], **options):
    return lambda: g.self_sim(x, words, **options)


REFUSED = [
    *((lambda f=f, x=x: f(x), match) for f in ROW_FUNCTIONS for x, match in ROWS),
    *((lambda f=f: f(ONES), "no variance") for f in WITHOUT_VARIANCE),
    *(
        (lambda f=f: f(ZEROS), r"\(12, 5\) has 2 zero row.* first at row 4")
        for f in (g.avg_sim, g.rogue_dimensions, g.pair_distances, lambda x: g.rsa(Y, x))
    ),
    *(
        (lambda f=f: f(X[:1]), r"at least 2 row.* got shape \(1, 5\)")
        for f in (g.avg_sim, g.rogue_dimensions, g.mean_squared_distance, g.elongated_directions)
    ),
    *(
        (lambda f=f: f(HUGE), "leave float64; take them in another unit")
        for f in (
            g.mean_squared_distance,
            lambda x: g.affine(Y, x),
            lambda x: g.procrustes(Y, x, scaling=True),
            lambda x: g.procrustes(x, Y)(-x),
        )
    ),
    # Labels.
    (_with_groups([0, 1]), "groups needs one label per row: 12 rows, got shape"),
    (_with_groups(["a"] * 12), "groups needs at least 2 different labels"),
    (_with_groups(np.ma.masked_array(THREE, mask=THREE == 1)), "groups is a masked array"),
    (lambda: g.avg_sim_pseudo_values(X[:8], groups=THREE[:8]), "at least 3 different labels"),
    (lambda: g.within_classes(X, THREE[:3]), "labels"),
    # NumPy reads [1, "a"] as two texts, so that 1 and "1" would be one word.
    (_words(("1", 1, "1", 1), min_count=2), "words mixes labels that cannot be ordered"),
    (_words(pd.array([0, 1, None, 1])), "words mixes labels that cannot be ordered: .*NA"),
    (_words(THREE, X, sentences=[1, 2]), "sentences needs one label per row"),
    (_words(THREE, X, sentences=[math.nan] * 12), r"sentences of shape .* NaN"),
    (_words(THREE, X, sentences=THREE % 2, min_count=3), "in 3 different sent.*; lower min_count"),
    *(
        (_with_groups(kind([other, nan] * 6)), r"groups of shape \(12,\) has NaN labels")
        for kind in (list, pd.Series)
        for other, nan in (("a", math.nan), (1.0, np.float32("nan")))
    ),
    # Words and sentences.
    *((lambda f=f: f(X, THREE[1:]), "needs one label per row: 12 rows") for f in UNITS.values()),
    *((lambda f=f: f(X, THREE, min_count=9), "stands in 9 rows or more") for f in UNITS.values()),
    *((lambda f=f: f(X, THREE, min_count=1), "must be at least 2.* got 1") for f in UNITS.values()),
    (lambda: g.intra_sim(X, THREE, n_permutations=0), "n_permutations must be at least 1, got 0"),
    (lambda: g.intra_sim(np.eye(3), [0, 0, 0]), "at least 2 sentences, .* got 1 of at most 3"),
    (lambda: g.intra_sim(np.eye(3), [0, 1, 2]), "one of them of 2 .* got 3 of at most 1"),
    (
        lambda: g.intra_sim([[1.0, 0], [1, 0], [-1, 0]], ["a", "b", "b"]),
        "the vectors of sentence 'b' have mean zero",
    ),
    (
        lambda: g.intra_sim(CANCEL, [0, 0, 1, 1]),
        "rows dealt at random to a sentence have mean zero",
    ),
    (
        lambda: g.max_explainable_variance(X * (THREE > 0)[:, None], THREE, min_count=2),
        "vectors, its own or dealt, are all zero",
    ),
    # One cloud.
    *(
        (lambda k=k: g.anisotropy(np.ones((3, 8)), k=k), rf"k must be .* = 3, got {k} .*\(3, 8\)")
        for k in (0, 4)
    ),
    *(
        (lambda f=f, x=x: f(x, bias_corrected=True), f"undefined for these {len(x)} rows")
        for f in (g.participation_ratio, g.iso_score)
        for x in (np.eye(4), np.eye(100), ALL_BUT_ONE, ORTHOCENTRE)
    ),
    (lambda: g.iso_score(np.arange(5.0)[:, None]), r"2 column.* got shape \(5, 1\)"),
    (lambda: g.iso_score(X[:3], bias_corrected=True), r"at least 4 row.* got shape \(3, 5\)"),
    (lambda: g.pair_distances(X, n_pairs=0), "n_pairs must be at least 1, got 0"),
    *(
        (lambda m=m, n=n: g.intrinsic_dimension(np.repeat(np.eye(n - 1), 3, 0), method=m), match)
        for m, n in (("twonn", 4), ("ph", 32))
        for match in [rf"has {n - 1} distinct row.* method \"{m}\" needs at least {n}"]
    ),
    (lambda: g.intrinsic_dimension(GRID), r"36 distinct rows .* equally far \(a lattice\)"),
    (lambda: g.intrinsic_dimension(LINE), r"equally far \(a lattice\)"),  # rounding breaks its ties
    (
        lambda: g.intrinsic_dimension(np.append(np.arange(20.0) ** 2 * 1e-200, 1.0)[:, None]),
        "nearer than float64 can tell",
    ),
    (lambda: g.intrinsic_dimension(X, method="mle"), 'method must be "twonn" or "ph", got \'mle\''),
    # Two clouds.
    *(
        (lambda m=m: g.similarity_grid(m, [X], [X, Y[:-1]]), r"xs\[0\] beside ys\[1\]: .*same samp")
        for m in MEASURES
        if m != "mutual_knn"  # which first asks for more rows
    ),
    (lambda: g.mutual_knn(X, Y[:-1], k=2), "same samples as rows, got 12 and 11 rows"),
    (lambda: g.mutual_knn(X[:6], np.eye(6), k=2), "y has all 6 rows at the same cosine distance"),
    *(
        (lambda k=k: g.mutual_knn(X, Y, k=k), f"k must lie between 1 and n − 2 = 10, got {k}")
        for k in (0, 11)
    ),
    (lambda: g.calibrated_maximum("cka", [X], [Y], permutations=0), "permutations must be at lea"),
    (lambda: g.similarity_grid("cka", [X], [Y, ONES]), r"ys\[1\] of shape \(12, 5\) has no varian"),
    (lambda: g.similarity_grid("pwca", [X], [Y]), "no measure 'pwca', did you mean 'pwcca'"),
    (lambda: g.similarity_grid("cka", []), "at least one layer each"),
    *(
        (lambda v=v: g.svcca(X, Y, variance=v), "variance must lie above 0 and not above 1")
        for v in (0.0, 1.1, math.nan)
    ),
    *(
        (lambda y=y: g.rsa(X[:6], y), "y has all 15 pairs of its 6 rows at the same cosine")
        for y in (np.eye(6), np.ones((6, 2)), np.arange(1.0, 7.0)[:, None])
    ),
    (lambda: g.cka(X[:3], Y[:3], debiased=True), r"x needs at least 4 row.* got shape \(3, 5\)"),
    (lambda: g.minibatch_cka([]), "batches is empty"),
    (lambda: g.minibatch_cka([(X, Y), (X[:3], Y[:3])]), r"x needs at least 4 row.*\(3, 5\)"),
    (lambda: g.minibatch_cka([(X, Y[:9])]), "got 12 and 9 rows"),
    *((lambda c=c: g.cka_distance(c), "ckas") for c in ([1.001], [-1.1], [0.5, math.nan])),
    *(
        (lambda f=f: f(X, Y[:8]), "same samples as rows, got 12 and 8 rows")
        for f in (g.procrustes, g.affine)
    ),
    (lambda: FITTED(np.ones((3, 4))), r"x needs 5 columns, got shape \(3, 4\)"),
    (lambda: FITTED.explained(X[:3], Y[:2]), r"y needs shape \(3, 4\) to go with x, got \(2, 4\)"),
    (
        lambda: g.procrustes(*[[[1.0, 0.0], [-1.0, 0.0]]] * 2).explained(
            np.eye(2), np.zeros((2, 2))
        ),
        "does not differ from the fitted mean",
    ),
    # Directions.
    *(
        (lambda o=o: AXES.treatment(**o), "must not be negative")
        for o in ({"remove": -1}, {"remove": 1, "skip": -1})
    ),
    (lambda: g.principal_axes(ONES).treatment(remove=1), "varies in 0 direction"),
    (
        lambda: g.principal_axes(FLAT).treatment(remove=2, skip=2),
        "remove 2 after skip 2: .* in 3 dir",
    ),
    (lambda: g.principal_axes(X, centres=CENTRES), r"nearest to 1 of 3, the first is centre 2"),
    (
        lambda: AXES.treatment()(np.ones((2, 3))),
        r"x of shape \(2, 3\) has other columns .* \(1, 5\)",
    ),
    (lambda: g.principal_axes(X, centres=np.ones((2, 4))), "other columns"),
    *(
        (lambda r=r: g.elongated_directions(X, ratio=r), "ratio must be above 0")
        for r in (0, -1.0, math.nan)
    ),
]


@pytest.mark.parametrize(("call", "match"), REFUSED)
def test_what_has_no_answer_is_refused_in_one_line(call, match):
    with pytest.raises(ValueError, match=match) as error:
        call()
    assert "\n" not in str(error.value)
