"""A study of four runs, run by the command line in a process of its own, so that it can be hurt."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shrink_utils.sources import data_dir
from shrink_utils.study import load_profile
from shrink_utils.study.profiles import FOLDER

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]  # mounts that nobody else sees


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Profile smoke, cut to two arms and two seeds of one task: a TOML file of one's own."""
    text = (FOLDER / "smoke.toml").read_text(encoding="utf-8")
    text = re.sub(r"(?s)\[\[grid\]\]\ntask = \"sentiment_products\".*?(?=# Models)", "", text)
    text = text.replace("seeds = [0, 1, 2]", "seeds = [0, 1]", 1)
    text = re.sub(r'arms = \["none", "prominent", .*?\]', 'arms = ["none", "all"]', text, count=1)
    path = tmp_path_factory.mktemp("profile") / "small.toml"
    path.write_text(text, encoding="utf-8")
    assert len(load_profile(path).runs()) == 4 and not load_profile(path).sweep_runs()
    return path


@pytest.fixture
def command(small):
    """The command line on the small profile."""
    return [sys.executable, "-m", "shrink_utils", "--profile", str(small)]


def _environment(results: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("SHRINK_")}
    folders = {"SHRINK_RESULTS_DIR": str(results), "SHRINK_DATA_DIR": str(data_dir())}
    return {**kept, **folders, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def shrink(command):
    """Start the command line on a folder of results: ``shrink(results, "ablate")``."""

    def start(results: Path, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [*command, *arguments],
            env=_environment(results),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return start


@pytest.fixture
def with_mounts(command):
    """Run a shell script that may mount: ``$SHRINK`` is the command line, ``$RESULTS`` a folder."""

    def run(results: Path, script: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [*NAMESPACE, "sh", "-ec", script],
            env={**_environment(results), "SHRINK": " ".join(command), "RESULTS": str(results)},
            capture_output=True,
            text=True,
        )

    return run


@pytest.fixture(scope="session")
def can_mount():
    """Skip where this process may not mount a file system in a namespace of its own."""
    script = "mount -t tmpfs tmpfs /mnt"
    try:
        tried = subprocess.run([*NAMESPACE, "sh", "-c", script], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no unshare (util-linux) here")
    if tried.returncode:
        pytest.skip(f"no mounts in a namespace of one's own here: {tried.stderr.strip()}")
