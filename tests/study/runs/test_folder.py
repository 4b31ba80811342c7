"""A finished run on disk: whole or absent."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from shrink_utils.study import run_id
from shrink_utils.study.runs import folder as run_folder
from shrink_utils.study.runs.folder import save_run
from shrink_utils.study.runs.whole_folder import HOST
from shrink_utils.training import finetune


@pytest.fixture(scope="module")
def result(tiny_profile):
    return finetune(tiny_profile.runs()[0])


def test_a_run_folder_holds_what_the_design_names(copied):
    config, folder = copied
    assert {path.name for path in (folder / run_id(config)).iterdir()} == {
        "config.json",
        "history.parquet",
        "metrics.json",
        "embeddings.safetensors",
        "provenance.json",
        "manifest.json",
        "model",
    }
    stamp = json.loads((folder / run_id(config) / "provenance.json").read_text())
    assert {"packages", "device", "threads", "seconds", "commit", "time"} <= set(stamp)
    assert stamp["threads"] == config.threads


def test_what_a_killed_process_left_is_swept_and_a_living_ones_kept(copied, result):
    config, folder = copied
    process = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    pid = process.stdout.strip()
    dead = folder / f"abc.{pid}.{HOST}.x.part"
    alive = folder / f"abc.{os.getpid()}.{HOST}.x.part"
    elsewhere = folder / f"abc.{pid}.another-host.x.part"
    forgotten = folder / f"abc.{pid}.another-host.y.part"
    for part in (dead, alive, elsewhere, forgotten):
        part.mkdir()
    os.utime(forgotten, (0, 0))
    save_run(config, result, {}, folder / "new")
    assert alive.is_dir() and elsewhere.is_dir()
    assert not dead.exists() and not forgotten.exists()


def test_a_save_that_fails_leaves_nothing(finished, result, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(run_folder, "save_file", fail)
    with pytest.raises(OSError, match="No space"):
        save_run(finished.runs()[0], result, {}, tmp_path / "new" / "target")
    assert list((tmp_path / "new").iterdir()) == []


def test_the_slower_of_two_writers_keeps_the_first_ones_run(copied, result):
    config, folder = copied
    before = (folder / run_id(config) / "provenance.json").read_text()
    save_run(config, result, {}, folder / run_id(config))
    assert (folder / run_id(config) / "provenance.json").read_text() == before
    assert [path.name for path in folder.iterdir()] == [run_id(config)]
