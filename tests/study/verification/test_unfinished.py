"""A study that has not come to its end is told from one that was damaged."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from shrink_utils.study import run_id
from shrink_utils.study.grid_entries import SweepEntry
from shrink_utils.study.runs.whole_folder import read_json, write_json
from shrink_utils.study.verification import unfinished as module
from shrink_utils.study.verification.unfinished import unfinished


@pytest.fixture
def folder(finished, tmp_path, monkeypatch):
    """Two arms and two seeds of a grid, of which one run is there."""
    profile = replace(finished, sweep=())
    target = tmp_path / "tiny"
    name = run_id(profile.runs()[0])
    shutil.copytree(finished.folder / "runs" / name, target / "runs" / name)
    monkeypatch.setattr(module, "load_profile", lambda name, seed: replace(profile, base_seed=seed))
    monkeypatch.setattr(module, "profile_names", lambda: ["tiny"])
    monkeypatch.setattr(module, "MEASURES", {"dynamics": None, "dynamics_stability": None})
    return target


def test_what_is_missing_is_counted_and_what_to_do_is_said(folder):
    (folder / "measured").mkdir()
    (folder / "measured" / f"dynamics_stability-{'0' * 16}.parquet").touch()
    runs, measured, tables, again = unfinished(folder)
    assert runs.startswith("3 of 4 runs of grid and sweep are missing, such as tiny-random · ")
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
    profile = module.load_profile("tiny", 0)
    entry = SweepEntry(task=profile.tasks[0], arm="all", weights=(0.5, 1.0, 3.0))
    swept = replace(profile, sweep=(entry,))
    monkeypatch.setattr(module, "load_profile", lambda name, seed: swept)
    runs, *_ = unfinished(folder)  # weight 1 is the grid's
    assert runs.startswith("7 of 8 runs of grid and sweep are missing, such as tiny-random · ")
    made = (folder / "runs" / run_id(profile.runs()[0])).rename(folder / "runs" / ("0" * 16))
    for n, config in enumerate(profile.runs(), 1):
        _another_run(made, f"{n:016x}", **config.as_dict())
    runs, *_ = unfinished(folder)
    assert runs.startswith("4 of 8 runs")
    assert runs.endswith(" · all · seed 0 · weight 0.5")


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
