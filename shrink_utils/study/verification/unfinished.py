"""What a folder of results lacks of a whole study, when it has not come to its end."""

from __future__ import annotations

import re
from pathlib import Path

from shrink_utils.study.claims.reference import TABLES
from shrink_utils.study.claims.verdicts import MEASURES
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.study.verification.newest_runs import full_label, newest_runs
from shrink_utils.study.verification.page import PAGE, run_folders

__all__ = ["unfinished"]


def unfinished(folder: Path) -> list[str]:
    """What is missing, a line a kind; nothing of a study that has come to its end.

    Parameters
    ----------
    folder : Path
        ``results/<profile>`` or ``results/<profile>-seed<n>``: its name says what belongs there.
        Of a folder of another name it is only said that it is not finished.
    """
    if (folder / PAGE).is_file():
        return []
    named = re.fullmatch(r"(\w+?)(?:-seed(\d+))?", folder.resolve().name)
    if named is None or named[1] not in profile_names():
        return [f"{PAGE} is not there: `make reproduce` writes it at its end"]
    profile = load_profile(named[1], seed=int(named[2] or 0))
    seed = f" SEED={profile.base_seed}" if profile.base_seed else ""
    again = f"`make reproduce PROFILE={profile.name}{seed}` goes on, and writes {PAGE} at its end"
    return [*_missing(folder, profile), again]


def _missing(folder: Path, profile: Profile) -> list[str]:
    wanted = {*profile.runs(), *profile.sweep_runs()}
    absent_runs = wanted - newest_runs(run_folders(folder)).keys()
    measured, tables = folder / "measured", folder / "tables"
    parts = {
        "runs of grid and sweep": (wanted, [full_label(config) for config in absent_runs]),
        "measured tables": (
            MEASURES,
            {name for name in MEASURES if not any(measured.glob(f"{name}-*.parquet"))},
        ),
        "tables": (TABLES, {name for name in TABLES if not (tables / f"{name}.csv").is_file()}),
    }
    return [
        f"{len(absent)} of {len(whole)} {kind} are missing, such as {min(absent)}"
        for kind, (whole, absent) in parts.items()
        if absent
    ]
