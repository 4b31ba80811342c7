"""Every public function of topology and geometry on strange clouds.

What must hold: a finite answer that keeps its own scaling law, or a ``ValueError``; never another
exception, never a silent NaN. ``HYPOTHESIS_PROFILE=nightly`` tries 10,000 clouds each.
"""

import inspect
import warnings
from collections.abc import Iterable
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shrink_utils import geometry as g
from shrink_utils import topology as t
from shrink_utils.geometry import streaming
from shrink_utils.geometry.maps import nearest_centre

CASES = settings(max_examples=max(100, settings().max_examples))
DTYPES = [np.float16, np.float32, np.float64, np.int32]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, 1e-30, 1e30, -1e30, 1e15, np.nan, np.inf, -np.inf]


@st.composite
def clouds(draw, fewest_rows=0, finite=False):
    """(n, d) arrays of any dtype: Gaussian, repeated, low in rank, far from 0, or of odd values."""
    n, d = draw(st.integers(fewest_rows, 12)), draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["gauss", "repeated", "rank one", "offset", "grid", "special"]))
    x = rng.standard_normal((n, d))
    if kind == "repeated" and n:
        x = x[rng.integers(0, max(1, n // 3), n)]
    elif kind == "rank one":
        x = x[:, :1] * rng.standard_normal((1, d))
    elif kind == "offset":
        x = 1e3 + 1e-3 * x
    elif kind == "grid":
        x = rng.integers(-1, 2, (n, d)).astype(float)
    elif kind == "special":
        values = SPECIAL[:-3] if finite else SPECIAL
        x = np.asarray(draw(st.lists(st.sampled_from(values), min_size=n * d, max_size=n * d)))
        x = x.reshape(n, d)
    x = x * draw(st.sampled_from([1.0, 1.0, 1e-30, 1e30, 1e-150]))
    with np.errstate(all="ignore"):
        return x.astype(draw(st.sampled_from(DTYPES)) if not finite else np.float64)


def _labels(x):
    return np.arange(len(x)) % 3


def _lengths(x):
    return np.abs(np.asarray(x, dtype=float).reshape(-1))


def _loss_and_gradient(x, **options):
    points = torch.as_tensor(x).clone()
    points = (points if points.is_floating_point() else points.double()).requires_grad_()
    out = t.BarcodeRegularizer(**options)(points, torch.as_tensor(_labels(x)))
    out.loss.backward()
    return [out.loss, out.entropy, points.grad]


def _streamed(metric, *arrays):
    """The value of all rows, which come in two batches."""
    half = len(arrays[0]) // 2
    metric.update(*(array[:half] for array in arrays))
    metric.update(*(array[half:] for array in arrays))
    return metric.compute()


def _streamed_self_sim(x):
    values = _streamed(streaming.SelfSim(3, x.shape[1], min_count=2), x, _labels(x))
    return values[np.bincount(_labels(x), minlength=3) >= 2]  # NaN for rarer words, as it says


OF_ONE = {
    "h0_barcode": lambda x: t.h0_barcode(x).lengths,
    "barcode": lambda x: [bars.lengths for bars in t.barcode(x, max_dim=1)],
    "class_clouds": t.class_clouds,
    "BarcodeRegularizer": _loss_and_gradient,
    "regularizer of all bars": lambda x: _loss_and_gradient(x, selection="all", unselected_l2=0.1),
    "regularizer of loops": lambda x: _loss_and_gradient(x, homology_dim=1),
    "persistent_entropy": lambda x: t.persistent_entropy(_lengths(x)),
    **{
        f"prominent_features, {rule}": lambda x, rule=rule: t.prominent_features(
            torch.from_numpy(_lengths(x)), rule=rule
        )
        for rule in ("ratio", "published")
    },
    "avg_sim of groups": lambda x: g.avg_sim(x, groups=_labels(x)),
    "avg_sim_pseudo_values": lambda x: g.avg_sim_pseudo_values(x, groups=_labels(x)),
    "anisotropy": lambda x: g.anisotropy(x, k=1),
    "anisotropy, centred": lambda x: g.anisotropy(x, k=1, center=True),
    "iso_score, corrected": lambda x: g.iso_score(x, bias_corrected=True),
    "participation_ratio, corrected": lambda x: g.participation_ratio(x, bias_corrected=True),
    "effective_rank, raw": lambda x: g.effective_rank(x, center=False),
    "intrinsic_dimension": g.intrinsic_dimension,
    "intrinsic_dimension, ph": lambda x: g.intrinsic_dimension(x, method="ph"),
    "pair_distances": lambda x: g.pair_distances(x, n_pairs=5),
    "within_classes": lambda x: g.within_classes(x, _labels(x)),
    "between_share": lambda x: g.between_share(x, _labels(x)),
    "self_sim": lambda x: g.self_sim(x, _labels(x), min_count=2),
    "intra_sim": lambda x: g.intra_sim(x, _labels(x)),
    "max_explainable_variance": lambda x: g.max_explainable_variance(x, _labels(x), min_count=2),
    "principal_axes": lambda x: g.principal_axes(x).treatment(remove=1)(x),
    "whitening": lambda x: g.whitening(x)(x),
    "all_but_the_top": lambda x: g.all_but_the_top(x, remove=1)(x),
    "random_rotation": lambda x: g.random_rotation(x)(x),
    "cka_distance": lambda x: g.cka_distance(_lengths(x)),
    "AvgSim": lambda x: _streamed(streaming.AvgSim(x.shape[1]), x),
    "AvgSim of groups": lambda x: _streamed(streaming.AvgSim(x.shape[1]), x, _labels(x)),
    "SelfSim": _streamed_self_sim,
    "Spectrum": lambda x: _streamed(streaming.Spectrum(x.shape[1], k=1), x),
    "Spectrum, centred": lambda x: _streamed(streaming.Spectrum(x.shape[1], k=1, center=True), x),
    "IsoScore": lambda x: _streamed(streaming.IsoScore(x.shape[1]), x),
}


def _functions(room):
    return {name for name, value in vars(room).items() if inspect.isfunction(value)}


# A measure of one cloud needs no line above.
for name in sorted(_functions(g)):
    arguments = inspect.signature(getattr(g, name)).parameters.values()
    if [a.name for a in arguments if a.default is a.empty] == ["x"]:
        OF_ONE.setdefault(name, getattr(g, name))
OF_TWO = {
    "cca": g.cca,
    "svcca": g.svcca,
    "pwcca": g.pwcca,
    "pwcca, symmetric": lambda x, y: g.pwcca(x, y, symmetric=True),
    "rsa": g.rsa,
    "cka": g.cka,
    "cka, debiased": lambda x, y: g.cka(x, y, debiased=True),
    "procrustes": lambda x, y: g.procrustes(x, y, scaling=True),
    "affine": g.affine,
    "nearest_centre": nearest_centre,
    "CKA": lambda x, y: _streamed(streaming.CKA(x.shape[1], y.shape[1]), x, y),
    "similarity_grid": lambda x, y: g.similarity_grid("rsa", [x, y], [y]),
    "mutual_knn": lambda x, y: g.mutual_knn(x, y, k=1),
    "search": lambda x, y: g.search(x, y, k=1),
    "search, by one bit": lambda x, y: g.search(x, y, k=1, bits=1, rescore=1),
    "search, by eight bits": lambda x, y: g.search(x, y, k=1, bits=8),
    "calibrated_maximum": lambda x, y: g.calibrated_maximum("cka", [x], [y], permutations=2),
}
# How an answer grows with its cloud: the function and the power of the scale.
SCALING = {
    "h0_barcode": 1,
    "avg_sim": 0,
    "anisotropy": 0,
    "anisotropy, centred": 0,
    "iso_score": 0,
    "participation_ratio": 0,
    "effective_rank": 0,
    "mean_squared_distance": 2,
    "persistent_entropy": 0,
}


def _numbers(result) -> Iterable[np.ndarray]:
    """All floating-point numbers in an answer, however it is packed."""
    if isinstance(result, torch.Tensor):
        yield result.detach().double().numpy()
    elif isinstance(result, (float, int, np.ndarray, np.number)):
        yield np.asarray(result, dtype=float)
    elif isinstance(result, dict):
        for value in result.values():
            yield from _numbers(value)
    elif is_dataclass(result) or hasattr(result, "_fields"):
        names = getattr(result, "_fields", None) or [field.name for field in fields(result)]
        for name in names:
            if name != "stderr":  # of two units there is none: NaN, as the docstring says
                yield from _numbers(getattr(result, name))
    elif isinstance(result, (tuple, list)):
        for value in result:
            yield from _numbers(value)


def _holds(call, *arguments) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = call(*arguments)
        except ValueError as error:
            assert len(str(error)) > 20  # and says what is wrong
            return
    foreign = [w for w in told if not issubclass(w.category, UserWarning)]
    assert not foreign, foreign[0].message
    if not told:  # a warning says why a value is not finite
        assert all(np.isfinite(numbers).all() for numbers in _numbers(result)), result


def test_every_public_function_is_here():
    tried = {name.split(",")[0].split(" ")[0] for name in {**OF_ONE, **OF_TWO}}
    public = _functions(g) | _functions(t)
    metrics = {name for name in streaming.__all__ if hasattr(getattr(streaming, name), "compute")}
    assert public | metrics <= tried


@pytest.mark.parametrize("name", OF_ONE)
@CASES
@given(x=clouds())
def test_a_finite_answer_or_a_value_error(name, x):
    _holds(OF_ONE[name], x)


@pytest.mark.parametrize("name", OF_TWO)
@CASES
@given(x=clouds(), y=clouds())
def test_a_finite_answer_or_a_value_error_of_two_clouds(name, x, y):
    _holds(OF_TWO[name], x, y[: len(x)])


@pytest.mark.parametrize("name", SCALING)
@CASES
@given(x=clouds(fewest_rows=2, finite=True), exponent=st.sampled_from([-200, -60, 60, 200]))
def test_answers_keep_their_scaling_law(name, x, exponent):
    x = np.clip(x, -1e30, 1e30)
    x[np.abs(x) < 1e-30] = 0.0  # so that no digit is lost when it is scaled
    answers = []
    for scale in (1.0, 2.0**exponent):
        try:
            answers.append(np.concatenate([n.ravel() for n in _numbers(OF_ONE[name](x * scale))]))
        except ValueError:
            answers.append(None)
    plain, scaled = answers
    assert (plain is None) == (scaled is None)
    if plain is not None:
        expected = plain * 2.0 ** (exponent * SCALING[name])
        np.testing.assert_allclose(scaled, expected, rtol=1e-9, atol=0)
