"""What is run, run-or-load, verdicts, and what people look at."""

from shrink_utils.study import figures
from shrink_utils.study.ablation import histories, run_grid
from shrink_utils.study.live import LiveCurves, run_curves
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.study.provenance import provenance
from shrink_utils.study.report import claims_as_text
from shrink_utils.study.run_folder import Run, load_run
from shrink_utils.study.runs import default_run, run_encoder, run_id, run_or_load
from shrink_utils.study.session import begin
from shrink_utils.study.stl import stl_claims
from shrink_utils.study.tables import (
    as_printed,
    read_table,
    score_table,
    summarize,
    task_table,
    write_table,
)

__all__ = [
    "LiveCurves",
    "Profile",
    "Run",
    "as_printed",
    "begin",
    "claims_as_text",
    "default_run",
    "figures",
    "histories",
    "load_profile",
    "load_run",
    "profile_names",
    "provenance",
    "read_table",
    "run_curves",
    "run_encoder",
    "run_grid",
    "run_id",
    "run_or_load",
    "score_table",
    "stl_claims",
    "summarize",
    "task_table",
    "write_table",
]
