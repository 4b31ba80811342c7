"""Claims on models trained here, on made-up records and tables in which the truth is known."""

from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import penalty_floors
from shrink_utils.study.claims.brown import (
    floors_above_untrained,
    generalization_claims,
    group_accuracies,
    published_accuracies,
    stitching_claims,
)
from shrink_utils.study.generalization.experiment import (
    COLUMNS,
    GROUPS,
    crossed,
    gap,
    pairs_of,
    relation_intervals,
)
from shrink_utils.text.pairs import TEMPLATES

DEPTH = 4
OWN = {0: 0.01, 1: -0.02, 2: 0.03}  # what a front of this number adds: the noise
OWN_LOSS = {"gelu": 4.0, "solu": 4.1}  # SoLU models are worse by themselves


def _stitched(*, asymmetry=0.2, untrained=2.0, identity=3.0, trained=0.5, far=0.1):
    """Least squares cost 1 between seeds, plus `far` a layer apart."""
    rows, dearer = [], {"affine": 0.0, "identity": identity - 1, "trained": trained - 1}

    def add(relation, front, back, base):
        for kind, i, j in product(dearer, range(DEPTH + 1), range(DEPTH + 1)):
            if kind == "affine" or (i == j and (kind == "identity" or i == 2)):
                penalty = base + dearer[kind] + far * abs(i - j) + OWN[front[1]]
                if i == j == 0 and relation != "seed":
                    penalty += 50 + 9 * (front[0] == "solu")  # no claim may read it
                loss = penalty + OWN_LOSS[back[0]]
                rows.append((relation, *front, *back, kind, i, j, loss, penalty))

    for n in OWN:
        add("activation", ("solu", n), ("gelu", n), 1.5 + asymmetry + OWN[n])
        add("activation", ("gelu", n), ("solu", n), 1.5)
        for a in ("gelu", "solu"):
            add("same", (a, n), (a, n), 0.0)
            add("untrained", ("untrained", n), (a, n), 1 + untrained)
    for (front, back), a in product(permutations(OWN, 2), ("gelu", "solu")):
        add("seed", (a, front), (a, back), 1.0)
    columns = "relation front front_number back back_number kind front_layer back_layer".split()
    return pd.DataFrame(rows, columns=[*columns, "loss", "penalty"])


def _stitching(stitched=None, **changes):
    found = stitching_claims(_stitched(**changes) if stitched is None else stitched)
    return found.set_index(found.claim.str.removeprefix("b:"))


def test_the_floor_of_a_penalty_is_its_spread_between_seeds():
    floors = penalty_floors(_stitched()).set_index(["kind", "front_layer", "back_layer"]).floor
    # To back k come the fronts of both other numbers; the spread is that over all six pairs.
    fronts = pd.Series([OWN[front] for front, _ in permutations(OWN, 2)])
    assert floors["affine", 1, 3] == pytest.approx(fronts.std())
    assert ("trained", 2, 2) in floors.index and ("trained", 1, 1) not in floors.index


@pytest.mark.parametrize("kind", ["affine", "trained"])
def test_the_asymmetry_is_paired_by_number_and_says_what_seeds_alone_do(kind):
    row = _stitching().loc[f"stitch-asymmetry:{kind}"]
    assert row.estimate == pytest.approx(0.2 + sum(OWN.values()) / 3)
    assert (row.verdict, row.n) == ("agrees", 3)
    turned = [(OWN[a] - OWN[b]) ** 2 for a, b in permutations(OWN, 2)]
    assert row.floor == pytest.approx((sum(turned) / 6) ** 0.5)


def test_what_the_model_on_top_costs_by_itself_is_no_asymmetry():
    """GeLU models are dearer to stitch below, whatever is below them."""
    stitched = _stitched(asymmetry=0.0)
    stitched.loc[stitched.back == "gelu", "penalty"] += 0.3
    found = _stitching(stitched=stitched)
    assert found.verdict["stitch-asymmetry:affine"] == "agrees"
    assert found.estimate["stitch-asymmetry-net:affine"] == pytest.approx(0.0, abs=0.02)
    assert found.verdict["stitch-asymmetry-net:affine"] == "inconclusive"
    row = found.loc["stitch-same-activation:trained"]
    assert row.estimate == pytest.approx(-0.3) and row.verdict == "agrees"


def test_both_crossings_are_held_against_gelu_below_gelu():
    found = _stitching().filter(like="stitch-crossing", axis=0)
    assert found.estimate["stitch-crossing-gelu:affine"] == pytest.approx(0.5, abs=0.02)
    assert found.estimate["stitch-crossing-solu:affine"] == pytest.approx(0.7, abs=0.02)
    assert set(found.verdict) == {"agrees"} and len(found) == 2


def test_every_stitching_claim_has_a_floor_and_three_models():
    assert _stitching().floor.notna().all() and (_stitching().n == 3).all()


@pytest.mark.parametrize(
    ("changes", "claim", "estimate", "verdict"),
    [
        ({"asymmetry": -0.2}, "stitch-asymmetry:affine", -0.2, "disagrees"),
        ({"asymmetry": 0.0}, "stitch-asymmetry:affine", 0.0, "inconclusive"),
        ({}, "stitch-untrained:trained", 2.0, "agrees"),
        ({"untrained": -2.0}, "stitch-untrained:affine", -2.0, "disagrees"),
        ({}, "stitch-trained-affine", -0.5, "agrees"),
        ({}, "stitch-affine-identity", -2.0, "agrees"),
        ({"trained": 1.5}, "stitch-trained-affine", 0.5, "disagrees"),
        # 3 apart: (0, 3), (1, 4) and back; 4 apart: (0, 4) and back.
        ({}, "stitch-distance", 0.1 * (4 * 3 + 2 * 4) / 6, "agrees"),
    ],
)
def test_stitches_are_compared(changes, claim, estimate, verdict):
    row = _stitching(**changes).loc[claim]
    assert row.estimate == pytest.approx(estimate, abs=0.01) and row.verdict == verdict


def test_maps_are_compared_on_the_same_stitches():
    stitched = _stitched()
    elsewhere = (stitched.front_layer == 3) & (stitched.kind == "affine")  # trained are of layer 2
    stitched.loc[elsewhere, "penalty"] += 10
    row = _stitching(stitched=stitched).loc["stitch-trained-affine"]
    assert row.estimate == pytest.approx(-0.5)


def test_an_untrained_bottom_is_counted_in_floors():
    row = _stitching().loc["stitch-untrained:trained"]
    found = floors_above_untrained(_stitched(), "trained")
    assert found == pytest.approx(row.estimate / row.floor)


NUMBERS, LAST = range(4), 4
GAPS = {0: 0.0, 1: 0.05, 2: 0.2, 3: 0.4, 4: 0.5}  # within less between, by layer
SWAPS = {0: -0.6, 1: -0.5, 2: 0.0, 3: 0.2, 4: 0.4}  # generalizing below less generalizing above


def _accuracy(group, template=None):
    if template is None:
        return {"heuristic": 0.95, "generalizing": 0.94}[group]
    return 0.9 if template.entailed else {"heuristic": 0.1, "generalizing": 0.6}[group]


def _pair(quantity, front, back, layer):
    two = front[0] != back[0]
    if quantity == "stitched":
        return 0.5 + two * SWAPS[layer] * (0.5 if front[0] == "generalizing" else -0.5)
    return 0.9 - two * GAPS[layer] if quantity == "cka" else 0.1 + two * GAPS[layer]


@pytest.fixture(scope="module")
def made(noise=0.005):
    rng, rows = np.random.default_rng(0), []
    members = [(group, number) for number in NUMBERS for group in GROUPS]
    luck = {member: noise * rng.standard_normal() for member in members}
    for group, number in members:
        about = {"quantity": "accuracy", "group": group, "number": number}
        rows.append({**about, "data": "dev", "value": _accuracy(group) + luck[group, number]})
        for data in ("overlap", "new words"):
            for t in TEMPLATES:
                label = "entailment" if t.entailed else "not_entailment"
                keys = {"heuristic": t.heuristic, "label": label, "template": t.name}
                value = _accuracy(group, t) + luck[group, number]
                rows.append({**about, **keys, "data": data, "value": value})
    for pairs, quantities in ((combinations, ["cka"]), (permutations, ["penalty", "stitched"])):
        for front, back in pairs(members, 2):
            names = ("group", "number", "other", "other_number")
            keys = dict(zip(names, (*front, *back), strict=True))
            for quantity, data, layer in product(quantities, ("dev", "overlap"), GAPS):
                value = _pair(quantity, front, back, layer) + luck[front] + luck[back]
                row = {**keys, "quantity": quantity, "data": data, "layer": layer}
                rows.append({**row, "value": value + noise * rng.standard_normal()})
    return pd.DataFrame([{**COLUMNS, **row} for row in rows])


def _generalization(table):
    found = generalization_claims(table)
    return found.set_index(found.claim.str.removeprefix("b:generalization-"))


DISTANCE = np.sqrt(sum(np.arccos(0.9 - gap) ** 2 for gap in GAPS.values()))
DISTANCE -= np.sqrt(len(GAPS) * np.arccos(0.9) ** 2)
EXPECTED = {
    "accuracy-lexical-overlap": 0.5,
    "accuracy-subsequence": 0.5,
    "accuracy-constituent": 0.5,
    "accuracy-unseen": 0.5,
    "accuracy-new-words": 0.25,  # half of the pairs are entailed
    "accuracy-dev": -0.01,
    **{f"cka-late-{data}": GAPS[LAST] - GAPS[1] for data in ("overlap", "dev")},
    **{f"cka-early-{data}": GAPS[1] - GAPS[LAST] / 2 for data in ("overlap", "dev")},
    **{f"cka-middle-{data}": GAPS[2] - GAPS[LAST] / 2 for data in ("overlap", "dev")},
    **{f"distance-{data}": DISTANCE for data in ("overlap", "dev")},
    "stitch-late": GAPS[LAST] - GAPS[1],
    "stitch-above": SWAPS[1],
    "stitch-below": SWAPS[LAST],
}


def test_every_claim_on_generalization_finds_what_was_planted(made):
    found = _generalization(made)
    assert found.estimate.to_dict() == pytest.approx(EXPECTED, abs=0.02)
    assert found.floor.between(0, 0.06).all() and found.published.isna().all()
    assert set(found.unit) == {"models"} and set(found.n) == {4}
    planted = found.index.str.match("accuracy-(lexical|sub|const)")
    assert set(found.verdict[~planted]) == {"agrees"}
    assert set(found.verdict[planted]) == {"described"}


def test_planted_groups_replicate_nothing_and_the_papers_own_models_can(made):
    kinds = _generalization(made).kind
    assert kinds["accuracy-subsequence"] == kinds["accuracy-unseen"] == "our control"
    assert set(kinds.filter(regex="cka|stitch|distance")) == {"analogue"}
    own = _generalization(_hans(made))
    assert own.kind["cka-late-dev"] == "paper's test"
    assert own.verdict["cka-late-dev"] == "replicated"


def test_groups_that_part_early_are_not_said_to_part_late(made):
    early = made.copy()
    pairs = early.layer >= 0
    early.loc[pairs, "layer"] = early.layer[pairs].map({0: 0, 1: LAST, 2: 2, 3: 3, LAST: 1})
    found = _generalization(early).verdict
    names = ["cka-late-overlap", "cka-early-overlap", "cka-middle-dev"]
    names += ["stitch-late", "stitch-above", "stitch-below"]
    assert set(found[names]) == {"disagrees"}


def test_of_three_layers_the_middle_is_the_first_and_no_claim_of_its_own(made):
    shallow = made[made.layer != 3].replace({"layer": {LAST: 3}})
    found = set(_generalization(shallow).index)
    assert found == {name for name in EXPECTED if "middle" not in name}


def test_groups_that_answer_alike_are_not_told_apart(made):
    same = made.copy()
    swap = (same.quantity == "accuracy") & (same.number % 2 == 0)  # half of them change sides
    same.loc[swap, "group"] = same.group[swap].map(dict(zip(GROUPS, GROUPS[::-1], strict=True)))
    assert _generalization(same).verdict["accuracy-new-words"] == "inconclusive"


def _hans(made):
    hans = made[made.data != "new words"].copy()
    hans["template"] = hans.template.where(hans.template == "", "ln_" + hans.template)
    return hans


def test_hans_has_no_rows_of_our_controls(made):
    missing = {"accuracy-unseen", "accuracy-new-words"}
    assert set(_generalization(_hans(made)).index) == set(EXPECTED) - missing


def test_the_published_groups_are_of_ten_models_each():
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
    between = found[found.relation == "between"].set_index("layer").estimate
    assert between.to_dict() == pytest.approx({k: 0.9 - v for k, v in GAPS.items()}, abs=0.02)
    assert ((found.low < found.estimate) & (found.estimate < found.high)).all()
    crossings = relation_intervals(pairs_of(made, "stitched", "dev"), by="crossing")
    assert set(crossings.crossing) == {f"{a} below {b}" for a, b in permutations(GROUPS)}
