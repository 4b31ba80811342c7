"""What topology and geometry read, and what every listed function refuses, in one line each.

A refusal names the argument and what was found; its other words are free.
"""

import math
from functools import partial as call

import numpy as np
import pandas as pd
import pytest
import torch
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode

from shrink_utils import geometry as g
from shrink_utils import topology as t
from shrink_utils.geometry import streaming
from shrink_utils.geometry.similarity import MEASURES
from shrink_utils.training.penalties import PENALTIES, Regrouped, SIGReg
from tests.geometry.conftest import ROW_FUNCTIONS
from tests.test_fuzz import OF_ONE, OF_TWO
from tests.training.conftest import OPTIONS

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 5)), RNG.normal(size=(12, 4))
THREE, TWO = np.repeat([0, 1, 2], 4), torch.arange(12) % 2
ONES, LINE = np.full((12, 5), 0.1), np.linspace(-1, 1, 200)[:, None] * RNG.normal(size=7)
ZEROS, NAN = X.copy(), X.copy()
ZEROS[[4, 7]], NAN[3, 2] = 0, math.nan
HUGE = X.clip(-1, 1) * 1.7e308
D = torch.cdist(torch.tensor(X), torch.tensor(X))
GRID = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
NEAR = np.append(np.arange(20.0) ** 2 * 1e-200, 1.0)[:, None]
ALL_BUT_ONE = np.tile(np.float16([-0.3625, 1.824]), (6, 1))
ALL_BUT_ONE[4] = -0.7627, 2.803
ORTHOCENTRE = np.array([[0.0, 0], [4, 0], [1, 3], [1, 1]])  # each side orthogonal to its height
FLAT = RNG.normal(size=(40, 3)) @ RNG.normal(size=(3, 6))  # varies in three directions
CANCEL = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]
CENTRES = np.array([[30.0, 0, 0, 0, 0], [0, 30, 0, 0, 0], [1e6] * 5])

# Clouds that no function reads, and what the refusal says was found.
CLOUDS = {
    "NaN": (NAN, "row 3"),
    "infinity": (np.where(np.eye(12, 5), np.inf, X), "5 row"),
    "one axis": (np.ones(5), "(5,)"),
    "three axes": (np.ones((2, 3, 4)), "(2, 3, 4)"),
    "masked": (np.ma.masked_array(X, mask=np.eye(12, 5)), "5 masked"),
    "complex": (torch.tensor(X).to(torch.complex64), "complex64"),
    "sparse": (torch.tensor(X).to_sparse(), "sparse_coo"),
    "whole numbers that float64 has not": (2**53 + np.arange(60).reshape(12, 5), "row 0"),
    "eight bits": (torch.tensor(X).to(torch.float8_e4m3fn), "float8_e4m3fn"),
    "meta": (torch.tensor(X).to("meta"), "meta"),
    "text": (np.full((12, 2), "a"), "dtype"),
}
LENGTHS = ("persistent_entropy", "prominent_features, ratio", "prominent_features, published")
ROWS_OF = {
    name: function
    for name, function in OF_ONE.items()
    if name not in (*LENGTHS, "cka_distance") and not name[0].isupper() and "regul" not in name
}
ROWS_OF |= {f"{name}, y": call(f, X) for name, f in OF_TWO.items() if name != "CKA"}
ROWS_OF |= {"BarcodeRegularizer": t.BarcodeRegularizer()}
REWARDS = [term(**OPTIONS.get(name, {})) for name, term in PENALTIES.items()]
ROWS_OF |= dict(zip(PENALTIES, REWARDS, strict=True))


@pytest.mark.parametrize("kind", CLOUDS)
@pytest.mark.parametrize("name", ROWS_OF)
def test_what_is_no_cloud_is_refused_by_every_function(name, kind):
    cloud, found = CLOUDS[kind]
    with pytest.raises(ValueError) as error:
        ROWS_OF[name](cloud)
    assert found in str(error.value) and "\n" not in str(error.value)


VARIANCE = [
    call(g.anisotropy, center=True),
    *(g.participation_ratio, g.iso_score, g.effective_rank, g.elongated_directions, g.whitening),
    call(g.participation_ratio, bias_corrected=True),
    lambda x: g.between_share(x, THREE),
    *(call(m, Y) for name, m in MEASURES.items() if name not in ("rsa", "mutual_knn")),
]
WORDS, SHARES = call(g.self_sim, X), call(g.max_explainable_variance, X)
FOUND = g.search(X, X)
FITTED, AXES = g.procrustes(X, Y), g.principal_axes(X)
CORRECTED = {"bias_corrected": True}
BARS = (t.h0_barcode, t.barcode)
OF_LENGTHS = (t.persistent_entropy, t.prominent_features)
TERMS = (t.class_clouds, t.BarcodeRegularizer(), *REWARDS)


def _streamed(make, *batch):
    metric = make()
    metric.update(*batch)
    return metric.compute()


def _regularizer(selection="prominent", **options):
    return call(t.BarcodeRegularizer, selection, **options)


# Calls, the argument that the refusal names, and what was found.
REFUSED = [
    *((call(f, ONES), "variance", "(12, 5)") for f in VARIANCE),
    *((call(f, ZEROS), "zero", "row 4") for f in (g.avg_sim, g.pair_distances, call(g.rsa, Y))),
    *((call(f, ZEROS, metric="cosine"), "zero", "row 4") for f in BARS),
    *((call(f, X[:1]), "x", "(1, 5)") for f in (g.avg_sim, g.mean_squared_distance)),
    *((call(f, x), "x", "at least") for f in ROW_FUNCTIONS for x in (X[:0], X[:, :0])),
    *((call(f, X[:, :0]), "column", "(12, 0)") for f in TERMS),
    *(
        (f, "float64", "unit")
        for f in (
            *(call(g.mean_squared_distance, HUGE), call(g.affine, Y, HUGE)),
            *(call(g.procrustes, Y, HUGE, scaling=True), call(g.procrustes, HUGE, Y)),
            call(FITTED, HUGE),
        )
    ),
    (call(g.within_classes, HUGE, [0] * 12), "float64", "unit"),
    *(
        (call(f, seed=seed), "seed", str(seed))
        for seed in (-1, 1.5)
        for f in (
            call(g.pair_distances, X),
            call(g.intra_sim, X, THREE),
            call(g.max_explainable_variance, X, THREE, min_count=2),
            call(g.calibrated_maximum, "cka", [X], [X]),
            call(g.intrinsic_dimension, np.random.default_rng(0).random((40, 2)), method="ph"),
        )
    ),
    # Labels. NumPy reads [1, "a"] as two texts, so that 1 and "1" would be one word.
    (call(g.avg_sim, X, groups=[0, 1]), "groups", "(2,)"),
    (call(g.avg_sim, X, groups=["a"] * 12), "groups", "1"),
    (call(g.avg_sim, X, groups=np.ma.masked_array(THREE, mask=THREE == 1)), "groups", "masked"),
    (call(g.avg_sim, X, groups=["a", math.nan] * 6), "groups", "NaN"),
    (call(g.avg_sim, X, groups=pd.Series([1.0, np.float32("nan")] * 6)), "groups", "NaN"),
    (call(g.avg_sim_pseudo_values, X[:8], groups=THREE[:8]), "groups", "2"),
    (call(WORDS, ("1", 1) * 6, min_count=2), "words", "ordered"),
    (call(WORDS, pd.array([0, 1, None] * 4)), "words", "NA"),
    (call(WORDS, THREE, sentences=[1, 2]), "sentences", "(2,)"),
    (call(WORDS, THREE, sentences=THREE % 2, min_count=3), "words", "3"),
    *((call(f, THREE[1:]), "words", "(11,)") for f in (WORDS, SHARES)),
    *((call(f, THREE, min_count=9), "words", "9") for f in (WORDS, SHARES)),
    *((call(f, THREE, min_count=1), "min_count", "1") for f in (WORDS, SHARES)),
    *((call(f, X, y), "labels", s) for f in TERMS for y, s in ((TWO[:5], "(5,)"), (TWO - 1, "-1"))),
    *((call(f, X, TWO.double()), "labels", "float64") for f in TERMS),
    *((call(f, X, ["a", "b"] * 6), "labels", "dtype") for f in TERMS),
    (call(t.class_clouds, X[:2], torch.tensor([2**63, 1], dtype=torch.uint64)), "labels", ""),
    (call(t.class_clouds, [torch.ones(3), torch.ones(2)], [0, 1]), "embeddings", ""),
    # Words in sentences.
    (call(g.intra_sim, X, THREE, n_permutations=0), "n_permutations", "0"),
    (call(g.intra_sim, np.eye(3), [0, 0, 0]), "sentences", "1"),
    (call(g.intra_sim, np.eye(3), [0, 1, 2]), "sentences", "1 word"),
    (call(g.intra_sim, CANCEL[:3], ["a", "b", "b"]), "sentence", "'b'"),
    (call(g.intra_sim, CANCEL, [0, 0, 1, 1]), "x", "mean zero"),
    (call(g.max_explainable_variance, X * (THREE > 0)[:, None], THREE, min_count=2), "x", "zero"),
    # Options.
    *((call(g.anisotropy, X[:3], k=k), "k", repr(k)) for k in (0, 4, 2.0, "2")),
    *((call(g.mutual_knn, X, Y, k=k), "k", repr(k)) for k in (0, 11, 2.0)),
    *((call(g.pair_distances, X, n_pairs=n), "n_pairs", repr(n)) for n in (0, 9.0)),
    *((call(AXES.treatment, remove=n), "remove", repr(n)) for n in (-1, 1.0)),
    (call(AXES.treatment, remove=1, skip=-1), "skip", "-1"),
    *((call(g.svcca, X, Y, variance=v), "variance", repr(v)) for v in (0.0, 1.1, math.nan, "0.9")),
    *((call(g.elongated_directions, X, ratio=r), "ratio", repr(r)) for r in (0, -1.0, None)),
    (call(g.intrinsic_dimension, X, method="mle"), "method", "'mle'"),
    (call(g.similarity_grid, "pwca", [X], [Y]), "measure", "'pwca'"),
    (call(g.calibrated_maximum, "cka", [X], [Y], permutations=0), "permutations", "0"),
    *((call(f, X, metric="manhattan"), "metric", "'manhattan'") for f in BARS),
    *((call(t.barcode, X, max_dim=d), "max_dim", repr(d)) for d in (-1, 1.5)),
    (call(t.prominent_features, torch.ones(3), rule="ratios"), "rule", "'ratios'"),
    (_regularizer("some"), "selection", "'some'"),
    (_regularizer(rule="longest"), "rule", "'longest'"),
    *((_regularizer(weight=w), "weight", repr(w)) for w in (math.nan, "1", [1.0], torch.ones(2))),
    (_regularizer(weight=torch.ones((), requires_grad=True)), "weight", "tensor"),
    (_regularizer(unselected_l2=math.inf), "unselected_l2", "inf"),
    *((_regularizer(homology_dim=d), "homology_dim", repr(d)) for d in (-1, 0.5)),
    # One cloud.
    *(
        (call(f, x, **CORRECTED), "bias_corrected", f"{len(x)} rows")
        for f in (g.participation_ratio, g.iso_score)
        for x in (np.eye(4), ALL_BUT_ONE, ORTHOCENTRE)
    ),
    (call(g.iso_score, X[:, :1]), "x", "(12, 1)"),
    (call(g.iso_score, X[:3], **CORRECTED), "x", "(3, 5)"),
    *(
        (call(g.intrinsic_dimension, np.repeat(np.eye(n - 1), 3, 0), method=m), m, f"{n - 1} dist")
        for m, n in (("twonn", 4), ("ph", 32))
    ),
    *((call(g.intrinsic_dimension, x), "x", "lattice") for x in (GRID, LINE)),
    (call(g.intrinsic_dimension, NEAR), "x", "float64"),
    *((call(f, y), "lengths", s) for f in OF_LENGTHS
      for y, s in (([1.0, -1.0], "-1.0"), ([1.0, math.nan], "nan"), (torch.ones(2, 3), "(2, 3)"))),
    *((call(f, d, metric="precomputed"), "points", s) for f in BARS
      for d, s in ((D[:, :-1], "(12, 11)"), (-D, "-"), (D + torch.arange(12) / 8, "symmetric"),
                   (D + torch.eye(12), "1.0"), (D * math.nan, "NaN"))),
    # Two clouds.
    *((call(m, np.append(X, X[:1] + 1, 0), X), "same samples", "13") for m in MEASURES.values()),
    (call(g.similarity_grid, "cka", [X], [Y, ONES]), "ys[1]", "(12, 5)"),
    (call(g.similarity_grid, "cka", [X], [X, Y[:-1]]), "ys[1]", "11"),
    (call(g.similarity_grid, "cka", []), "xs", "none"),
    *((call(f, X[:6], np.eye(6)), "y", "6 rows") for f in (call(g.mutual_knn, k=2), g.rsa)),
    (call(g.cka, X[:3], Y[:3], debiased=True), "x", "(3, 5)"),
    *((call(g.cka_distance, c), "ckas", s) for c, s in (([1.001], "1.001"), ([math.nan], "NaN"))),
    *((call(f, X, Y[:8]), "same samples", "8") for f in (g.procrustes, g.affine)),
    (call(FITTED, X[:, 1:]), "x", "(12, 4)"),
    (call(FITTED.explained, X[:3], Y[:2]), "y", "(2, 4)"),
    (call(g.procrustes(*[[[1.0], [-1.0]]] * 2).explained, [[1.0]], [[0.0]]), "y", "mean"),
    (call(g.principal_axes(ONES).treatment, remove=1), "remove", "0 direction"),
    (call(g.principal_axes(FLAT).treatment, remove=2, skip=2), "remove 2", "3 dir"),
    (call(g.principal_axes, X, centres=CENTRES), "centres", "centre 2"),
    (call(AXES.treatment(), X[:, 1:]), "x", "(12, 4)"),
    # Search and whitening.
    *((call(g.search, X, X, **{name: v}), name, s) for name, v, s in (
        ("k", 0, "0"), ("k", 13, "13"), ("k", 2.0, "2.0"), ("k", True, "True"), ("bits", 4, "4"),
        ("bits", True, "True"), ("rescore", 11, "11"), ("calibration", X, "bits"))),
    *((call(g.search, X, X, bits=1, rescore=n), "rescore", repr(n)) for n in (9, 13)),
    (call(g.search, X, X, bits=8, calibration=X[:, 1:]), "calibration", "(12, 4)"),
    *((call(g.search, X, c), "corpus", s)
      for c, s in ((X[:, 1:], "(12, 4)"), (X * 0, "zero row"), (NAN, "NaN"))),
    *((call(FOUND.recall, rows), "relevant", s)
      for rows, s in (([0, 1], "(2,)"), (np.zeros((12, 3), bool), "(12, 3)"),
                      (np.full(12, 12), "row 12"), (np.full(12, -1), "row -1"),
                      (np.full(12, 1.5), "float64"), (np.zeros((12, 12), bool), "12 of 12"),
                      (np.eye(12, dtype=int), "int64"), ([[0], [1, 2]] * 6, ""), ([{0}] * 12, ""))),
    *((call(g.whitening, X, cut=c), "cut", repr(c)) for c in (-0.1, 1.0, math.nan, "1e-9", None)),
    # Metrics of batches.
    *((call(_streamed, m, *batch), name, s) for m, batch, name, s in (
        (call(streaming.AvgSim, 5), (X[:, 1:],), "x", "(12, 4)"),
        (call(streaming.AvgSim, 5), (ZEROS,), "zero", "2 zero row"),
        (call(streaming.AvgSim, 5), (X, [0, 1]), "groups", "2"),
        (call(streaming.AvgSim, 5), (X, [0] * 12), "label", "1"),
        (call(streaming.AvgSim, 5), (X[:1],), "AvgSim", "1"),
        (call(streaming.SelfSim, 2, 5, min_count=2), (X, THREE), "words", "0 … 2"),
        (call(streaming.SelfSim, 2, 5), (X, [0.0] * 12), "words", "float64"),
        (call(streaming.SelfSim, 2, 5), (X, [0, 1]), "words", "2"),
        (call(streaming.SelfSim, 2, 5), (X, ["cat"] * 12), "words", ""),
        (call(streaming.SelfSim, 3, 5), (X, THREE), "context", "5"),
        (call(streaming.Spectrum, 5), (NAN,), "x", "1 row"),
        (call(streaming.Spectrum, 5), (X[:2],), "k", "3"),
        (call(streaming.Spectrum, 5), (0 * X,), "Spectrum", "zeros"),
        *((call(streaming.Spectrum, 5, k=1, center=c), (X * 1e-160,), "Spectrum", "")
          for c in (False, True)),
        (call(streaming.Spectrum, 5, center=True), (ONES,), "variance", "identical"),
        (call(streaming.IsoScore, 5), (X * 1e200,), "float64", "unit"),
        (call(streaming.IsoScore, 5), (X[:1],), "IsoScore", "1"),
        (call(streaming.CKA, 5, 4), (X, Y[:3]), "y", "12 and 3"))),
    *((call(make, 0), "n_features", "0")
      for make in (streaming.CKA, streaming.IsoScore, call(streaming.SelfSim, 3))),
    (call(streaming.SelfSim, 3, 5, min_count=2.5), "min_count", "2.5"),
    (call(streaming.Spectrum, 5, k=9), "k", "9"),
    (call(streaming.Spectrum(5).merge_state, streaming.Spectrum(6)), "incoming_state", "(6,)"),
]  # fmt: skip


@pytest.mark.parametrize(("refused", "argument", "found"), REFUSED)
def test_what_has_no_answer_is_refused_in_one_line(refused, argument, found):
    with pytest.raises(ValueError) as error:
        refused()
    told = str(error.value)
    assert argument in told and found in told and "\n" not in told


def _cloud(n=12, d=5):
    return torch.randn(n, d, dtype=torch.float64)


OF_BARS = [
    lambda x: t.h0_barcode(x).lengths.detach(),
    lambda x: t.BarcodeRegularizer("all")(x, pd.Series(THREE)).loss.detach(),
    lambda x: t.persistent_entropy(torch.as_tensor(g.pair_distances(x)).numpy()[::-1]),
]


@pytest.mark.parametrize("function", [*ROW_FUNCTIONS, *OF_BARS])
def test_every_view_of_the_same_numbers_gives_the_same_result(function):
    x = _cloud().float()  # exact in every format below
    read_only = x.numpy().copy()
    read_only.flags.writeable = False
    expected = function(x)
    views = [
        *(x.double(), x.numpy(), x.tolist(), list(x), pd.DataFrame(x.numpy()), read_only),
        np.flip(np.flip(x.numpy(), axis=1).copy(), axis=1),  # negative strides
        x.numpy().astype(">f4"),  # the other byte order
        x.numpy().astype(np.longdouble),
        x.clone().requires_grad_(),
        torch.inference_mode()(x.clone)(),
        torch.complex(x, -x).conj().imag,  # lazily negated
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
    for given in (labels.bfloat16(), labels.clone().requires_grad_(), labels.int()):
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
@pytest.mark.parametrize("function", [g.anisotropy, g.intrinsic_dimension, *OF_BARS[:2]])
def test_transformations_that_hide_values_are_refused(function, transformed):
    """torch.func gave gradients of zero, a trace the tree of its example, the others tracebacks."""
    with pytest.raises(ValueError, match=r"loss\.backward\(\)"):
        transformed(function, _cloud())


OF_PAIRS = [g.rsa, g.mutual_knn, g.cka, g.svcca, g.pwcca, lambda x, y: g.affine(x, y)(x)]
OF_DRAWS = [t.BarcodeRegularizer("random"), Regrouped("shuffled"), SIGReg()]


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


class Apple(torch.Tensor):
    """A tensor on Apple's device, which has no float64 and which NumPy cannot read."""


class AppleDevice(TorchFunctionMode):
    """What is moved to "mps" is an `Apple`, and what is computed of one is one."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        mps, kwargs = torch.device("mps"), kwargs or {}
        own, name = args and isinstance(args[0], Apple), function.__name__
        if own and name == "__get__" and function == torch.Tensor.device.__get__:
            return mps
        if own and (name == "cpu" or (name == "numpy" and kwargs.get("force"))):
            return getattr(args[0].as_subclass(torch.Tensor), name)(**kwargs)
        if own and name in ("numpy", "__array__"):
            raise TypeError("can't convert mps:0 device type tensor to numpy")
        to = [a for a in [*args, *kwargs.values()] if isinstance(a, torch.device)]
        found = function(
            *("cpu" if isinstance(a, torch.device) else a for a in args),
            **{k: "cpu" if isinstance(a, torch.device) else a for k, a in kwargs.items()},
        )
        found = found.as_subclass(Apple if mps in to else torch.Tensor) if to else found
        if isinstance(found, Apple) and found.dtype == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return found


ON_APPLE = {
    **{name: lambda x, y, f=f: f(x, y).loss for name, f in zip(PENALTIES, REWARDS, strict=True)},
    "random": lambda x, y: t.BarcodeRegularizer("random")(x).loss,
    "loops": lambda x, y: t.BarcodeRegularizer(homology_dim=1)(x).loss,
    "others": lambda x, y: t.BarcodeRegularizer(unselected_l2=0.1)(x, y).loss,
    "h0_barcode": lambda x, y: t.h0_barcode(x, metric="cosine").lengths,
    "search": lambda x, y: g.search(x, k=3).precision(y[:, None] == y),
}


@pytest.mark.parametrize("name", ON_APPLE)
def test_a_device_without_float64_changes_nothing(name):
    x, y = _cloud().float(), torch.arange(12) % 2
    torch.manual_seed(0)
    expected = ON_APPLE[name](x, y)
    torch.manual_seed(0)
    with AppleDevice():
        found = ON_APPLE[name](x.as_subclass(Apple), y.as_subclass(Apple))
    torch.testing.assert_close(found.as_subclass(torch.Tensor), expected, rtol=1e-6, atol=1e-6)
