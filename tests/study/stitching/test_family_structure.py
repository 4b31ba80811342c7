"""Numbers read off a family's CKA, on tables in which the truth is known."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study.stitching.family_structure import (
    affinity,
    deviance,
    seed_deviance,
    two_blocks,
)

DEPTHS = {"small": 2, "middle": 4, "large": 4}


def family_table(*, between, seeds=(0, 1, 2), within=None, between_seeds=0.8, untrained=0.3):
    """A table like `measure_family`'s; `between` gives the CKA of two members and a seed.

    Embeddings, and layers of unequal relative depth, hold a number that must not be read.
    """
    rows = []
    for seed in seeds:
        for weights in ("trained", "untrained"):
            for member, depth in DEPTHS.items():
                for i in range(depth + 1):
                    for j in range(depth + 1):
                        value = (within or (lambda i, j, w: 1 - abs(i - j) / 10))(i, j, weights)
                        rows.append(("within", weights, member, member, seed, seed, i, j, value))
            for a, b in combinations(DEPTHS, 2):
                for i in range(DEPTHS[a] + 1):
                    for j in range(DEPTHS[b] + 1):
                        equal = i > 0 and j == i * DEPTHS[b] / DEPTHS[a]
                        value = between(a, b, seed) if weights == "trained" else untrained
                        if equal or weights == "trained":
                            value = value if equal else 40.0
                            rows.append(("members", weights, a, b, seed, seed, i, j, value))
    for member, depth in DEPTHS.items():
        for a, b in combinations(seeds, 2):
            value = between_seeds if np.isscalar(between_seeds) else between_seeds[a, b]
            rows += [
                ("seeds", "trained", member, member, a, b, i, i, value if i else 40.0)
                for i in range(depth + 1)
            ]
    columns = "relation weights member other seed other_seed layer other_layer cka".split()
    return pd.DataFrame(rows, columns=columns)


def test_affinity_is_the_mean_over_equal_relative_depth_without_embeddings():
    table = family_table(between=lambda a, b, seed: 0.5 + 0.1 * seed)
    found = affinity(table)
    trained = found[(found.relation == "members") & (found.weights == "trained")]
    assert len(trained) == 9
    np.testing.assert_allclose(trained.cka, 0.5 + 0.1 * trained.seed)
    seeds = found[found.relation == "seeds"]
    assert len(seeds) == 9 and (seeds.cka == 0.8).all()


@pytest.mark.parametrize(("near", "other", "ends"), [(0.4, 0.5, 0.7), (0.8, 0.8, 0.6)])
def test_deviance_is_above_zero_for_a_member_that_is_skipped_over(near, other, ends):
    apart = {("small", "middle"): near, ("middle", "large"): other, ("small", "large"): ends}
    found = deviance(family_table(between=lambda a, b, seed: apart[a, b]))
    assert set(found.member) == {"middle"} and len(found) == 3
    np.testing.assert_allclose(found.deviance, ends - (near + other) / 2)


def test_the_floor_is_the_same_number_among_seeds():
    cka = {(0, 1): 0.8, (0, 2): 0.7, (1, 2): 0.9}
    found = seed_deviance(family_table(between=lambda *_: 0.5, between_seeds=cka))
    expected = [0.8 - (0.7 + 0.9) / 2, 0.7 - (0.8 + 0.9) / 2, 0.9 - (0.8 + 0.7) / 2]
    np.testing.assert_allclose(sorted(found), sorted(3 * expected), atol=1e-12)


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
