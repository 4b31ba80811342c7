"""Block structure, on matrices whose structure is known."""

from __future__ import annotations

import numpy as np
import pytest

from shrink_utils.study.stitching.blocks import two_blocks


def test_planted_blocks_are_found_with_their_contrast():
    matrix = np.full((5, 5), 0.2)
    matrix[:2, :2] = matrix[2:, 2:] = 0.9
    found = two_blocks(matrix)
    assert found.first_above == 2 and found.contrast == pytest.approx(0.7)
    assert 0.1 < found.beyond_distance < 0.7


def test_similarity_that_fades_with_distance_has_contrast_and_nothing_beyond():
    apart = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    found = two_blocks(0.8**apart)
    assert found.contrast > 0.1 and found.beyond_distance == pytest.approx(0, abs=1e-12)


def test_contrast_is_within_minus_between_of_the_best_cut():
    rng = np.random.default_rng(0)
    matrix = rng.random((4, 4))
    matrix = matrix + matrix.T
    contrasts = []
    for cut in (1, 2, 3):
        inside = [matrix[i, j] for i in range(4) for j in range(i) if (i < cut) == (j < cut)]
        across = [matrix[i, j] for i in range(4) for j in range(i) if (i < cut) != (j < cut)]
        contrasts.append(np.mean(inside) - np.mean(across))
    found = two_blocks(matrix)
    assert found.contrast == pytest.approx(max(contrasts))
    assert found.first_above == np.argmax(contrasts) + 1


def test_the_diagonal_does_not_count():
    matrix = np.array([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
    assert two_blocks(matrix) == two_blocks(matrix - np.eye(3))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 2)), r"shape \(2, 2\)"),
        (np.ones((3, 4)), r"shape \(3, 4\)"),
        (np.full((3, 3), np.nan), "has NaN"),
    ],
)
def test_errors_name_the_argument(matrix, message):
    with pytest.raises(ValueError, match=f"similarity.*{message}"):
        two_blocks(matrix)
