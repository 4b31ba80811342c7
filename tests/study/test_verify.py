"""A folder that was sent: what is right passes, whatever was changed is found and named."""

import json
import os
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from shrink_utils.study import verify
from shrink_utils.study.claims.stl import stl_claims
from shrink_utils.study.results import Result, read_json, write_json
from shrink_utils.study.runs import run_id
from shrink_utils.study.tables import (
    add_correctness,
    correct_rows,
    first_steps,
    score_table,
    summarize,
    task_table,
    write_table,
)
from shrink_utils.study.verify import verify_folder, write_provenance
from shrink_utils.text.sources import sha256_of
from shrink_utils.training import config
from tests.study.conftest import flip_a_byte

MEASURED = "dynamics_sgd-0123456789abcdef"


def _claims(grid, swept, tables, *, weight) -> pd.DataFrame:
    """The claims that two arms support, without the measured tables of a whole study."""
    assert all(len(table) for table in tables.values())
    claims = stl_claims(add_correctness(summarize(grid), correct_rows(grid)))
    claims.loc[1, ["task", "arm"]] = ""  # as claims that no fine-tuning is about: empty in a CSV
    return claims


@pytest.fixture
def profile(finished):
    return replace(finished, sweep=())


@pytest.fixture
def sent(profile, tiny_runs, tmp_path, monkeypatch):
    """The tiny study as its owner would send it."""
    shutil.copytree(profile.folder / "runs", tmp_path / "tiny" / "runs")
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    monkeypatch.setattr(verify, "claims_from", _claims)
    monkeypatch.setattr(verify, "tables_of", lambda profile: ["dynamics_sgd"])
    monkeypatch.setattr(verify, "load_profile", lambda name, seed: profile)
    monkeypatch.setattr(verify, "profile_names", lambda: ["tiny"])
    summary = summarize(tiny_runs)
    write_table(first_steps(tiny_runs), "first_steps", profile=profile)
    write_table(task_table(summary), "task_metric", profile=profile)
    write_table(score_table(summary), "anisotropy", profile=profile)
    write_table(_claims(tiny_runs, [], {}, weight=1.0), "claims", profile=profile)
    with Result(profile.folder / "measured" / MEASURED).save({}, since=0.0) as part:
        pd.DataFrame({"value": [1.0]}).to_parquet(part / "table.parquet")
    write_provenance(profile)
    return profile.folder


def _faults(folder) -> str:
    return "\n".join(fault for faults in verify_folder(folder).values() for fault in faults)


def test_a_good_folder_passes_every_check_and_nothing_is_written_into_it(sent):
    before = {path: path.stat().st_mtime_ns for path in sent.rglob("*")}
    checks = verify_folder(sent)
    assert {path: path.stat().st_mtime_ns for path in sent.rglob("*")} == before
    assert len(checks) == 9 and checks["claims, made again"] == [] and not any(checks.values())


@pytest.mark.parametrize("table", ["claims", "task_metric", "anisotropy"])
def test_a_changed_number_is_named_even_when_the_page_was_changed_with_it(sent, profile, table):
    path = sent / "tables" / f"{table}.csv"
    column = "estimate" if table == "claims" else "mean"
    numbers = pd.read_csv(path)
    numbers.loc[1, column] += 0.001
    numbers.to_csv(path, index=False, float_format="%.6f")
    write_provenance(profile)
    faults = _faults(sent)
    assert f"{table}.csv, " in faults and f"{column} is" in faults


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda table: table.iloc[1:], "is nan, from the runs"),
        (
            lambda table: pd.concat([table, table.tail(1).assign(claim="mine")]),
            "claims.csv, mine: ",
        ),
        (lambda table: pd.concat([table, table.tail(1)]), " again: estimate is "),
        (lambda table: table.assign(colour="red"), ": colour is red, from the runs nan"),
        (lambda table: table.drop(columns="floor"), ": floor is nan"),
        (lambda table: table.assign(verdict="agrees"), "verdict is agrees, from the runs"),
    ],
)
def test_changed_rows_columns_and_verdicts_are_named(sent, profile, change, says):
    path = sent / "tables" / "claims.csv"
    change(pd.read_csv(path)).to_csv(path, index=False, float_format="%.6f")
    faults = _faults(sent)
    assert says in faults and "tables/claims.csv changed on disk" in faults


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda run: flip_a_byte(run / "history.parquet"),
            "{run}: history.parquet changed on disk",
        ),
        (lambda run: (run / "evaluations.json").unlink(), "{run}: evaluations.json is missing"),
        (lambda run: (run / "notes.txt").touch(), "{run}: notes.txt was added"),
        (shutil.rmtree, "runs/{run} is missing"),
    ],
    ids=["flipped byte", "missing file", "added file", "missing run"],
)
def test_a_changed_run_is_named_and_not_used(sent, profile, change, says):
    config = profile.runs()[2]
    change(sent / "runs" / run_id(config))
    faults = _faults(sent).splitlines()
    assert says.format(run=run_id(config)) in faults
    assert f"no whole run {config.label}" in faults


@pytest.mark.parametrize("file", ["runs/*.model/model/*.safetensors", "measured/*/table.parquet"])
def test_a_byte_of_a_model_or_of_a_measured_table_is_named(sent, file):
    path = next(sent.glob(file))
    flip_a_byte(path)
    assert f"{path.name} changed on disk" in _faults(sent)


@pytest.mark.parametrize("kind", ["file", "folder", "pipe"])
def test_a_link_or_a_pipe_ends_the_reading(sent, profile, kind, tmp_path):
    run = sent / "runs" / run_id(profile.runs()[0])
    if kind == "pipe":  # to read it would wait for ever
        os.mkfifo(run / "pipe")
    elif kind == "file":
        (tmp_path / "secret").write_text("secret")
        (run / "evaluations.json").unlink()
        (run / "evaluations.json").symlink_to(tmp_path / "secret")
    else:
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "link").symlink_to(tmp_path)  # which nobody is to look at
        (sent / "figures").symlink_to(tmp_path / "outside")
    ((fault,),) = verify_folder(sent).values()
    assert ("no plain file" if kind == "pipe" else "is a link") in fault


def test_names_in_a_manifest_lead_nowhere(sent, profile, tmp_path):
    run = sent / "runs" / run_id(profile.runs()[0])
    os.mkfifo(tmp_path / "outside")  # to open it would wait for ever
    for name in ("../../../outside", str(tmp_path / "outside")):
        manifest = json.loads((run / "manifest.json").read_text())
        (run / "manifest.json").write_text(json.dumps({**manifest, name: "0" * 64}))
        assert f"{name} is missing" in _faults(sent)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"profile": {"name": "../../etc", "seed": 0, "hash": ""}}, "no profile '../../etc' here"),
        ({"profile": {"name": "tiny", "seed": 0, "hash": "0" * 16}}, "has hash"),
        ({"profile": "tiny"}, "TypeError"),
        ({"format": 1}, "provenance.json has format 1, of other code; this code reads 5"),
        ({"precision": "float16"}, "precision 'float16' is none of float32, bfloat16"),
    ],
)
def test_a_foreign_page_ends_the_reading(sent, change, says):
    page = sent / "provenance.json"
    write_json(page, {**read_json(page), **change})
    assert says in [*verify_folder(sent).values()][-1][0]


def test_without_a_page_or_a_folder_nothing_more_is_looked_at(sent):
    (sent / "provenance.json").unlink()
    plain, page = verify_folder(sent).values()
    assert plain == [] and "make reproduce" in page[0]
    with pytest.raises(FileNotFoundError, match=r"RESULTS: .*nowhere is no folder"):
        verify_folder(sent / "nowhere")


@pytest.mark.parametrize("name", ["config.json", "manifest.json", "history.parquet"])
def test_a_file_that_cannot_be_read_is_a_fault_and_no_crash(sent, profile, name):
    (sent / "runs" / run_id(profile.runs()[0]) / name).write_bytes(b"\x80\x04pickle")
    assert run_id(profile.runs()[0]) in _faults(sent)


@pytest.mark.parametrize("name", ["0" * 16, "f" * 16])
def test_of_two_runs_of_a_configuration_the_newer_counts_and_one_of_other_fields_is_no_fault(
    sent, profile, name
):
    run = sent / "runs" / run_id(profile.runs()[0])
    old, other = (shutil.copytree(run, run.with_name(copy)) for copy in (name, "e" * 16))
    stamp = read_json(old / "provenance.json")
    write_json(old / "provenance.json", {**stamp, "time": "2020-01-01T00:00:00+00:00"})
    history = pd.read_parquet(old / "history.parquet")
    history.assign(raw_1=history.raw_1 / 2).to_parquet(old / "history.parquet", index=False)
    write_json(other / "config.json", {**read_json(other / "config.json"), "dropout": 0.1})
    for changed in (old, other):  # made whole: a manifest of their files as they are
        files = [p for p in changed.rglob("*") if p.is_file() and p.name != "manifest.json"]
        digests = {path.relative_to(changed).as_posix(): sha256_of(path) for path in files}
        write_json(changed / "manifest.json", digests)
    write_provenance(profile)
    assert _faults(sent) == ""


def test_a_folder_from_a_machine_of_another_precision_is_checked_in_its_own(
    sent, profile, monkeypatch
):
    trained = read_json(sent / "provenance.json")["precision"]
    other = {"float32": "bfloat16", "bfloat16": "float32"}[trained]
    monkeypatch.setattr(config, "_native_precision", lambda: other)
    config.used_precision.cache_clear()
    try:
        assert profile.used_precision == other
        assert _faults(sent) == ""
        page = read_json(sent / "provenance.json")
        write_json(sent / "provenance.json", page | {"precision": other})
        assert "no whole run" in _faults(sent)  # the page lies
    finally:
        config.used_precision.cache_clear()
