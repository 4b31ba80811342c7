"""Of two processes that want the same result one computes it, whatever becomes of the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from shrink_utils.study.runs import once
from shrink_utils.study.runs.once import alone

# The module by its file: the package around it would take seconds to import.
HOLD = f"""
import runpy, sys, time
from pathlib import Path
alone = runpy.run_path({once.__file__!r})["alone"]
target = Path(sys.argv[1])
with alone(target):
    print("in", flush=True)
    time.sleep(float(sys.argv[2]))
    target.write_text("done")
"""


@pytest.fixture
def other(tmp_path):
    """Start another process that holds `target` for some seconds; returns when it does."""
    started = []

    def hold(target, seconds):
        command = [sys.executable, "-c", HOLD, str(target), str(seconds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "in\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_who_comes_later_waits_until_the_first_is_done(tmp_path, other):
    target = tmp_path / "result"
    other(target, 0.5)
    with alone(target):
        assert target.read_text() == "done"


def test_another_target_is_free(tmp_path, other):
    other(tmp_path / "result", 30)
    started = time.monotonic()
    with alone(tmp_path / "another"):
        assert time.monotonic() - started < 10


def test_a_killed_process_holds_nothing_back(tmp_path, other):
    process = other(tmp_path / "result", 30)
    os.kill(process.pid, signal.SIGKILL)
    started = time.monotonic()
    with alone(tmp_path / "result"):
        assert time.monotonic() - started < 10
    assert not (tmp_path / "result").exists()


def test_nothing_is_left_among_the_results(tmp_path):
    with alone(tmp_path / "result"):
        pass
    assert list(tmp_path.iterdir()) == []
