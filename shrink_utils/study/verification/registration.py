"""Whether the analysis of docs/preregistration.md was fixed before the runs that it decides on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from datetime import datetime

import pandas as pd

from shrink_utils.paths import data_dir, home
from shrink_utils.study.claims.hypotheses import REGISTERED

PAGE, DEVIATIONS = "docs/preregistration.md", "## Deviations"


def registration_faults(times: Iterable[str]) -> Iterator[str]:
    """What speaks against an analysis fixed before these runs, by their times (UTC, ISO 8601).

    The commit `REGISTERED` has to be older than the first run, and the page's text of then to
    stand unchanged; deviations are added below it.
    """
    commit = REGISTERED
    written, text = _git("-s", "--format=%cI", commit), _git(f"{commit}:{PAGE}")
    if written is None or text is None:
        yield f"commit {commit[:12]} of {PAGE} is not in this checkout's history"
        return
    first = min(datetime.fromisoformat(time) for time in times)
    if datetime.fromisoformat(written.strip()) >= first:
        yield f"{PAGE} is of {written.strip()}, the first run of {first.isoformat()}"
    if not (home() / PAGE).read_text(encoding="utf-8").startswith(text.split(DEVIATIONS)[0]):
        yield f"{PAGE} is not the text of commit {commit[:12]}: add a deviation below it instead"


def record_faults(profile: str) -> Iterator[str]:
    """The same of a profile's committed runs, which decide the hypotheses.

    A repeated study is always younger than the analysis, so its own times show nothing.
    """
    path = data_dir() / "reference" / profile / "runs.parquet"  # study/records.py writes it
    yield from registration_faults(pd.read_parquet(path, columns=["time"]).time)


def _git(*what: str) -> str | None:
    git = ["git", "-C", str(home()), "show", *what]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return None
