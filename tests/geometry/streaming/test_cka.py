"""CKA and LayerCKA: what they do beside merging."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils.geometry import cka
from shrink_utils.geometry.streaming import CKA, LayerCKA


@pytest.mark.parametrize(("debiased", "needed"), [(False, 2), (True, 4)])
def test_too_few_rows_are_refused(debiased, needed):
    metric = CKA(3, debiased=debiased)
    metric.update(torch.randn(needed - 1, 3), torch.randn(needed - 1, 3))
    with pytest.raises(ValueError, match=rf"CKA needs at least {needed} row\(s\)"):
        metric.compute()


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


@pytest.mark.parametrize("debiased", [False, True])
def test_a_side_without_variance_is_refused(debiased):
    metric = CKA(3, 2, debiased=debiased)
    for _ in range(2):
        metric.update(torch.randn(6, 3), torch.full((6, 2), 0.1))
    with pytest.raises(ValueError, match="side or layer 1 has no variance"):
        metric.compute()


def test_equidistant_rows_have_no_debiased_alignment():
    metric = CKA(5, 2, debiased=True)
    metric.update(torch.eye(5), torch.randn(5, 2))
    with pytest.warns(UserWarning, match="CKA is NaN: .* of side or layer 0 with itself is 0"):
        assert torch.isnan(metric.compute())


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
