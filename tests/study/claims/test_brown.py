"""Claims on similarity, on made-up tables in which the truth is known."""

from __future__ import annotations

import pandas as pd
import pytest

from shrink_utils.study.claims.brown import brown_claims

NOISE = {0: -0.004, 1: 0.001, 2: 0.003}
DEPTH = 4


def _rows(pair, arm, value, measures=("cka_debiased", "rsa")):
    return [
        {
            "pair": pair,
            "task": "sentiment_movies",
            "arm": arm,
            "seed": seed,
            "measure": measure,
            "layer": layer,
            "other": other,
            "value": value(layer, other) + noise * layer,
        }
        for measure in measures
        for seed, noise in NOISE.items()
        for layer in range(DEPTH + 1)
        for other in range(DEPTH + 1)
    ]


def _table(*, top=0.1, part=0.1):
    """Similarity falls by `top` a layer; that of the arms by `part`; neighbours are alike."""
    rows = _rows("within", "none", lambda i, j: 1 - abs(i - j) / 5, measures=("cka_debiased",))
    for arm in ("none", "all"):
        # Unequal layers say nothing about change: noise that must not be read.
        rows += _rows("finetuned", arm, lambda i, j: 1 - top * i if i == j else 40.0 * i)
    rows += _rows("arms", "all", lambda i, j: 1 - part * i)
    rows += _rows("itself", "", lambda i, j: 0.5)
    return pd.DataFrame(rows)


def _row(table, name, arm):
    return brown_claims(table).set_index("claim").loc[f"b:{name}:sentiment_movies:{arm}"]


@pytest.mark.parametrize("measure", ["cka_debiased", "rsa"])
def test_a_last_layer_that_changes_more_is_replicated_with_its_paired_mean(measure):
    row = _row(_table(), f"late-change-{measure}", "none")
    assert row.verdict == "replicated" and row.n == 3 and row.unit == "seeds"
    assert row.estimate == pytest.approx(0.1 * (DEPTH - 1))


def test_a_first_layer_that_changes_more_is_not():
    assert _row(_table(top=-0.1), "late-change-rsa", "all").verdict == "not replicated"


def test_equal_change_is_inconclusive():
    assert _row(_table(top=0), "late-change-rsa", "none").verdict == "inconclusive"


def test_the_arms_are_asked_where_they_part():
    assert _row(_table(), "part-late", "all").verdict == "replicated"
    assert _row(_table(part=-0.1), "part-late", "all").verdict == "not replicated"


def test_neighbours_are_layers_next_to_each_other_and_the_others_over_half_the_depth_apart():
    row = _row(_table(), "neighbours", "none")
    # 1 apart: .8. 3 or 4 apart, of 5 layers: 2 pairs and 1 pair, .4 and .2.
    assert row.estimate == pytest.approx(0.8 - (2 * 0.4 + 0.2) / 3)
    assert row.verdict == "replicated"


def test_every_arm_has_its_claims_and_the_encoder_alone_has_none():
    claims = brown_claims(_table())
    assert set(claims.arm) == {"none", "all"}
    assert len(claims) == 2 * 2 + 1 + 1
    assert claims.claim.is_unique


def test_one_seed_decides_nothing():
    table = _table()
    assert set(brown_claims(table[table.seed == 0]).verdict) == {"inconclusive"}
