"""A study's tables beside the committed ones."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from shrink_utils.study import stl_claims, summarize, write_table
from shrink_utils.study.claims.reference import (
    FIGURES,
    TABLES,
    changed_verdicts,
    commit_reference,
    compare_tables,
    compare_with_reference,
    print_comparison,
)
from shrink_utils.study.tables import read_table, score_table, task_table

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def compared(finished, tiny_runs, tmp_path, monkeypatch):
    """The finished profile with its tables, committed as the reference of a data folder."""
    summary = summarize(tiny_runs)
    write_table(stl_claims(summary), "claims", profile=finished)
    write_table(task_table(summary), "task_metric", profile=finished)
    write_table(score_table(summary), "anisotropy", profile=finished)
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "tolerances.toml").write_text(
        "".join(
            f"[{column}]\nabsolute = 0.01\nrelative = 0.15\n"
            for column in ("task_metric.mean", "anisotropy.mean", "claims.estimate")
        )
    )
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    for name in FIGURES:
        (finished.folder / "figures").mkdir(exist_ok=True)
        (finished.folder / "figures" / f"{name}.png").write_bytes(b"a figure")
    commit_reference(finished)
    return finished


def _change(profile, name, column, by, row=0):
    table = read_table(name, profile=profile)
    table.loc[row, column] += by
    write_table(table, name, profile=profile)


def test_equal_tables_are_within(compared):
    table = compare_with_reference(compared)
    assert table.within.all() and set(table.table) == set(TABLES)
    assert changed_verdicts(compared).empty


def test_a_number_within_tolerance_passes_and_one_outside_is_named(compared, capsys):
    _change(compared, "anisotropy", "mean", 0.1)  # of a score of about 0.9
    assert print_comparison(compared)
    _change(compared, "anisotropy", "mean", 0.1)
    assert not print_comparison(compared)
    row = "tiny-random · sentiment_movies · none · raw · 1"
    assert row in capsys.readouterr().out


def test_a_small_score_has_a_small_tolerance(compared):
    smallest = read_table("anisotropy", profile=compared)["mean"].idxmin()
    _change(compared, "anisotropy", "mean", 0.02, smallest)
    assert not compare_with_reference(compared).within.all()


def test_an_estimate_may_move_by_a_share_of_its_interval(compared, tmp_path):
    tolerances = tmp_path / "reference" / "tolerances.toml"
    claims = read_table("claims", profile=compared)
    half = (claims.high - claims.low)[0] / 2
    _change(compared, "claims", "estimate", 0.4 * half + 0.2 * abs(claims.estimate[0]) + 0.01)
    assert not compare_with_reference(compared).within.all()
    tolerances.write_text(tolerances.read_text() + "interval = 1e9\n")  # ends with [claims.…]
    assert compare_with_reference(compared).within.all()


@pytest.mark.parametrize(
    ("claim", "moved", "within"),
    [
        ("v:lca-closure", 0.04, True),  # half of the half-width is 0.05
        ("v:lca-closure", 0.06, False),
        ("b:generalization-stitch-late", 0.19, True),  # twice is 0.2
        ("b:generalization-stitch-late", 0.21, False),
    ],
)
def test_only_models_trained_from_nothing_may_move_further(claim, moved, within):
    tolerances = tomllib.loads((ROOT / "data/reference/tolerances.toml").read_text("utf-8"))
    row = {"claim": claim, "estimate": 0.0, "low": -0.1, "high": 0.1}
    reference = pd.DataFrame([row])
    ours = pd.DataFrame([{name: x if name == "claim" else x + moved for name, x in row.items()}])
    table = compare_tables(ours, reference, ["claim"], tolerances["claims"])
    assert table.within.tolist() == [within]


def test_a_changed_verdict_is_named_and_no_failure(compared, capsys):
    assert changed_verdicts(compared).empty
    table = read_table("claims", profile=compared)
    table.loc[0, "verdict"] = "another"
    write_table(table, "claims", profile=compared)
    assert print_comparison(compared)
    assert table.claim[0] in capsys.readouterr().out


def test_a_missing_row_is_outside(compared):
    write_table(read_table("claims", profile=compared).iloc[1:], "claims", profile=compared)
    outside = compare_with_reference(compared).query("not within")
    assert len(outside) == 1 and outside.ours.isna().all()


def test_there_is_nothing_to_compare_without_a_reference_or_with_another_seed(compared):
    for profile in (replace(compared, base_seed=1), replace(compared, name="unknown")):
        assert compare_with_reference(profile) is None and changed_verdicts(profile).empty


def test_records_alone_are_no_reference_tables(finished, tmp_path, monkeypatch):
    folder = tmp_path / "reference" / finished.name
    folder.mkdir(parents=True)
    for name in ("runs.parquet", "layers.csv"):  # of runs, and of diagnoses
        (folder / name).touch()
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    assert compare_with_reference(finished) is None and changed_verdicts(finished).empty


def test_a_copy_that_fails_leaves_the_reference_of_before(compared, tmp_path, full_disk):
    folder = tmp_path / "reference" / compared.name
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    full_disk("shutil.copyfile")
    with pytest.raises(OSError, match="No space"):
        commit_reference(compared)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
