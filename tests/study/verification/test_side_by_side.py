"""Two finished studies beside each other: differences by hand, other studies refused."""

import pandas as pd
import pytest

from shrink_utils.study.results import write_json
from shrink_utils.study.verification.side_by_side import as_markdown, compare_folders


def _study(folder, *, accuracy, score, estimate, verdict, seed=0):
    (folder / "tables").mkdir(parents=True)
    write_json(
        folder / "provenance.json", {"profile": {"name": "quick", "seed": seed, "hash": "0"}}
    )
    cell = {"model": "minilm", "task": "sst2", "arm": ["none", "all"]}
    tables = {
        "task_metric": {**cell, "metric": "accuracy", "mean": [0.7, accuracy]},
        "anisotropy": {**cell, "space": "raw", "k": 1, "mean": [0.5, score]},
        "claims": {
            "claim": ["one", "two"],
            "estimate": [0.1, estimate],
            "low": [0.0, 0.0],
            "high": [0.2, 0.2],
            "verdict": ["confirmed", verdict],
        },
    }
    for name, table in tables.items():
        pd.DataFrame(table).to_csv(folder / "tables" / f"{name}.csv", index=False)
    return folder


@pytest.fixture
def reference(tmp_path):
    numbers = {"accuracy": 0.8, "score": 0.4, "estimate": 0.2, "verdict": "confirmed"}
    return _study(tmp_path / "float32", **numbers)


def test_differences_are_those_worked_out_by_hand(reference, tmp_path):
    # Tolerances here: .02; the larger of .01 and .15 of .4; half of the half-width .1.
    numbers = {"accuracy": 0.83, "score": 0.41, "estimate": 0.24, "verdict": "inconclusive"}
    apart = compare_folders(_study(tmp_path / "bfloat16", **numbers), reference)
    rows = {(r.table, r.column): r for r in apart.itertuples()}
    assert [row.numbers for row in rows.values()] == [2, 2, 2, 2]
    for (table, column), largest, within in (
        (("task_metric", "mean"), 0.03, 1),
        (("anisotropy", "mean"), 0.01, 2),
        (("claims", "estimate"), 0.04, 2),
    ):
        row = rows[table, column]
        assert row.largest == pytest.approx(largest)
        assert row.median == pytest.approx(largest / 2)  # of two, one of them 0
        assert row.within == within
    assert rows["claims", "verdict"].within == 1
    printed = as_markdown(apart)
    assert "| task_metric | mean | 2 | 0.0150 | 0.0300 | 1 |" in printed
    assert "| claims | verdict | 2 | – | – | 1 |" in printed


def test_another_study_is_no_reference(reference, tmp_path):
    numbers = {"accuracy": 0.8, "score": 0.4, "estimate": 0.2, "verdict": "confirmed"}
    other = _study(tmp_path / "seed1", seed=1, **numbers)
    with pytest.raises(
        ValueError, match=r"of the study .*'seed': 1.* but reference of .*'seed': 0"
    ):
        compare_folders(other, reference)
