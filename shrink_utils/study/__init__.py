"""What is run, run-or-load, verdicts, and what people look at."""

from shrink_utils.study import figures
from shrink_utils.study.ablation import histories, run_grid, run_sweep
from shrink_utils.study.after_finetuning import measure_after_finetuning
from shrink_utils.study.contexts import WordContexts, word_contexts
from shrink_utils.study.contextuality import measure_contextuality
from shrink_utils.study.corpus import measure_corpus, stream_corpus
from shrink_utils.study.dynamics import measure_dynamics
from shrink_utils.study.dynamics_claims import dynamics_claims
from shrink_utils.study.dynamics_stability import measure_stability
from shrink_utils.study.family import family_models, measure_family
from shrink_utils.study.frontier import frontier_figure, frontier_table
from shrink_utils.study.live import LiveCurves, run_curves
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.study.provenance import provenance
from shrink_utils.study.rajaee import accuracy_drops, rajaee_claims
from shrink_utils.study.report import claims_as_text
from shrink_utils.study.run_folder import Run, load_run
from shrink_utils.study.runs import default_run, run_encoder, run_id, run_or_load
from shrink_utils.study.scratch_runs import (
    ScratchRun,
    scratch_config,
    scratch_encoder,
    train_or_load,
)
from shrink_utils.study.session import begin
from shrink_utils.study.stitched import measure_stitched, penalty_floors, stitching_runs
from shrink_utils.study.stitching_claims import stitching_claims
from shrink_utils.study.stl import stl_claims
from shrink_utils.study.stsb_after_finetuning import has_stsb, measure_stsb_after_finetuning
from shrink_utils.study.tables import (
    as_printed,
    read_table,
    score_table,
    summarize,
    task_table,
    write_table,
)
from shrink_utils.study.vazquez import vazquez_claims
from shrink_utils.study.verdicts import all_claims
from shrink_utils.study.words_after_finetuning import measure_words_after_finetuning

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
