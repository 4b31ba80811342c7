"""The line of progress of a whole study, on a make that is played by a script."""

import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from shrink_utils.paths import data_dir, home
from shrink_utils.study import load_profile
from shrink_utils.study.runs import run_id
from shrink_utils.study.watch import SECONDS, watch_study

# Plans one notebook, and then makes two runs and the notebook, or fails.
PLAYED = """
import os, pathlib, sys
if "-n" in sys.argv:
    print("python -m shrink_utils execute notebooks/00_first.ipynb 00_first.ipynb")
    sys.exit()
assert sys.argv[-1] == "parts" and os.environ["TQDM_DISABLE"] == "1"
print("a word that nobody needs")
for path in {paths}:
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).touch()
print("a warning", file=sys.stderr)
sys.exit({status})
"""


@pytest.fixture
def smoke(tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    return load_profile("smoke")


def _play(smoke, tmp_path, *, status=0, runs=2):
    script = tmp_path / "make.py"
    names = [run_id(config) for config in smoke.all_runs()]
    paths = [smoke.folder / "runs" / name for name in names[:runs]]
    paths.append(smoke.folder / "notebooks" / "00_first.ipynb")
    script.write_text(PLAYED.format(paths=list(map(str, paths)), status=status))
    return watch_study(smoke, make=[sys.executable, str(script)]), len(set(names))


def test_one_line_counts_runs_and_notebooks_and_errors_stand_above_it(smoke, tmp_path, capsys):
    status, runs = _play(smoke, tmp_path)
    shown = capsys.readouterr()
    assert status == 0 and shown.out == ""
    assert "a warning\n" in shown.err and "nobody needs" not in shown.err
    last = shown.err.rstrip().split("\r")[-1]
    assert last.startswith(f"2 of {runs} runs, 1 of 1 notebooks: ") and "so far" in last


def test_a_failure_is_makes_own(smoke, tmp_path):
    assert _play(smoke, tmp_path, status=2, runs=0)[0] == 2


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_watch_that_is_told_to_end_ends_make_too(sent, tmp_path):
    played, begun = tmp_path / "make", tmp_path / "pid"
    sleeping = f"echo $$ > {begun}; exec sleep 99"
    played.write_text(f'#!/bin/sh\ncase "$*" in *" -n "*) exit;; esac\n{sleeping}\n')
    played.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    results = {"SHRINK_RESULTS_DIR": str(tmp_path), "PATH": path}
    command = [sys.executable, "-m", "shrink_utils", "--profile", "smoke", "watch"]
    watch = subprocess.Popen(
        command,
        env=os.environ | results,
        stderr=subprocess.PIPE,
        cwd=home(),
        # A shell lets what it starts in the background ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while not (begun.exists() and begun.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.1)
    watch.send_signal(sent)
    assert "interrupted" in watch.communicate(timeout=60)[1].decode()
    assert watch.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_what_is_there_is_not_counted_again(smoke, tmp_path, capsys):
    first = smoke.folder / "runs" / run_id(smoke.all_runs()[0])
    first.mkdir(parents=True)
    os.utime(first, (0, 0))
    _, runs = _play(smoke, tmp_path, runs=0)
    assert f"0 of {runs - 1} runs, 1 of 1 notebooks" in capsys.readouterr().err


def test_quick_has_seconds_of_every_chapter_for_studies_that_nobody_has_timed():
    kept = pd.read_csv(data_dir() / "reference" / "quick" / SECONDS, index_col="part")
    chapters = {path.stem for path in (home() / "notebooks").glob("[0-9]*.ipynb")}
    assert set(kept.index) == {*chapters, "run"} and (kept.seconds > 0).all()
