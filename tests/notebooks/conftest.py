"""nbval as a person would call it, with kernels that watch what rounding decides."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WATCH = Path(__file__).with_name("rounding.py")


@pytest.fixture
def nbval(tmp_path):
    """Run ``pytest --nbval-lax`` on notebooks, in `root` and with more variables if need be."""
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    begin = (
        f"exec(compile(open({str(WATCH)!r}).read(), {WATCH.name!r}, 'exec'), {{'__name__': 'w'}})"
    )
    (startup / "00.py").write_text(begin, encoding="utf-8")  # names of its own, none of a chapter

    def run(*notebooks: Path, root: Path | None = None, **variables: str):
        command = [sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider"]
        command += ["-o", "addopts=", "--rootdir", str(notebooks[0].parent), "-W", "default"]
        command += ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout", "300"]
        return subprocess.run(
            [*command, *map(str, notebooks)],
            cwd=root,
            env={**os.environ, "IPYTHONDIR": str(startup.parents[1]), **variables},
            capture_output=True,
            text=True,
        )

    return run
