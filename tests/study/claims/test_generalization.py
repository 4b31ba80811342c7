"""B's claims on made-up models of which the truth is known."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study.claims.generalization import (
    generalization_claims,
    group_accuracies,
    published_accuracies,
)
from shrink_utils.study.generalization.models import COLUMNS
from shrink_utils.study.generalization.pair_groups import GROUPS
from shrink_utils.study.generalization.parting import crossed, gap, pairs_of, relation_intervals
from shrink_utils.text.heuristic_templates import TEMPLATES

NUMBERS, LAST = range(4), 4
GAPS = {0: 0.0, 1: 0.05, 2: 0.2, 3: 0.4, 4: 0.5}  # within less between, by layer
SWAPS = {0: -0.6, 1: -0.5, 2: 0.0, 3: 0.2, 4: 0.4}  # generalizing below less generalizing above


def _accuracy(group, data, template=None):
    if data == "dev":
        return {"heuristic": 0.95, "generalizing": 0.94}[group]
    if template.entailed:
        return 0.9
    return {"heuristic": 0.1, "generalizing": 0.6}[group]


def _table(seed=0, noise=0.005, unseen=None):
    rng, rows = np.random.default_rng(seed), []
    members = [(group, number) for number in NUMBERS for group in GROUPS]
    luck = {member: noise * rng.standard_normal() for member in members}
    for group, number in members:
        about = {"quantity": "accuracy", "group": group, "number": number}
        rows.append(
            {**about, "data": "dev", "value": _accuracy(group, "dev") + luck[group, number]}
        )
        for data in ("overlap", "new words"):
            for t in TEMPLATES:
                value = _accuracy(group, data, t) + luck[group, number]
                label = "entailment" if t.entailed else "not_entailment"
                keys = {"heuristic": t.heuristic, "label": label, "template": t.name}
                rows.append({**about, **keys, "data": data, "value": value})
    for pairs, quantities in ((combinations, ["cka"]), (permutations, ["penalty", "stitched"])):
        for front, back in pairs(members, 2):
            keys = dict(
                zip(("group", "number", "other", "other_number"), (*front, *back), strict=True)
            )
            for quantity in quantities:
                for data in ("dev", "overlap"):
                    for layer in GAPS:
                        value = _pair(quantity, front, back, layer) + luck[front] + luck[back]
                        value += noise * rng.standard_normal()
                        row = {**keys, "quantity": quantity, "data": data, "layer": layer}
                        rows.append({**row, "value": value})
    return pd.DataFrame([{**COLUMNS, **row} for row in rows])


def _pair(quantity, front, back, layer):
    two = front[0] != back[0]
    if quantity == "cka":
        return 0.9 - two * GAPS[layer]
    if quantity == "penalty":
        return 0.1 + two * GAPS[layer]
    return 0.5 + two * SWAPS[layer] * (0.5 if front[0] == "generalizing" else -0.5)


@pytest.fixture(scope="module")
def made():
    return _table()


@pytest.fixture(scope="module")
def claims(made):
    return generalization_claims(made).set_index("claim")


def test_ids_are_unique_and_every_row_has_a_floor(claims):
    assert claims.index.is_unique and claims.index.str.startswith("b:generalization-").all()
    assert (claims.floor > 0).all() and (claims.floor < 0.05).all()
    assert set(claims.unit) == {"models"} and set(claims.n) == {4}


EXPECTED = {
    "accuracy-lexical-overlap": (0.5, "replicated"),
    "accuracy-subsequence": (0.5, "replicated"),
    "accuracy-constituent": (0.5, "replicated"),
    "accuracy-unseen": (0.5, "replicated"),
    "accuracy-new-words": (0.25, "replicated"),  # half of the pairs are entailed
    "accuracy-dev": (-0.01, "replicated"),
    "cka-late-overlap": (GAPS[LAST] - GAPS[1], "replicated"),
    "cka-early-overlap": (GAPS[1] - GAPS[LAST] / 2, "replicated"),
    "cka-middle-overlap": (GAPS[2] - GAPS[LAST] / 2, "replicated"),
    "cka-late-dev": (GAPS[LAST] - GAPS[1], "replicated"),
    "cka-early-dev": (GAPS[1] - GAPS[LAST] / 2, "replicated"),
    "cka-middle-dev": (GAPS[2] - GAPS[LAST] / 2, "replicated"),
    "stitch-late": (GAPS[LAST] - GAPS[1], "replicated"),
    "stitch-above": (SWAPS[1], "replicated"),
    "stitch-below": (SWAPS[LAST], "replicated"),
}


def test_every_claim_finds_what_was_planted(claims):
    assert set(claims.index) == {f"b:generalization-{name}" for name in EXPECTED}
    for name, (value, verdict) in EXPECTED.items():
        row = claims.loc[f"b:generalization-{name}"]
        assert row.estimate == pytest.approx(value, abs=0.02), name
        assert row.verdict == verdict, name


def test_groups_that_part_early_are_not_said_to_part_late(made):
    early = made.copy()
    pairs = early.layer >= 0
    early.loc[pairs, "layer"] = early.layer[pairs].map({0: 0, 1: LAST, 2: 2, 3: 3, LAST: 1})
    found = generalization_claims(early).set_index("claim").verdict
    for name in ("cka-late-overlap", "cka-early-overlap", "cka-middle-dev", "stitch-late"):
        assert found[f"b:generalization-{name}"] == "not replicated"
    for name in ("stitch-above", "stitch-below"):
        assert found[f"b:generalization-{name}"] == "not replicated"


def test_groups_that_answer_alike_are_not_told_apart(made):
    same = made.copy()
    accuracies = same.quantity == "accuracy"
    swap = accuracies & (same.number % 2 == 0)  # half of the models change sides
    same.loc[swap, "group"] = same.group[swap].map(dict(zip(GROUPS, GROUPS[::-1], strict=True)))
    found = generalization_claims(same).set_index("claim").verdict
    assert found["b:generalization-accuracy-lexical-overlap"] == "inconclusive"


def test_hans_has_no_rows_of_our_controls(made):
    hans = made[made.data != "new words"].copy()
    hans["template"] = hans.template.where(hans.template == "", "ln_" + hans.template)
    found = set(generalization_claims(hans).claim)
    missing = {"accuracy-unseen", "accuracy-new-words"}
    assert found == {f"b:generalization-{name}" for name in set(EXPECTED) - missing}


def test_the_published_gap_is_that_of_the_two_groups_of_ten(claims):
    assert claims.loc["b:generalization-accuracy-lexical-overlap"].published == pytest.approx(0.409)
    table = published_accuracies()
    assert set(table.group) == {"all 100", *GROUPS}
    runs = table.set_index("group").runs[list(GROUPS)].str.split()
    assert runs.map(len).tolist() == [10, 10] and not set(runs.iloc[0]) & set(runs.iloc[1])


def test_accuracies_of_a_model_are_means_over_templates(made):
    found = group_accuracies(made)
    cell = found[(found.data == "overlap") & (found.heuristic == "subsequence")]
    assert len(cell) == 2 * len(NUMBERS) * 2
    refuted = cell[(cell.label == "not_entailment") & (cell.group == "generalizing")]
    rows = made[(made.template == "subject_place") & (made.data == "overlap")]
    rows = rows[rows.group == "generalizing"]
    assert refuted.value.to_numpy() == pytest.approx(rows.value.to_numpy())


def test_gap_and_crossing_are_means_over_the_pairs_of_those_numbers(made):
    rows = pairs_of(made, "penalty", "dev")
    some = rows[rows.number.isin([0, 2]) & rows.other_number.isin([0, 2]) & (rows.layer == 2)]
    two = some.group != some.other
    within = [some[~two & (some.group == group)].value.mean() for group in GROUPS]
    assert gap(rows, [0, 2], 2) == pytest.approx(np.mean(within) - some[two].value.mean())
    rows = pairs_of(made, "stitched", "overlap")
    some = rows[rows.number.isin([1, 3]) & rows.other_number.isin([1, 3]) & (rows.layer == 1)]
    below = some[(some.group == "generalizing") & (some.other == "heuristic")].value.mean()
    above = some[(some.group == "heuristic") & (some.other == "generalizing")].value.mean()
    assert crossed(rows, [1, 3], 1) == pytest.approx(below - above)


def test_relations_and_crossings_have_a_line_each_and_its_interval(made):
    found = relation_intervals(pairs_of(made, "cka", "overlap"))
    assert set(found.relation) == {*GROUPS, "between"} and len(found) == 3 * len(GAPS)
    between = found[found.relation == "between"].set_index("layer")
    for layer, expected in GAPS.items():
        assert between.estimate[layer] == pytest.approx(0.9 - expected, abs=0.02)
    assert ((found.low < found.estimate) & (found.estimate < found.high)).all()
    crossings = relation_intervals(pairs_of(made, "stitched", "dev"), by="crossing")
    assert set(crossings.crossing) == {
        "heuristic below generalizing",
        "generalizing below heuristic",
    }
