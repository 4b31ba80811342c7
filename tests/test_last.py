"""The script that decides the last preregistered analysis, on records with planted answers."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "data/reference/last/decide.py"
LAST = runpy.run_path(str(SCRIPT))
LAST["decide"].__globals__["DRAWS"] = 300  # of the bootstrap: seconds are enough here
ROWS, VERSES = 60, 80
SHARES = {("none", 0.0): 0.89, ("all", 4.0): 0.75, ("all", 8.0): 0.71, ("all", 32.0): 0.62,
          ("prominent", 1.0): 0.675, ("isoscore", 0.3): 0.5}  # fmt: skip


def _records(n_seeds: int, *, cost=0.0, whitened=0.0, shares=SHARES) -> dict[str, pd.DataFrame]:
    """Records in which selected bars lose `cost` in accuracy and find `whitened` more verses."""
    rng = np.random.default_rng(0)
    tables = {name: [] for name in ("runs", "evaluations", "rows", "uses", "verses")}
    luck = {seed: rng.normal(0, 0.01) for seed in range(n_seeds)}  # of a seed, whatever the arm
    for (arm, weight), share in shares.items():
        for seed in range(n_seeds):
            of = {"arm": arm, "weight": weight, "seed": seed}
            own = rng.normal(share, 0.01)
            run = of | {"share_least": own, "train_share": own}
            tables["runs"].append(pd.DataFrame([run]))
            tables["evaluations"].append(
                pd.DataFrame({"epoch": range(11), "centred_1": [0.1] * 8 + [own] * 3}).assign(**of)
            )
            right = 0.85 + luck[seed] - cost * (arm == "prominent") + rng.normal(0, 0.01, ROWS)
            rows = {"row": range(ROWS), "chooses": np.arange(ROWS) % 2 == 0, "correct": right}
            rows |= {"loss": 1 - right, "correct_least": right, "loss_least": 1 - right}
            tables["rows"].append(pd.DataFrame(rows).assign(**of))
            for moment in ("end", "least"):
                for treatment in ("plain", "centred_rotated", "whitened_rotated"):
                    more = whitened * (arm == "prominent") * (treatment == "whitened_rotated")
                    hit = 0.5 + luck[seed] + more + rng.normal(0, 0.02, VERSES)
                    use = of | {"moment": moment, "treatment": treatment, "use": "verses_one_bit"}
                    tables["verses"].append(
                        pd.DataFrame({"row": range(VERSES), "hit": hit}).assign(**use)
                    )
                    tables["uses"].append(pd.DataFrame([use | {"value": hit.mean()}]))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}


def test_planted_differences_are_found_and_equal_conditions_are_equivalent():
    found = LAST["decide"](_records(12, cost=0.05, whitened=0.1)).set_index("id")
    verdicts = dict(found.verdict)
    assert verdicts == {
        "N1": "less", "N2": "less", "N3": "more", "W1": "more", "W2": "more",
        "W3": "equivalent", "W4": "equivalent",
    }  # fmt: skip
    assert found.estimate["N2"] == pytest.approx(-0.05, abs=0.01)
    assert found.by["N2"] == "jackknife"
    equal = LAST["decide"](_records(12)).set_index("id")
    assert {*equal.verdict.drop("N1")} == {"equivalent"}


def test_what_is_not_tested_prints_no_number():
    few = LAST["decide"](_records(11))
    numbers = ["estimate", "low", "high", "boot_low", "boot_high", "p", "holm"]
    assert {*few.verdict} == {"not tested"} and few[numbers].isna().all(axis=None)
    beyond = SHARES | {("prominent", 1.0): 0.5}  # rounder than all bars ever become
    found = LAST["decide"](_records(12, shares=beyond)).set_index("id")
    assert {*found.verdict[["N2", "N3"]]} == {"not tested"}
    assert found.loc[["N2", "N3"], numbers].isna().all(axis=None)
