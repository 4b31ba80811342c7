"""Claims on stitching and on sizes, on made-up tables in which the truth is known."""

from __future__ import annotations

from importlib import import_module
from itertools import permutations

import pandas as pd
import pytest

from shrink_utils.study.claims.stitching import floors_above_untrained, stitching_claims
from shrink_utils.study.stitching.stitched import penalty_floors
from tests.study.stitching.test_family_structure import family_table

module = import_module("shrink_utils.study.claims.stitching")  # the room has its function

DEPTH = 4
OWN = {0: 0.01, 1: -0.02, 2: 0.03}  # what a front of this number adds: the noise


OWN_LOSS = {"gelu": 4.0, "solu": 4.1}  # SoLU models are worse by themselves


def _stitched(*, asymmetry=0.2, untrained=2.0, identity=3.0, trained=0.5, far=0.1):
    """Least squares cost 1 between seeds, plus `far` a layer apart."""
    rows = []

    def add(relation, front, back, base):
        values = {"affine": base, "identity": base + identity - 1, "trained": base + trained - 1}
        for kind, value in values.items():
            for i in range(DEPTH + 1):
                for j in range(DEPTH + 1):
                    if kind == "affine" or (i == j and (kind == "identity" or i == 2)):
                        # Embeddings hold a number that only the row on distance may read.
                        penalty = value + far * abs(i - j) + OWN[front[1]]
                        loss = penalty + OWN_LOSS[back[0]]
                        rows.append((relation, *front, *back, kind, i, j, loss, penalty))

    for n in OWN:
        add("activation", ("solu", n), ("gelu", n), 1.5 + asymmetry + OWN[n])
        add("activation", ("gelu", n), ("solu", n), 1.5)
        for a in ("gelu", "solu"):
            add("same", (a, n), (a, n), 0.0)
            add("untrained", ("untrained", n), (a, n), 1 + untrained)
    for front, back in permutations(OWN, 2):
        for a in ("gelu", "solu"):
            add("seed", (a, front), (a, back), 1.0)
    columns = (
        "relation front front_number back back_number kind front_layer back_layer loss penalty"
    )
    return pd.DataFrame(rows, columns=columns.split())


FAMILY = family_table(between=lambda a, b, seed: 0.7 - 0.1 * ((a, b) == ("small", "large")))


def _row(stitched=None, family=None, *, claim):
    table = stitching_claims(
        _stitched() if stitched is None else stitched, FAMILY if family is None else family
    )
    return table.set_index("claim").loc[f"b:{claim}"]


def test_every_row_has_its_noise_floor_and_its_name():
    table = stitching_claims(_stitched(), FAMILY)
    assert table.claim.is_unique and table.claim.str.match("b:(stitch|family)-").all()
    assert table.floor.notna().all() and (table.n == 3).all()


def test_the_floor_of_a_penalty_is_its_spread_between_seeds():
    floors = penalty_floors(_stitched()).set_index(["kind", "front_layer", "back_layer"]).floor
    # To back k come the fronts of both other numbers; the spread is that over all six pairs.
    fronts = pd.Series([OWN[front] for front, _ in permutations(OWN, 2)])
    assert floors["affine", 1, 3] == pytest.approx(fronts.std())
    assert ("trained", 2, 2) in floors.index and ("trained", 1, 1) not in floors.index


@pytest.mark.parametrize("kind", ["affine", "trained"])
def test_the_asymmetry_is_paired_by_number_and_says_what_seeds_alone_do(kind):
    row = _row(claim=f"stitch-asymmetry:{kind}")
    assert row.estimate == pytest.approx(0.2 + sum(OWN.values()) / 3)
    assert row.verdict == "replicated"
    turned = [(OWN[a] - OWN[b]) ** 2 for a, b in permutations(OWN, 2)]
    assert row.floor == pytest.approx((sum(turned) / 6) ** 0.5)


def test_the_gap_of_own_losses_is_taken_out_where_stitched_models_are_compared():
    penalty, loss = (_row(claim=f"stitch-asymmetry{name}:affine") for name in ("", "-loss"))
    assert loss.estimate == pytest.approx(penalty.estimate - (4.1 - 4.0))
    assert loss.floor == pytest.approx(penalty.floor)


@pytest.mark.parametrize(
    ("asymmetry", "verdict"), [(-0.2, "not replicated"), (0.0, "inconclusive")]
)
def test_the_other_direction_and_none_are_told(asymmetry, verdict):
    row = _row(_stitched(asymmetry=asymmetry), claim="stitch-asymmetry:affine")
    assert row.verdict == verdict


def test_an_untrained_bottom_is_counted_in_floors():
    stitched = _stitched()
    row = _row(stitched, claim="stitch-untrained:trained")
    assert row.verdict == "replicated" and row.estimate == pytest.approx(2, abs=0.05)
    found = floors_above_untrained(stitched, "trained")
    assert found == pytest.approx(row.estimate / row.floor)
    assert _row(_stitched(untrained=-2.0), claim="stitch-untrained:affine").verdict == (
        "not replicated"
    )


def test_maps_are_compared_on_the_same_stitches():
    row = _row(claim="stitch-trained-affine")
    assert row.estimate == pytest.approx(-0.5) and row.verdict == "replicated"
    assert _row(claim="stitch-affine-identity").estimate == pytest.approx(-2.0)
    assert _row(_stitched(trained=1.5), claim="stitch-trained-affine").verdict == "not replicated"


def test_distance_compares_far_layers_with_equal_ones():
    row = _row(claim="stitch-distance")
    # 3 apart: (0, 3), (1, 4) and back; 4 apart: (0, 4) and back.
    assert row.estimate == pytest.approx(0.1 * (4 * 3 + 2 * 4) / 6)
    assert row.verdict == "replicated"


def test_a_family_that_follows_size_has_no_deviant():
    assert _row(claim="family-deviant").verdict == "not replicated"


def test_a_deviant_is_found_and_blocks_are_those_that_training_makes():
    def within(i, j, weights):
        blocks = (0.9 if (i < 3) == (j < 3) else 0.1) if weights == "trained" else 0.5
        return blocks

    def between(a, b, seed):
        return (0.7 if (a, b) == ("small", "large") else 0.4) + 0.01 * seed

    family = family_table(between=between, within=within)
    assert _row(family=family, claim="family-deviant").estimate == pytest.approx(0.3)
    assert _row(family=family, claim="family-blocks-contrast").estimate == pytest.approx(0.8)
    row = _row(family=family, claim="family-alike")
    assert row.estimate == pytest.approx(0.5 + 0.01 - 0.3)
    assert row.floor == pytest.approx(0.01)


def test_the_deviant_is_chosen_on_other_seeds_than_it_is_judged_on(monkeypatch):
    wide = pd.DataFrame(
        {"member": ["m", "n"] * 3, "seed": [0, 0, 1, 1, 2, 2], "deviance": [9, 0, 0, 5, 0, 5]}
    )
    monkeypatch.setattr(module, "deviance", lambda _: wide)
    row = _row(claim="family-deviant")
    # Seed 0 alone prefers m; the others choose n for it. Seeds 1 and 2 choose m (9 against 5).
    assert row.estimate == pytest.approx((0 + 0 + 0) / 3)


def test_a_family_without_seeds_decides_nothing():
    family = family_table(between=lambda *_: 0.5, seeds=(0,))
    row = _row(family=family, claim="family-deviant")
    assert row.n == 1 and row.verdict == "inconclusive" and pd.isna(row.floor)
