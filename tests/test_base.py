"""The script that decides the analysis of a base-sized encoder, on records with planted answers."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "data/reference/base/decide.py"
BASE = runpy.run_path(str(SCRIPT))
BASE["decide"].__globals__["DRAWS"] = 300  # of the bootstrap: seconds are enough here
MACHINE = dict.fromkeys(["processor", "capability", "device", "torch", "precision"], "one")
SHARES = {("none", 0.0): 0.88, ("prominent", 1.0): 0.66, ("all", 1.0): 0.8, ("all", 4.0): 0.74}


def _records(n_seeds: int, *, cost=0.0, shares=SHARES) -> dict[str, pd.DataFrame]:
    """Records in which selected bars lose `cost` in accuracy, and half of it half-way from none."""
    rng = np.random.default_rng(0)
    tables = {name: [] for name in ("runs", "evaluations", "rows")}
    luck = rng.normal(0, 0.01, n_seeds)  # of a seed, whatever the arm
    for (arm, weight), share in shares.items():
        for i, seed in enumerate(range(600, 600 + n_seeds)):
            of = {"arm": arm, "weight": weight, "seed": seed}
            own = rng.normal(share, 0.01)
            lost = cost * (arm == "prominent")
            right = 0.85 + luck[i] - lost + rng.normal(0, 0.01, 60)
            rows = pd.DataFrame({"row": range(60), "correct": right, "loss": 1 - right})
            epochs = pd.DataFrame({"epoch": range(11), "centred_1": [0.1] * 8 + [own] * 3})
            tables["runs"].append(pd.DataFrame([of | MACHINE | {"train_share": own}]))
            tables["evaluations"].append(epochs.assign(**of))
            tables["rows"].append(rows.assign(**of))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}


def test_planted_differences_are_found_and_equal_conditions_are_equivalent():
    found = BASE["decide"](_records(6, cost=0.06)).set_index("id")
    assert dict(found.verdict) == {"M1": "less", "M2": "less", "M3": "less", "M4": "less"}
    # The share of all bars at 4 lies at 14 / 22 of the way from none to selected bars.
    assert found.estimate["M4"] == pytest.approx(-0.06 * 14 / 22, abs=0.01)
    equal = BASE["decide"](_records(6)).set_index("id")
    assert {*equal.verdict[["M3", "M4"]]} == {"equivalent"} and equal.by["M4"] == "jackknife"
    rows = BASE["beside"](_records(6, cost=0.06)).set_index("comparison")
    assert rows.estimate["accuracy: prominent 1 − all 4"] == pytest.approx(-0.06, abs=0.01)


def test_beside_an_end_the_bootstrap_decides_and_what_is_not_tested_prints_no_number():
    near = BASE["decide"](_records(6, cost=0.06, shares=SHARES | {("all", 4.0): 0.672}))
    assert near.set_index("id").by["M4"] == "bootstrap"
    beyond = BASE["decide"](_records(6, shares=SHARES | {("all", 4.0): 0.6})).set_index("id")
    few = BASE["decide"](_records(5)).set_index("id")
    numbers = ["estimate", "low", "high", "boot_low", "boot_high", "p", "holm"]
    assert beyond.verdict["M4"] == "not tested" and {*few.verdict} == {"not tested"}
    assert few[numbers].isna().all(axis=None) and beyond.loc["M4", numbers].isna().all()
    assert BASE["beside"](_records(5)).empty


def test_margins_are_those_of_the_page():
    page = (ROOT / "docs" / "preregistration_base.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (M\d) \|.*\| (\.\d+) \|$", page, re.MULTILINE)
    assert {name: float(margin) for name, margin in rows} == BASE["MARGINS"]


def test_a_seed_of_two_machines_does_not_count_and_a_value_that_is_lacking_is_an_error():
    records = _records(7)
    strange = (records["runs"].seed == 603) & (records["runs"].arm == "all")
    records["runs"].loc[strange, "processor"] = "another"
    assert {*BASE["decide"](records).n} == {6}
    records["rows"] = records["rows"].iloc[1:]
    with pytest.raises(ValueError, match="late"):
        BASE["decide"](records)
