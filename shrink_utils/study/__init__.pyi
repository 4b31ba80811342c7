from . import figures
from .ablation import frontier_table
from .claims.brown import stitching_claims
from .claims.rajaee import accuracy_drops, rajaee_claims
from .claims.report import claims_in_brief
from .claims.stl import stl_claims
from .claims.vazquez import dynamics_claims, vazquez_claims
from .claims.verdicts import all_claims
from .profiles import Profile, load_profile, profile_names
from .results import provenance
from .runs import Run, load_run, run_encoder, run_id, run_or_load
from .scheduling import default_run, run_grid, run_sweep
from .scratch_models import scratch_config, train_or_load
from .session import setup_notebook
from .tables import (
    as_printed,
    histories,
    read_table,
    score_table,
    summarize,
    task_table,
    write_table,
)

__all__ = [
    "Profile",
    "Run",
    "accuracy_drops",
    "all_claims",
    "as_printed",
    "claims_in_brief",
    "default_run",
    "dynamics_claims",
    "figures",
    "frontier_table",
    "histories",
    "load_profile",
    "load_run",
    "profile_names",
    "provenance",
    "rajaee_claims",
    "read_table",
    "run_encoder",
    "run_grid",
    "run_id",
    "run_or_load",
    "run_sweep",
    "score_table",
    "scratch_config",
    "setup_notebook",
    "stitching_claims",
    "stl_claims",
    "summarize",
    "task_table",
    "train_or_load",
    "vazquez_claims",
    "write_table",
]
