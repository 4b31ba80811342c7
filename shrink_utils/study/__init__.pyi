from . import figures
from .ablation import histories, run_grid, run_sweep
from .after_finetuning import measure_after_finetuning
from .contexts import WordContexts, word_contexts
from .contextuality import measure_contextuality
from .corpus import measure_corpus, stream_corpus
from .dynamics import measure_dynamics
from .dynamics_claims import dynamics_claims
from .dynamics_stability import measure_stability
from .family import family_models, measure_family
from .frontier import frontier_figure, frontier_table
from .live import LiveCurves, run_curves
from .profiles import Profile, load_profile, profile_names
from .provenance import provenance
from .rajaee import accuracy_drops, rajaee_claims
from .report import claims_as_text
from .run_folder import Run, load_run
from .run_ids import run_id
from .runs import default_run, run_encoder, run_or_load
from .scratch_runs import (
    ScratchRun,
    scratch_config,
    scratch_encoder,
    train_or_load,
)
from .session import begin
from .stitched import measure_stitched, penalty_floors, stitching_runs
from .stitching_claims import stitching_claims
from .stl import stl_claims
from .stsb_after_finetuning import has_stsb, measure_stsb_after_finetuning
from .tables import (
    as_printed,
    read_table,
    score_table,
    summarize,
    task_table,
    write_table,
)
from .vazquez import vazquez_claims
from .verdicts import all_claims
from .words_after_finetuning import measure_words_after_finetuning

__all__ = [
    "LiveCurves",
    "Profile",
    "Run",
    "ScratchRun",
    "WordContexts",
    "accuracy_drops",
    "all_claims",
    "as_printed",
    "begin",
    "claims_as_text",
    "default_run",
    "dynamics_claims",
    "family_models",
    "figures",
    "frontier_figure",
    "frontier_table",
    "has_stsb",
    "histories",
    "load_profile",
    "load_run",
    "measure_after_finetuning",
    "measure_contextuality",
    "measure_corpus",
    "measure_dynamics",
    "measure_family",
    "measure_stability",
    "measure_stitched",
    "measure_stsb_after_finetuning",
    "measure_words_after_finetuning",
    "penalty_floors",
    "profile_names",
    "provenance",
    "rajaee_claims",
    "read_table",
    "run_curves",
    "run_encoder",
    "run_grid",
    "run_id",
    "run_or_load",
    "run_sweep",
    "score_table",
    "scratch_config",
    "scratch_encoder",
    "stitching_claims",
    "stitching_runs",
    "stl_claims",
    "stream_corpus",
    "summarize",
    "task_table",
    "train_or_load",
    "vazquez_claims",
    "word_contexts",
    "write_table",
]
