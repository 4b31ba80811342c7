"""What is run, run-or-load, verdicts, and what people look at."""

from shrink_utils.study import figures
from shrink_utils.study.ablation import histories, run_grid
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.study.provenance import provenance
from shrink_utils.study.runs import Run, default_run, load_run, run_id, run_or_load

__all__ = [
    "Profile",
    "Run",
    "default_run",
    "figures",
    "histories",
    "load_profile",
    "load_run",
    "profile_names",
    "provenance",
    "run_grid",
    "run_id",
    "run_or_load",
]
