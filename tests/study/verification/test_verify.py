"""A folder that was sent: what is right passes, whatever was changed is found and named."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from shrink_utils.study import run_grid, run_id
from shrink_utils.study.claims.stl import stl_claims
from shrink_utils.study.profiles import SweepEntry
from shrink_utils.study.results import Result, read_json, write_json
from shrink_utils.study.tables import score_table, summarize, task_table, write_table
from shrink_utils.study.verification import folder as holdings
from shrink_utils.study.verification import verify
from shrink_utils.study.verification.folder import unfinished
from shrink_utils.study.verification.page import write_provenance
from shrink_utils.study.verification.verify import Check, verify_folder
from shrink_utils.text.sources import sha256_of
from shrink_utils.training import precision

MEASURED = "dynamics_sgd-0123456789abcdef"


def _claims(grid, swept, tables, *, weight) -> pd.DataFrame:
    """The claims that two arms support, without the measured tables of a whole study."""
    assert all(len(table) for table in tables.values())
    claims = stl_claims(summarize(grid))
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
    return _finish(profile, tiny_runs, monkeypatch)


def _finish(profile, runs, monkeypatch):
    """Write the tables and the page of a study whose runs are there; return its folder."""
    monkeypatch.setattr(verify, "claims_from", _claims)
    monkeypatch.setattr(verify, "measures_of", lambda profile: {"dynamics_sgd": None})
    monkeypatch.setattr(verify, "load_profile", lambda name, seed: profile)
    monkeypatch.setattr(verify, "profile_names", lambda: ["tiny"])
    summary = summarize(runs)
    write_table(task_table(summary), "task_metric", profile=profile)
    write_table(score_table(summary), "anisotropy", profile=profile)
    write_table(_claims(runs, [], {}, weight=1.0), "claims", profile=profile)
    with Result(profile.folder / "measured" / MEASURED).save({}, since=0.0) as part:
        columns = holdings.MEASURED_COLUMNS["dynamics_sgd"].split()
        pd.DataFrame({name: [1.0] for name in columns}).to_parquet(part / "table.parquet")
    write_provenance(profile)
    return profile.folder


def _faults(folder) -> str:
    return "\n".join(fault for check in verify_folder(folder) for fault in check.faults)


def test_a_good_folder_passes_every_check_and_nothing_is_written_into_it(sent):
    before = {path: path.stat().st_mtime_ns for path in sent.rglob("*")}
    checks = verify_folder(sent)
    assert {path: path.stat().st_mtime_ns for path in sent.rglob("*")} == before
    assert [str(check)[:4] for check in checks] == ["ok  "] * 11
    assert "ok    claims, made again" in map(str, checks)


def test_a_repeated_cohort_is_not_enough_its_records_have_to_be_younger_than_the_analysis(
    sent, profile, monkeypatch
):
    """Runs of today are younger whatever is on record, and the record decides the hypotheses."""
    cohort = replace(profile, name="cohort")
    monkeypatch.setattr(verify, "load_profile", lambda name, seed: cohort)
    monkeypatch.setattr(verify, "_foreign", lambda folder: ())  # the page says tiny
    monkeypatch.setattr(verify, "record_faults", lambda name: [f"{name} is older"])
    assert "cohort is older" in _faults(sent).splitlines()


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
        (lambda table: table.iloc[1:], "no row"),
        (lambda table: pd.concat([table, table.tail(1).assign(claim="mine")]), "foreign row mine"),
        (lambda table: pd.concat([table, table.tail(1)]), "twice the row"),
        (lambda table: table.assign(colour="red"), "foreign column colour"),
        (lambda table: table.drop(columns="floor"), "no column floor"),
    ],
)
def test_changed_rows_and_columns_are_named(sent, change, says):
    path = sent / "tables" / "claims.csv"
    change(pd.read_csv(path)).to_csv(path, index=False, float_format="%.6f")
    assert says in _faults(sent)


def test_a_changed_verdict_and_a_foreign_table_are_named(sent):
    path = sent / "tables" / "claims.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("inconclusive", "agrees", 1), encoding="utf-8")
    (sent / "tables" / "mine.csv").write_text("a,b\n1,2\n")
    faults = _faults(sent)
    assert "verdict is agrees, from the runs inconclusive" in faults
    assert "tables/claims.csv changed on disk" in faults
    assert "tables/mine.csv: no table of this study" in faults
    assert "tables/mine.csv was added" in faults


def _flip_a_byte(run):
    path = run / "history.parquet"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_flip_a_byte, "{run}: history.parquet changed on disk"),
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


@pytest.mark.parametrize("kind", ["rows", "column", "folder"])
def test_a_changed_measured_table_is_named_and_not_used(sent, kind):
    path = sent / "measured" / MEASURED / "table.parquet"
    table = pd.read_parquet(path)
    if kind == "folder":
        shutil.rmtree(path.parent)
    else:
        changed = table.assign(colour="red") if kind == "column" else table.iloc[:0]
        changed.to_parquet(path)
    faults = _faults(sent)
    if kind == "column":
        assert f"measured/{MEASURED}: foreign column colour" in faults
    named = "missing" if kind == "folder" else "changed on disk"
    assert f"{MEASURED} is missing" in faults or f"table.parquet {named}" in faults
    assert "0 whole tables measured/dynamics_sgd-*, expected one" in faults


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
    ((fault,),) = (check.faults for check in verify_folder(sent))
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
        ({"profile": {"name": ["tiny"], "seed": 0, "hash": ""}}, "no profile"),
        ({"profile": "tiny"}, "TypeError"),
        ({"format": 1}, "provenance.json has format 1, of other code; this code reads 4"),
        ({"precision": "float16"}, "precision 'float16' is none of float32, bfloat16"),
    ],
)
def test_a_foreign_page_ends_the_reading(sent, change, says):
    page = sent / "provenance.json"
    write_json(page, {**read_json(page), **change})
    assert says in verify_folder(sent)[-1].faults[0]


@pytest.mark.parametrize("text", ["{", "[]", '{"profile": {}}', "\x00"])
def test_a_page_that_is_none_is_a_fault_and_no_crash(sent, text):
    (sent / "provenance.json").write_text(text, encoding="utf-8")
    assert verify_folder(sent)[-1].faults


def test_without_a_page_or_a_folder_nothing_more_is_looked_at(sent):
    (sent / "provenance.json").unlink()
    checks = verify_folder(sent)
    assert len(checks) == 2 and "make reproduce" in checks[1].faults[0]
    assert str(checks[1]).startswith("UNFINISHED  the study has come to its end\n")
    with pytest.raises(FileNotFoundError, match=r"RESULTS: .*nowhere is no folder"):
        verify_folder(sent / "nowhere")


@pytest.mark.parametrize("name", ["config.json", "manifest.json", "history.parquet"])
def test_a_file_that_cannot_be_read_is_a_fault_and_no_crash(sent, profile, name):
    (sent / "runs" / run_id(profile.runs()[0]) / name).write_bytes(b"\x80\x04pickle")
    assert run_id(profile.runs()[0]) in _faults(sent)


def test_many_faults_are_counted():
    told = str(Check("runs", tuple(f"fault {i}" for i in range(8))))
    assert told.splitlines()[0] == "FAIL  runs" and told.splitlines()[-1].strip() == "and 3 more"
    assert len(told.splitlines()) == 7


def _signed(run):
    """Make a changed run whole: a manifest of its files as they are."""
    files = [path for path in run.rglob("*") if path.is_file() and path.name != "manifest.json"]
    digests = {path.relative_to(run).as_posix(): sha256_of(path) for path in files}
    write_json(run / "manifest.json", digests)


@pytest.mark.parametrize("name", ["0" * 16, "f" * 16])
def test_of_two_runs_of_a_configuration_the_newer_one_counts(sent, profile, name):
    run = sent / "runs" / run_id(profile.runs()[0])
    old = shutil.copytree(run, run.with_name(name))
    stamp = read_json(old / "provenance.json")
    write_json(old / "provenance.json", {**stamp, "time": "2020-01-01T00:00:00+00:00"})
    history = pd.read_parquet(old / "history.parquet")
    history.assign(raw_1=history.raw_1 / 2).to_parquet(old / "history.parquet", index=False)
    _signed(old)
    write_provenance(profile)
    assert _faults(sent) == ""


def test_a_run_of_code_with_other_fields_is_no_fault(sent, profile):
    run = sent / "runs" / run_id(profile.runs()[0])
    old = shutil.copytree(run, run.with_name("f" * 16))
    write_json(old / "config.json", {**read_json(old / "config.json"), "dropout": 0.1})
    _signed(old)
    write_provenance(profile)
    assert _faults(sent) == ""


def test_a_whole_run_that_lacks_a_column_is_a_fault_of_every_table_and_no_crash(sent, profile):
    run = sent / "runs" / run_id(profile.runs()[0])
    history = pd.read_parquet(run / "history.parquet")
    history.drop(columns="rows").to_parquet(run / "history.parquet", index=False)
    _signed(run)
    write_provenance(profile)
    checks = {check.name: check.faults for check in verify_folder(sent)}
    assert checks["columns of every table"] == (f"runs/{run.name}/history.parquet: no column rows",)
    for table in ("task_metric", "anisotropy", "claims"):
        (fault,) = checks[f"{table}, made again"]
        assert fault.startswith("AttributeError") and "rows" in fault


# --- a study that has not come to its end ----------------------------------------------------
@pytest.fixture
def folder(finished, tmp_path, monkeypatch):
    """Two arms and two seeds of a grid, of which one run is there."""
    profile = replace(finished, sweep=())
    target = tmp_path / "tiny"
    name = run_id(profile.runs()[0])
    shutil.copytree(finished.folder / "runs" / name, target / "runs" / name)
    monkeypatch.setattr(
        holdings, "load_profile", lambda name, seed: replace(profile, base_seed=seed)
    )
    monkeypatch.setattr(holdings, "profile_names", lambda: ["tiny"])
    measures = {"dynamics": None, "dynamics_stability": None}
    monkeypatch.setattr(holdings, "measures_of", lambda profile: measures)
    return target


def test_what_is_missing_is_counted_and_what_to_do_is_said(folder):
    (folder / "measured" / f"dynamics_stability-{'0' * 16}").mkdir(parents=True)
    runs, measured, tables, again = unfinished(folder)
    assert runs.startswith("3 of 4 runs are missing, such as tiny-random · ")
    assert measured == "1 of 2 measured tables are missing, such as dynamics"
    assert tables == "3 of 3 tables are missing, such as anisotropy"
    assert again.startswith("`make reproduce PROFILE=tiny` goes on")


def test_the_seed_is_part_of_the_folders_name(folder):
    *_, again = unfinished(folder.rename(folder.with_name("tiny-seed3")))
    assert again.startswith("`make reproduce PROFILE=tiny SEED=3` goes on")


def test_a_folder_of_any_name_is_unfinished_without_its_page(tmp_path):
    assert unfinished(tmp_path) == [
        "provenance.json is not there: `make reproduce` writes it at its end"
    ]


def test_nothing_is_missing_of_a_study_with_its_page(folder):
    (folder / "provenance.json").write_text("{}")
    assert unfinished(folder) == []


def test_runs_that_differ_in_the_weight_alone_are_counted_and_named_each(folder, monkeypatch):
    profile = holdings.load_profile("tiny", 0)
    entry = SweepEntry(task=profile.tasks[0], arm="all", weights=(0.5, 1.0, 3.0))
    swept = replace(profile, sweep=(entry,))
    monkeypatch.setattr(holdings, "load_profile", lambda name, seed: swept)
    runs, *_ = unfinished(folder)  # weight 1 is the grid's
    assert runs.startswith("7 of 8 runs are missing, such as tiny-random · ")
    made = (folder / "runs" / run_id(profile.runs()[0])).rename(folder / "runs" / ("0" * 16))
    for n, config in enumerate(profile.runs(), 1):
        _another_run(made, f"{n:016x}", **config.as_dict())
    runs, *_ = unfinished(folder)
    assert runs.startswith("4 of 8 runs")
    assert runs.endswith(" · all × 0.5 · 1 epochs · seed 0")


@pytest.mark.parametrize("change", [{"a_field_of_old_code": 1}, {"arm": "of old code"}])
def test_a_run_of_other_code_is_none_of_these(folder, change):
    (made,) = (folder / "runs").iterdir()
    _another_run(made, "f" * 16, **change)
    runs, *_ = unfinished(folder)
    assert runs.startswith("3 of 4 runs")


def _another_run(run, name, **change):
    """A copy of a run, of a changed configuration."""
    copy = shutil.copytree(run, run.with_name(name))
    write_json(copy / "config.json", {**read_json(copy / "config.json"), **change})


@pytest.fixture
def native(monkeypatch):
    """Makes this a machine that trains in the given precision."""

    def is_now(name):
        monkeypatch.setattr(precision, "native_precision", lambda: name)
        precision.used_precision.cache_clear()

    yield is_now
    precision.used_precision.cache_clear()


@pytest.fixture
def elsewhere(native):
    """A machine of the other precision than the one that has trained."""
    other = {"float32": "bfloat16", "bfloat16": "float32"}[precision.native_precision()]
    native(other)
    return other


def test_a_folder_from_a_machine_without_bfloat16_passes_on_one_that_has_it(
    profile, native, tmp_path, monkeypatch
):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    native("float32")
    folder = _finish(profile, run_grid(profile), monkeypatch)
    assert read_json(folder / "provenance.json")["precision"] == "float32"
    native("bfloat16")
    assert profile.used_precision == "bfloat16"
    checks = verify_folder(folder)
    assert [str(check)[:4] for check in checks] == ["ok  "] * 11, list(map(str, checks))


def test_a_folder_from_a_machine_of_another_precision_is_checked_in_its_own(
    sent, profile, elsewhere, monkeypatch
):
    trained = read_json(sent / "provenance.json")["precision"]
    assert profile.used_precision == elsewhere != trained
    runs = {run_id(config) for config in profile.runs(precision=trained)}
    assert runs == {path.name for path in (sent / "runs").iterdir() if not path.suffix}
    assert not runs & {run_id(config) for config in profile.runs()}
    checks = verify_folder(sent)
    assert all(str(check).startswith("ok") for check in checks), list(map(str, checks))
    os.remove(sent / "provenance.json")  # as while it is still computed there
    monkeypatch.setattr(holdings, "profile_names", lambda: ["tiny"])
    monkeypatch.setattr(holdings, "load_profile", lambda name, seed: profile)
    *missing, again = unfinished(sent)
    assert "goes on" in again and not any("runs of grid" in line for line in missing)
    shutil.rmtree(sent / "runs" / min(runs))
    assert unfinished(sent)[0].startswith("1 of 4 runs are missing")


def test_a_page_that_names_another_precision_than_its_runs_is_found(sent):
    page = read_json(sent / "provenance.json")
    other = {"float32": "bfloat16", "bfloat16": "float32"}[page["precision"]]
    write_json(sent / "provenance.json", page | {"precision": other})
    assert "4 runs of grid, sweep and long runs" in "\n".join(
        str(check) for check in verify_folder(sent) if check.faults
    )
