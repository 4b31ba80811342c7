"""What each metric does beside merging: what it takes, what it refuses, what it leaves behind."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils.geometry import avg_sim, cka, effective_rank
from shrink_utils.geometry.streaming import (
    CKA,
    AvgSim,
    EffectiveRank,
    IsoScore,
    LayerCKA,
    Occurrences,
    RogueDimensions,
    SelfSim,
    Spectrum,
    UnitRows,
)
from tests.geometry.streaming.conftest import CLOUDS, N, assert_same


def test_no_rows_have_no_value(case):
    with (
        pytest.warns(UserWarning, match="was called before the ``update``"),
        pytest.raises(ValueError, match=r"needs at least \d row\(s\), it has seen 0|none of 6"),
    ):
        case.make().compute()


@pytest.mark.parametrize("read", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_batch_that_is_not_finite_is_refused_and_leaves_no_trace(case, bad, read):
    x, rows = CLOUDS["random"], np.arange(N)
    metric = case.make()
    metric.update(*case.batch(x, rows))
    damaged = x.copy()
    damaged[7, 2] = bad
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="NaN or infinity in 1 row"):
        metric.update(*_damaged_batch(case, x, read(damaged), rows))
    assert_same(metric.compute(), case.expected(x))


def _damaged_batch(case, x, damaged, rows):
    """The batch of `x` with its first matrix replaced by the damaged one."""
    first, *others = case.batch(x, rows)
    return [[damaged, *first[1:]] if isinstance(first, list) else damaged, *others]


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (slice(5), r"must have 6 columns, got shape \(60, 5\)"),
        (0, r"must have two axes .* got shape \(60,\)"),
    ],
)
def test_rows_of_another_width_and_vectors_are_refused(case, columns, match):
    x = CLOUDS["random"]
    batch = _damaged_batch(case, x, x[:, columns], np.arange(N))
    with pytest.raises(ValueError, match=match):
        case.make().update(*batch)


@pytest.mark.parametrize("read", [np.asarray, torch.from_numpy])
def test_an_empty_batch_changes_nothing(case, read):
    """The last batch of a filtered loader has no rows now and then."""
    x, rows = CLOUDS["random"], np.arange(N)
    metric = case.make()
    for start in (0, N):
        metric.update(*_damaged_batch(case, x, read(x[:0]), rows[:0]))
        if not start:
            metric.update(*case.batch(x, rows))
    assert_same(metric.compute(), case.expected(x))


@pytest.mark.parametrize("width", [0, -1, 2.5, "6", None])
@pytest.mark.parametrize(
    "make",
    [
        AvgSim,
        RogueDimensions,
        Spectrum,
        EffectiveRank,
        IsoScore,
        CKA,
        lambda d: CKA(6, d) if d is not None else CKA(None),
        lambda d: LayerCKA([6, d]),
        lambda d: SelfSim(6, d),
    ],
)
def test_columns_that_cannot_be_are_refused(make, width):
    with pytest.raises(ValueError, match=f"must be a whole number of columns, .* got {width!r}"):
        make(width)


def test_no_gradient_is_kept(case):
    x = CLOUDS["random"]
    grown = torch.tensor(x, requires_grad=True)
    metric = case.make()
    metric.update(*_damaged_batch(case, x, grown, np.arange(N)))
    assert not metric.compute().requires_grad


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e150, 1e300])
def test_unit_rows_have_length_one_at_every_scale(scale):
    x = torch.from_numpy(CLOUDS["random"])
    expected = x / torch.linalg.vector_norm(x, dim=1, keepdim=True)
    torch.testing.assert_close(UnitRows(x * scale).rows, expected, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("tiny", [1.0, 1e-300])
def test_unit_rows_tell_zero_from_tiny_and_leave_what_was_given_as_it_was(tiny):
    x = torch.ones(3, 2, dtype=torch.float64)
    x[1] = tiny
    given = x.clone()
    assert UnitRows(x).rows.flatten().tolist() == pytest.approx([0.5**0.5] * 6)
    assert torch.equal(x, given)
    x[1] = 0
    with pytest.raises(ValueError, match=r"1 zero row\(s\), the first at row 1"):
        UnitRows(x)


def test_rows_scaled_once_do_for_several_metrics():
    x = torch.randn(20, 3)
    unit, once, twice = UnitRows(x), AvgSim(3), SelfSim(2, 3)
    once.update(unit)
    twice.update(unit, torch.zeros(20, dtype=torch.long))
    assert float(once.compute()) == pytest.approx(avg_sim(x).value, rel=1e-12)
    assert float(twice.compute()[0]) == pytest.approx(avg_sim(x).value, rel=1e-12)


def test_a_single_group_is_refused():
    metric = AvgSim(3)
    metric.update(np.eye(3), ["a", "a", "a"])
    with pytest.raises(ValueError, match="at least 2 different labels, got 1 for 3 rows"):
        metric.compute()


def test_labels_of_different_batches_are_different_groups():
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    metric = AvgSim(2)
    metric.update(x, ["a", "a"])
    metric.update(-x, ["a", "a"])
    assert metric.compute() == -1


def test_words_outside_of_the_vocabulary_change_nothing():
    x, words = torch.randn(12, 4), np.array([0, 1] * 6)
    small, large = SelfSim(2, 4, min_count=2), SelfSim(2, 4, min_count=2)
    small.update(x, words)
    large.update(torch.cat([x, torch.randn(3, 4)]), [*words, -1, -1, -1])
    large.update(torch.randn(3, 4), [-1, -1, -1])  # a batch without a known word
    assert torch.equal(small.compute(), large.compute())


def test_a_word_in_fewer_contexts_has_no_value():
    metric = SelfSim(3, 2, min_count=3)
    metric.update(np.ones((6, 2)), [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 0, 2])
    np.testing.assert_allclose(metric.compute(), [1, np.nan, np.nan])


def test_pairs_within_a_sentence_do_not_count():
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    metric = SelfSim(1, 2, min_count=2)
    metric.update(x, [0, 0, 0], [5, 5, 8])
    assert metric.compute() == 0


def test_no_frequent_word_is_refused():
    metric = SelfSim(3, 2)
    metric.update(np.ones((4, 2)), [0, 0, 0, 1])
    with pytest.raises(ValueError, match=r"none of 3 stands in 5 contexts or more, 0 in 3; lower"):
        metric.compute()


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ([0, 1], r"words needs one label a row: 3 rows, got shape \(2,\)"),
        ([[0], [1], [2]], r"words must be whole numbers, one a row, .* shape \(3, 1\)"),
        ([0.0, 1.0, 2.0], "words must be whole numbers, one a row, got dtype torch.float32"),
        ([0, 1, 3], "words must be −1 … 2, got 0 … 3"),
        ([0, 1, -2], "words must be −1 … 2, got -2 … 1"),
    ],
)
def test_numbers_that_name_no_word_are_refused(words, match):
    with pytest.raises(ValueError, match=match):
        SelfSim(3, 2).update(np.ones((3, 2)), words)


def test_occurrences_read_once_do_for_several_layers():
    x, words, sentences = torch.randn(2, 30, 4), np.arange(30) % 3, np.arange(30) // 5
    found = Occurrences(words, sentences)
    for layer in x:
        once, twice = SelfSim(3, 4), SelfSim(3, 4)
        once.update(layer, words, sentences)
        twice.update(layer, found)
        assert torch.equal(once.compute(), twice.compute())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_words": 0}, "n_words must be at least 1, got 0"),
        ({"n_words": 3, "min_count": 1}, "min_count must be at least 2, .*; got 1"),
    ],
)
def test_a_vocabulary_that_has_no_pairs_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        SelfSim(n_features=2, **options)


def test_sides_of_other_samples_are_refused():
    with pytest.raises(ValueError, match="same samples as rows, got 5 and 4 rows"):
        CKA(3).update(np.ones((5, 3)), np.ones((4, 3)))
    with pytest.raises(ValueError, match="same samples as rows, got 5 and 4 rows"):
        LayerCKA([3, 3]).update([np.ones((5, 3)), np.ones((4, 3))])


def test_another_number_of_layers_is_refused():
    with pytest.raises(ValueError, match="layers: expected 3 matrices, got 2"):
        LayerCKA([3, 3, 3]).update(torch.randn(2, 5, 3))


def test_the_damaged_layer_is_named():
    with pytest.raises(ValueError, match=r"layers\[1\] must have 3 columns, got shape \(5, 4\)"):
        LayerCKA([3, 3]).update([np.ones((5, 3)), np.ones((5, 4))])
    with pytest.raises(ValueError, match=r"y of shape \(5, 3\) has NaN"):
        CKA(3).update(np.ones((5, 3)), np.full((5, 3), np.nan))


def test_a_layer_without_alignment_leaves_the_others_theirs():
    x = torch.randn(2, 5, 5)
    metric = LayerCKA([5, 5, 5], debiased=True)
    metric.update([x[0], torch.eye(5), x[1]])
    with pytest.warns(UserWarning, match="of side or layer 1 with itself"):
        matrix = metric.compute()
    assert torch.isnan(matrix[1]).all()
    assert torch.isnan(matrix[:, 1]).all()
    assert float(matrix[0, 2]) == pytest.approx(cka(x[0], x[1], debiased=True), rel=1e-12)


def test_a_matrix_is_aligned_with_itself_whatever_its_scale():
    x = torch.randn(30, 4).double() + 1e3
    metric = LayerCKA([4, 4], debiased=True)
    for batch in x.split(7):
        metric.update([batch, batch * 1e-140])
    np.testing.assert_allclose(metric.compute(), np.ones((2, 2)), rtol=1e-12)


def test_the_state_of_the_layers_grows_with_their_pairs():
    """Seven layers of 384 columns: 28 blocks, 33 MB, and little else."""
    metric = LayerCKA([384] * 7)
    n_bytes = sum(state.nbytes for state in metric.metric_state.values())
    assert 28 * 384**2 * 8 < n_bytes < 1.01 * 28 * 384**2 * 8


@pytest.mark.parametrize("metric", [Spectrum(3, center=True), IsoScore(3), EffectiveRank(3)])
def test_identical_rows_on_two_workers_have_no_variance(metric):
    metric.reset()
    other = metric.clone()
    metric.update(np.full((4, 3), 0.1))
    other.update(np.full((7, 3), 0.1))
    metric.merge_state(other)
    with pytest.raises(ValueError, match=r"has seen 11 row\(s\) with no variance"):
        metric.compute()


@pytest.mark.parametrize("k", [0, -1, 4])
def test_more_scores_than_there_are_are_refused(k):
    metric = Spectrum(8, k=k)
    metric.update(torch.randn(3, 8))
    with pytest.raises(ValueError, match=rf"k must be between 1 and min.* = 3, got {k} after 3"):
        metric.compute()


def test_the_correction_is_undefined_for_equidistant_rows():
    metric = IsoScore(7, bias_corrected=True)
    for row in torch.eye(7):
        metric.update(row[None])
    with pytest.raises(ValueError, match="undefined for these 7 rows"):
        metric.compute()


@pytest.mark.parametrize("n", [2, 5, 30])
def test_fewer_rows_than_columns_have_the_value_of_all_rows(n):
    x = np.random.default_rng(0).normal(size=(n, 40))
    metric = EffectiveRank(40)
    for batch in np.array_split(x, 2):
        metric.update(batch)
    assert float(metric.compute()) == pytest.approx(effective_rank(x), rel=1e-12)


def test_many_null_directions_do_not_count():
    """From a scatter matrix each of the 294 would count with 1e-8 of the largest, 1 % in all."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 300)) + 10
    metric = EffectiveRank(300)
    for batch in np.array_split(x, 3):
        metric.update(batch)
    assert float(metric.compute()) == pytest.approx(effective_rank(x), rel=1e-10)


@pytest.mark.parametrize(
    ("metric", "needed"),
    [
        (IsoScore(3), 2),
        (IsoScore(3, bias_corrected=True), 4),
        (CKA(3), 2),
        (CKA(3, debiased=True), 4),
        (AvgSim(3), 2),
        (RogueDimensions(3), 2),
    ],
)
def test_too_few_rows_are_refused(metric, needed):
    x = torch.randn(needed - 1, 3)
    metric.update(*([x, x] if isinstance(metric, CKA) else [x]))
    match = rf"needs at least {needed} row\(s\), it has seen {needed - 1}"
    with pytest.raises(ValueError, match=match):
        metric.compute()


@pytest.mark.parametrize(
    ("metric", "batch", "match"),
    [
        (AvgSim(2), ([0, 1],), "groups"),
        (SelfSim(3, 2), ([0, 1],), "words"),
        (SelfSim(3, 2), ([0, 1, 2], ["a", "b"]), "sentences"),
    ],
)
def test_labels_of_another_length_are_refused(metric, batch, match):
    with pytest.raises(ValueError, match=rf"{match} needs one label a row: 3 rows, .* \(2,\)"):
        metric.update(np.ones((3, 2)), *batch)


@pytest.mark.parametrize(
    ("metric", "batch", "match"),
    [
        (Spectrum(3), [torch.zeros(4, 3)], r"has seen 8 row\(s\) with nothing but zeros"),
        (EffectiveRank(3, center=False), [torch.zeros(4, 3)], "8 .* with nothing but zeros"),
        (CKA(3, 2), [torch.eye(3), torch.full((3, 2), 0.1)], "layer 1 has no variance"),
        (
            CKA(4, 2, debiased=True),
            [torch.eye(4), torch.full((4, 2), 0.1)],
            "layer 1 has no variance",
        ),
    ],
)
def test_rows_with_nothing_to_measure_are_refused(metric, batch, match):
    for _ in range(2):
        metric.update(*batch)
    with pytest.raises(ValueError, match=match):
        metric.compute()


def test_iso_score_of_a_single_column_is_refused():
    with pytest.raises(ValueError, match="n_features must be at least 2, got 1"):
        IsoScore(1)
