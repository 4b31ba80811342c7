"""The door of the room: what is read, what is refused, and that the message says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from shrink_utils import geometry
from shrink_utils.geometry.rows import as_labels, centred, unit_scale
from shrink_utils.topology.arrays import as_rows, unit_rows

ROW_FUNCTIONS = [
    geometry.avg_sim,
    geometry.anisotropy,
    geometry.partition_isotropy,
    geometry.participation_ratio,
    geometry.iso_score,
    geometry.effective_rank,
    geometry.rogue_dimensions,
    geometry.intrinsic_dimension,
    geometry.mean_squared_distance,
    geometry.pair_distances,
]


def _cloud(n=12, d=5, **options):
    return torch.randn(n, d, dtype=torch.float64, **options)


@pytest.mark.parametrize("function", ROW_FUNCTIONS)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_non_finite_entries_are_refused(function, bad):
    x = _cloud()
    x[3, 2] = bad
    with pytest.raises(ValueError, match=r"x of shape \(12, 5\) has NaN or infinity in 1 row"):
        function(x)


@pytest.mark.parametrize("function", ROW_FUNCTIONS)
@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (), (0, 4), (4, 0)])
def test_a_wrong_rank_and_an_empty_matrix_are_refused(function, shape):
    match = "x needs at least" if len(shape) == 2 else r"x must have two axes .* got shape \("
    with pytest.raises(ValueError, match=match):
        function(torch.zeros(shape))


@pytest.mark.parametrize("function", ROW_FUNCTIONS)
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
        np.flip(np.flip(x.numpy(), axis=1).copy(), axis=1),  # negative strides
        x.numpy().astype(">f4"),  # the other byte order
        x.numpy().astype(np.longdouble),
        list(x),
        x.clone().requires_grad_(),
    ]
    for view in views:
        torch.testing.assert_close(function(view), expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(views[0], x.double()) and np.array_equal(x, read_only)  # left unchanged


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("function", ROW_FUNCTIONS)
def test_low_precision_input_is_computed_in_float64(function, dtype):
    x = (_cloud() * 100 + 1e3).to(dtype)  # squares overflow float16
    torch.testing.assert_close(function(x), function(x.double()), rtol=0, atol=0)


def test_identical_rows_centre_to_exact_zeros():
    row = torch.tensor([0.1, 1e9, -1e-9], dtype=torch.float64)
    assert not centred(row.repeat(1000, 1)).any()


def test_a_large_offset_costs_centring_no_digits():
    x = torch.randint(-8, 8, (50, 3)).double()  # integers: the offset itself is exact
    torch.testing.assert_close(centred(x + 2.0**40), x - x.mean(0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_unit_rows_have_length_one_at_any_scale(scale):
    lengths = unit_rows(_cloud() * scale).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "function",
    [geometry.avg_sim, geometry.rogue_dimensions, geometry.pair_distances],
)
def test_zero_rows_have_no_cosine(function):
    x = _cloud()
    x[[4, 7]] = 0
    with pytest.raises(ValueError, match=r"x of shape \(12, 5\) has 2 zero row.* first at row 4"):
        function(x)


def test_unit_scale_refuses_what_has_nothing_to_measure():
    with pytest.raises(ValueError, match=r"x of shape \(3, 2\) has nothing but zeros"):
        unit_scale(torch.zeros(3, 2), center=False)
    with pytest.raises(ValueError, match="all its rows are identical"):
        unit_scale(torch.full((3, 2), 0.1), center=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: geometry.anisotropy(x, center=True),
        geometry.participation_ratio,
        lambda x: geometry.participation_ratio(x, bias_corrected=True),
        geometry.iso_score,
        geometry.effective_rank,
    ],
)
@pytest.mark.parametrize("n", [4, 7, 64])
def test_identical_rows_have_no_spectrum(function, n):
    with pytest.raises(ValueError, match="no variance"):
        function(torch.full((n, 5), 0.1))


SMALL_TO_LARGE = [2.0**-1000, 2.0**-600, 2.0**600, 2.0**1000]


@pytest.mark.parametrize("scale", SMALL_TO_LARGE)
@pytest.mark.parametrize("method", ["twonn", "ph"])
def test_no_scale_counts_for_the_intrinsic_dimension(scale, method):
    x = _cloud(60)
    dimension = geometry.intrinsic_dimension(x, method=method)
    scaled = geometry.intrinsic_dimension(x * scale, method=method)
    assert scaled == pytest.approx(dimension, rel=1e-12)


@pytest.mark.parametrize("scale", SMALL_TO_LARGE)
def test_distances_have_the_unit_of_the_rows_at_every_scale(scale):
    x, options = _cloud(), {"metric": "euclidean", "n_pairs": 20}
    distances = geometry.pair_distances(x, **options)
    torch.testing.assert_close(
        geometry.pair_distances(x * scale, **options), distances * scale, rtol=0, atol=0
    )
    assert (distances > 0).all()


def test_isotropy_of_very_long_rows_is_decided_by_the_longest():
    x = torch.tensor([[3.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    assert geometry.partition_isotropy(x * 1e160) == pytest.approx(-3e160)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: geometry.pair_distances(x, metric="euclidean"),
        geometry.mean_squared_distance,
        lambda x: geometry.affine(_cloud(), x),
        lambda x: geometry.procrustes(_cloud(), x, scaling=True),
        lambda x: geometry.procrustes(x, _cloud())(-x),
    ],
)
def test_what_leaves_float64_is_refused(call):
    x = _cloud().clamp(-1, 1) * 1.7e308
    with pytest.raises(ValueError, match="leave float64; take them in another unit"):
        call(x)
    with pytest.raises(ValueError, match="squared distances of x"):
        geometry.mean_squared_distance(_cloud() * 1e160)


@pytest.mark.parametrize("function", ROW_FUNCTIONS)
def test_a_masked_array_keeps_no_secret(function):
    x = np.ma.masked_array(_cloud().numpy(), mask=False)
    assert str(function(x)) == str(function(x.data))  # nothing is masked
    x[3, 1] = np.ma.masked
    with pytest.raises(ValueError, match=r"x is a masked array .*\(12, 5\) with 1 masked value"):
        function(x)


def test_nor_do_masked_labels():
    labels = np.ma.masked_array([0, 0, 1, 1], mask=[0, 1, 0, 0])
    with pytest.raises(ValueError, match="groups is a masked array"):
        geometry.avg_sim(_cloud(4), groups=labels)


@pytest.mark.parametrize("labels", [[1, "a", "a", 1], ("1", 1, "1", 1), [b"a", "a", "a", "a"]])
def test_text_beside_other_labels_is_refused_and_not_made_text(labels):
    """NumPy reads [1, "a"] as two texts, so that 1 and "1" would be one word."""
    with pytest.raises(ValueError, match="words mixes text with"):
        geometry.self_sim(_cloud(4), labels, min_count=2)


@pytest.mark.parametrize("nan", [float("nan"), np.float32("nan")], ids=["python", "numpy"])
@pytest.mark.parametrize("other", ["a", 1.0])
@pytest.mark.parametrize(
    "kind",
    [list, pd.Series, lambda labels: np.array(labels, dtype=object)],
    ids=["list", "series", "objects"],
)
def test_nan_is_no_label_whatever_stands_beside_it(kind, other, nan):
    labels = kind([other, nan, other, nan])
    with pytest.raises(ValueError, match=r"groups of shape \(4,\) has NaN labels"):
        geometry.avg_sim(_cloud(4), groups=labels)


def test_the_text_nan_is_a_label():
    labels = ["nan", "nan", "a", "a"]
    assert as_labels(labels, 4, name="words")[0] == ["a", "nan"]
    assert as_labels(np.array(labels), 4, name="words")[0] == ["a", "nan"]


@pytest.mark.parametrize(
    ("x", "match"),
    [
        ([["a", "b"]], "x must hold real numbers, got dtype"),
        ([[1j, 2]], "x must hold real numbers, got dtype"),
        (torch.ones(3, 2, dtype=torch.complex64), "x must hold real numbers, got dtype"),
        ([[None, 1.0]], "x must hold real numbers, got dtype"),
        (torch.eye(4).to_sparse(), "a sparse tensor: make it dense"),
        (torch.eye(4).to(torch.float8_e5m2), "too coarse to measure"),
        ([[1.0, 2.0], [3.0]], "x is not a matrix of numbers"),
        (np.ones((3, 2)), r"at least 4 row.* got shape \(3, 2\)"),
    ],
)
def test_what_is_no_matrix_of_real_numbers_is_refused(x, match):
    with pytest.raises(ValueError, match=match):
        as_rows(x, min_rows=4)


def test_labels_may_be_any_tensor():
    x, labels = _cloud(4), torch.tensor([0.0, 0, 1, 1])
    expected = geometry.avg_sim(x, groups=labels.tolist()).value
    for given in (labels.bfloat16(), labels.clone().requires_grad_(), labels.int()):
        assert geometry.avg_sim(x, groups=given).value == expected


def test_layers_may_differ_in_width():
    layers = [_cloud(20, 5), _cloud(20, 3)]
    grid = geometry.similarity_grid("cka", layers)
    assert grid[0, 1] == pytest.approx(geometry.cka(*layers))
