"""The door of the room: what is read, and what is refused, each with its one line."""

import math
from functools import partial as call

import numpy as np
import pandas as pd
import pytest
import torch
from torch.autograd import forward_ad

from shrink_utils import geometry as g
from shrink_utils.geometry.similarity.grid import MEASURES
from shrink_utils.geometry.streaming import IsoScore
from shrink_utils.topology import BarcodeRegularizer, h0_barcode, persistent_entropy
from shrink_utils.training.penalties import Regrouped, SIGReg
from tests.geometry.conftest import ROW_FUNCTIONS

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 5)), RNG.normal(size=(12, 4))
THREE = np.repeat([0, 1, 2], 4)
MASKED_LABELS = np.ma.masked_array(THREE, mask=THREE == 1)
NAN, ZEROS, MASKED = X.copy(), X.copy(), np.ma.masked_array(X, mask=False)
NAN[3, 2], MASKED[3, 1] = math.nan, np.ma.masked
ZEROS[[4, 7]] = 0
HUGE = X.clip(-1, 1) * 1.7e308
ONES = np.full((12, 5), 0.1)
GRID = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
NEAR = np.append(np.arange(20.0) ** 2 * 1e-200, 1.0)[:, None]
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
OF_COSINES = [g.avg_sim, g.rogue_dimensions, g.pair_distances, call(g.rsa, Y)]
OF_TWO_ROWS = [g.avg_sim, g.rogue_dimensions, g.mean_squared_distance, g.elongated_directions]
OF_VARIANCE = [
    call(g.anisotropy, center=True),
    g.participation_ratio,
    call(g.participation_ratio, bias_corrected=True),
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
UNITS = [g.self_sim, g.max_explainable_variance]
FITTED, AXES = g.procrustes(X, Y), g.principal_axes(X)
LINE_FIT = g.procrustes(*[[[1.0, 0.0], [-1.0, 0.0]]] * 2)
WORDS = call(g.self_sim, X)
SAME = "same samples as rows, got 12 and 8 rows"
CORRECTED = {"bias_corrected": True}

REFUSED = [
    *((call(f, x), match) for f in ROW_FUNCTIONS for x, match in ROWS),
    *((call(f, ONES), "no variance") for f in OF_VARIANCE),
    *((call(f, ZEROS), r"\(12, 5\) has 2 zero row.* first at row 4") for f in OF_COSINES),
    *((call(f, X[:1]), r"at least 2 row.* got shape \(1, 5\)") for f in OF_TWO_ROWS),
    *(
        (f, "leave float64; take them in another unit")
        for f in (
            call(g.mean_squared_distance, HUGE),
            call(g.affine, Y, HUGE),
            call(g.procrustes, Y, HUGE, scaling=True),
            call(g.procrustes, HUGE, Y),
            call(FITTED, HUGE),
        )
    ),
    # Labels.
    (call(g.avg_sim, X, groups=[0, 1]), "groups needs one label per row: 12 rows, got shape"),
    (call(g.avg_sim, X, groups=["a"] * 12), "groups needs at least 2 different labels"),
    (call(g.avg_sim, X, groups=MASKED_LABELS), "groups is a masked array"),
    (call(g.avg_sim_pseudo_values, X[:8], groups=THREE[:8]), "at least 3 different labels"),
    (call(g.within_classes, X, THREE[:3]), "labels"),
    # NumPy reads [1, "a"] as two texts, so that 1 and "1" would be one word.
    (call(WORDS, ("1", 1) * 6, min_count=2), "words mixes labels that cannot be ordered"),
    (call(WORDS, pd.array([0, 1, None] * 4)), "words mixes labels that cannot be ordered: .*NA"),
    (call(WORDS, THREE, sentences=[1, 2]), "sentences needs one label per row"),
    (call(WORDS, THREE, sentences=[math.nan] * 12), r"sentences of shape .* NaN"),
    (call(WORDS, THREE, sentences=THREE % 2, min_count=3), "in 3 different .*; lower min_count"),
    *(
        (call(g.avg_sim, X, groups=kind([other, nan] * 6)), r"groups of shape \(12,\) has NaN")
        for kind in (list, pd.Series)
        for other, nan in (("a", math.nan), (1.0, np.float32("nan")))
    ),
    # Words and sentences.
    *((call(f, X, THREE[1:]), "needs one label per row: 12 rows") for f in UNITS),
    *((call(f, X, THREE, min_count=9), "stands in 9 rows or more") for f in UNITS),
    *((call(f, X, THREE, min_count=1), "min_count must be .*2 or more; got 1") for f in UNITS),
    (call(g.intra_sim, X, THREE, n_permutations=0), "n_permutations must be .*1 or more"),
    (call(g.intra_sim, np.eye(3), [0, 0, 0]), "at least 2 sentences, .* got 1 of at most 3"),
    (call(g.intra_sim, np.eye(3), [0, 1, 2]), "one of them of 2 .* got 3 of at most 1"),
    (call(g.intra_sim, CANCEL[:3], ["a", "b", "b"]), "the vectors of sentence 'b' have mean zero"),
    (call(g.intra_sim, CANCEL, [0, 0, 1, 1]), "rows dealt at random to a sentence have mean zero"),
    (
        call(g.max_explainable_variance, X * (THREE > 0)[:, None], THREE, min_count=2),
        "vectors, its own or dealt, are all zero",
    ),
    # One cloud.
    *((call(g.anisotropy, X[:3], k=k), rf"k must be .* = 3, got {k} .*\(3, 5\)") for k in (0, 4)),
    *(
        (call(f, x, **CORRECTED), f"undefined for these {len(x)} rows")
        for f in (g.participation_ratio, g.iso_score)
        for x in (np.eye(4), np.eye(100), ALL_BUT_ONE, ORTHOCENTRE)
    ),
    (call(g.iso_score, X[:, :1]), r"2 column.* got shape \(12, 1\)"),
    (call(g.iso_score, X[:3], **CORRECTED), r"at least 4 row.* got shape \(3, 5\)"),
    (call(g.pair_distances, X, n_pairs=0), "n_pairs must be a whole number, 1 or more"),
    *(
        (call(g.intrinsic_dimension, np.repeat(np.eye(n - 1), 3, 0), method=m), match)
        for m, n in (("twonn", 4), ("ph", 32))
        for match in [rf"has {n - 1} distinct row.* method \"{m}\" needs at least {n}"]
    ),
    (call(g.intrinsic_dimension, GRID), r"36 distinct rows .* equally far \(a lattice\)"),
    (call(g.intrinsic_dimension, LINE), r"equally far \(a lattice\)"),  # rounding breaks its ties
    (call(g.intrinsic_dimension, NEAR), "nearer than float64 can tell"),
    (call(g.intrinsic_dimension, X, method="mle"), "method: no method 'mle' .*twonn, ph"),
    # Options of another type.
    *(
        (f, match)
        for f, match in [
            (call(g.anisotropy, X, k=2.0), r"k must be a whole number, 0 or more; got 2\.0"),
            (call(g.anisotropy, X, k="2"), "k must be a whole number, 0 or more; got '2'"),
            (call(g.mutual_knn, X, Y, k=2.0), r"k must be a whole number, 0 or more; got 2\.0"),
            (call(AXES.treatment, remove=1.0), r"remove must be a whole number.* got 1\.0"),
            (call(AXES.treatment, remove=1, skip="1"), "skip must be a whole number.* got '1'"),
            (call(g.svcca, X, Y, variance="0.9"), "variance must lie above 0 .* got '0.9'"),
            (call(g.elongated_directions, X, ratio=None), "ratio must be a number .* got None"),
            (call(g.pair_distances, X, n_pairs=9.0), "n_pairs must be a whole number"),
            (call(WORDS, THREE, min_count=2.0), "min_count must be a whole number"),
            (
                call(IsoScore(5).set_dtype, torch.float16),
                "keeps sums in float64, which torch.float1",
            ),
        ]
    ),
    # Two clouds.
    *(
        (call(g.similarity_grid, m, [X], [X, Y[:-1]]), r"xs\[0\] beside ys\[1\]: .*same samp")
        for m in MEASURES
        if m != "mutual_knn"  # which first asks for more rows
    ),
    (call(g.similarity_grid, "cka", [X], [Y, ONES]), r"ys\[1\] of shape \(12, 5\) has no varian"),
    (call(g.similarity_grid, "pwca", [X], [Y]), "no measure 'pwca', did you mean 'pwcca'"),
    (call(g.similarity_grid, "cka", []), "at least one layer each"),
    (call(g.calibrated_maximum, "cka", [X], [Y], permutations=0), "permutations must be .*1 or"),
    (call(g.mutual_knn, X, Y[:8], k=2), SAME),
    (call(g.mutual_knn, X[:6], np.eye(6), k=2), "y has all 6 rows at the same cosine distance"),
    *((call(g.mutual_knn, X, Y, k=k), f"1 and n − 2 = 10, got {k}") for k in (0, 11)),
    *((call(g.svcca, X, Y, variance=v), "variance must lie above 0") for v in (0.0, 1.1, math.nan)),
    *(
        (call(g.rsa, X[:6], y), "y has all 15 pairs of its 6 rows at the same cosine")
        for y in (np.eye(6), np.ones((6, 2)), np.arange(1.0, 7.0)[:, None])
    ),
    (call(g.cka, X[:3], Y[:3], debiased=True), r"x needs at least 4 row.* got shape \(3, 5\)"),
    (call(g.minibatch_cka, []), "batches is empty"),
    (call(g.minibatch_cka, [(X, Y), (X[:3], Y[:3])]), r"x needs at least 4 row.*\(3, 5\)"),
    (call(g.minibatch_cka, [(X, Y[:8])]), SAME),
    *((call(g.cka_distance, c), "ckas") for c in ([1.001], [-1.1], [0.5, math.nan])),
    *((call(f, X, Y[:8]), SAME) for f in (g.procrustes, g.affine)),
    (call(FITTED, X[:, 1:]), r"x needs 5 columns, got shape \(12, 4\)"),
    (call(FITTED.explained, X[:3], Y[:2]), r"y needs shape \(3, 4\) to go with x, got \(2, 4\)"),
    (call(LINE_FIT.explained, np.eye(2), np.zeros((2, 2))), "does not differ from the fitted mean"),
    # Directions.
    (call(AXES.treatment, remove=-1), "remove must be a whole number, 0 or more; got -1"),
    (call(AXES.treatment, remove=1, skip=-1), "skip must be a whole number, 0 or more; got -1"),
    (call(g.principal_axes(ONES).treatment, remove=1), "varies in 0 direction"),
    (call(g.principal_axes(FLAT).treatment, remove=2, skip=2), "2 after skip 2: .* in 3 dir"),
    (call(g.principal_axes, X, centres=CENTRES), r"nearest to 1 of 3, the first is centre 2"),
    (call(AXES.treatment(), X[:, 1:]), r"x of shape \(12, 4\) has other columns .* \(1, 5\)"),
    (call(g.principal_axes, X, centres=np.ones((2, 4))), "other columns"),
    *((call(g.elongated_directions, X, ratio=r), "above 0") for r in (0, -1.0, math.nan)),
]


@pytest.mark.parametrize(("refused", "match"), REFUSED)
def test_what_has_no_answer_is_refused_in_one_line(refused, match):
    with pytest.raises(ValueError, match=match) as error:
        refused()
    assert "\n" not in str(error.value)


def _cloud(n=12, d=5, **options):
    return torch.randn(n, d, dtype=torch.float64, **options)


OF_BARS = [
    lambda x: h0_barcode(x).lengths.detach(),
    lambda x: BarcodeRegularizer("all")(x, pd.Series(THREE)).loss.detach(),
    lambda x: persistent_entropy(torch.as_tensor(g.pair_distances(x)).numpy()[::-1]),
]


@pytest.mark.parametrize("function", [*ROW_FUNCTIONS, *OF_BARS])
def test_every_view_of_the_same_numbers_gives_the_same_result(function):
    x = _cloud().float()  # exact in every format below
    read_only = x.numpy().copy()
    read_only.flags.writeable = False
    expected = function(x)
    views = [
        x.double(),
        x.numpy(),
        x.tolist(),
        pd.DataFrame(x.numpy()),
        read_only,
        np.asfortranarray(x.numpy()),
        np.flip(np.flip(x.numpy(), axis=1).copy(), axis=1),  # negative strides
        x.numpy().astype(">f4"),  # the other byte order
        x.numpy().astype(np.longdouble),
        list(x),
        x.clone().requires_grad_(),
        torch.inference_mode()(x.clone)(),
    ]
    rounding = 1e-6 if function in OF_BARS else 1e-12  # bars keep the dtype that they are given
    for view in views:
        found = function(view)
        torch.testing.assert_close(
            found, expected, rtol=rounding, atol=rounding, check_dtype=function not in OF_BARS
        )
    assert torch.equal(views[0], x.double()) and np.array_equal(x, read_only)  # left unchanged


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("function", ROW_FUNCTIONS)
def test_low_precision_input_is_computed_in_float64(function, dtype):
    x = (_cloud() * 100 + 1e3).to(dtype)  # squares overflow float16
    torch.testing.assert_close(function(x), function(x.double()), rtol=0, atol=0)


def test_labels_may_be_any_tensor():
    x, labels = _cloud(4), torch.tensor([0.0, 0, 1, 1])
    expected = g.avg_sim(x, groups=labels.tolist()).value
    kinds = labels.bfloat16(), labels.clone().requires_grad_(), labels.int(), labels.to_sparse()
    for given in kinds:
        assert g.avg_sim(x, groups=given).value == expected


def _dual(function, x):
    with forward_ad.dual_level():
        return function(forward_ad.make_dual(x, x))


def _exported(function, x):
    module = torch.nn.Module()
    module.forward = function
    return torch.export.export(module, (x,), strict=False)


TRANSFORMED = [
    lambda f, x: torch.func.grad(lambda z: f(z).sum())(x),
    lambda f, x: torch.func.vmap(f)(x[None].repeat(2, 1, 1)),
    lambda f, x: torch.func.jvp(f, (x,), (x,)),
    _dual,
    _exported,
    lambda f, x: torch.jit.trace(f, x),
]


@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize("transformed", TRANSFORMED)
@pytest.mark.parametrize("function", [g.anisotropy, g.avg_sim, g.intrinsic_dimension, *OF_BARS[:2]])
def test_transformations_that_hide_values_are_refused_by_name(function, transformed):
    """torch.func gave gradients of zero, a trace the tree of its example, the others tracebacks."""
    with pytest.raises(ValueError, match=r"shrink reads values.* loss\.backward\(\)") as error:
        transformed(function, _cloud())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("function", [*ROW_FUNCTIONS, *OF_BARS[:2]])
@pytest.mark.parametrize(
    ("kind", "match"),
    [
        (lambda x: x.to("meta"), "in a dense tensor.* on meta"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "dense.*torch.qint8"),
        (lambda x: x.to_mkldnn(), "in a dense tensor.*torch._mkldnn"),
        (lambda x: torch.nested.nested_tensor([x, x]), "in a dense tensor"),
        (lambda x: torch.nested.nested_tensor([x, x], layout=torch.jagged), "in a dense tensor"),
        (lambda x: x[:, :0], r"needs at least .* [12] column\(s\), got shape \(12, 0\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*nested tensors is in prototype")
@pytest.mark.filterwarnings("ignore:.*quant")
def test_tensors_that_cannot_be_read_are_refused_by_their_kind(function, kind, match):
    if function is OF_BARS[0] and "column" in match:
        pytest.skip("points without coordinates are one point: bars of length 0")
    with pytest.raises(ValueError, match=match):
        function(kind(_cloud().float()))


@pytest.mark.parametrize("function", [*ROW_FUNCTIONS, *OF_BARS[:2]])
def test_a_lazily_negated_tensor_is_read(function):
    x = _cloud()
    negated = torch.complex(x, -x).conj().imag
    assert negated.is_neg()
    torch.testing.assert_close(function(negated), function(x), rtol=1e-12, atol=1e-12)


OF_PAIRS = [g.rsa, g.mutual_knn, g.cka, g.svcca, g.pwcca, lambda x, y: g.affine(x, y)(x)]
OF_DRAWS = [BarcodeRegularizer("random"), Regrouped("shuffled"), SIGReg()]


@pytest.mark.parametrize(
    "function",
    [
        *ROW_FUNCTIONS,
        *OF_BARS[:2],
        *(lambda x, f=f: f(x, Y[:, :3].repeat(2, axis=0) + x.numpy()[:, :3]) for f in OF_PAIRS),
        *(lambda x, f=f: f(x, torch.arange(24, device="cpu") % 2).loss for f in OF_DRAWS),
    ],
)
def test_a_default_device_changes_nothing(function):
    """As of "cuda", whose tensors then meet those on the CPU; "meta" stands for it."""
    x = _cloud(24)
    if function in OF_BARS:
        x = x[:12]
    torch.manual_seed(1)
    expected = function(x)
    torch.manual_seed(1)
    torch.set_default_device("meta")
    try:
        found = function(x)
    finally:
        torch.set_default_device(None)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
