"""What has been computed of a profile, and what is still to do."""

from __future__ import annotations

import pandas as pd

from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.ids import run_id
from shrink_utils.study.runs.whole_folder import read_json

__all__ = ["list_runs"]


def list_runs(profile: Profile) -> pd.DataFrame:
    """The profile's grid and weight sweep, one run a row, each once.

    Returns
    -------
    DataFrame
        Columns run (its folder's name), model, task, arm, weight, seed, and ``seconds`` that it
        took: a dash for a run that is not there.
    """
    rows = []
    for config in dict.fromkeys([*profile.runs(), *profile.sweep_runs()]):
        stamp = profile.folder / "runs" / run_id(config) / "provenance.json"
        row = {name: getattr(config, name) for name in ("model", "task", "arm", "weight", "seed")}
        seconds = read_json(stamp)["seconds"] if stamp.is_file() else "–"
        rows.append({"run": run_id(config), **row, "seconds": seconds})
    return pd.DataFrame(rows)
