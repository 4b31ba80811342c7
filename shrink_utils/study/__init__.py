"""What is run, run-or-load, verdicts, and what people look at."""

from shrink_utils.study import figures
from shrink_utils.study.ablation import histories, run_grid
from shrink_utils.study.after_finetuning import measure_after_finetuning
from shrink_utils.study.contexts import WordContexts, word_contexts
from shrink_utils.study.contextuality import measure_contextuality
from shrink_utils.study.corpus import measure_corpus, stream_corpus
from shrink_utils.study.live import LiveCurves, run_curves
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.study.provenance import provenance
from shrink_utils.study.rajaee import accuracy_drops, rajaee_claims
from shrink_utils.study.report import claims_as_text
from shrink_utils.study.run_folder import Run, load_run
from shrink_utils.study.runs import default_run, run_encoder, run_id, run_or_load
from shrink_utils.study.session import begin
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
    "WordContexts",
    "accuracy_drops",
    "all_claims",
    "as_printed",
    "begin",
    "claims_as_text",
    "default_run",
    "figures",
    "has_stsb",
    "histories",
    "load_profile",
    "load_run",
    "measure_after_finetuning",
    "measure_contextuality",
    "measure_corpus",
    "measure_stsb_after_finetuning",
    "measure_words_after_finetuning",
    "profile_names",
    "provenance",
    "rajaee_claims",
    "read_table",
    "run_curves",
    "run_encoder",
    "run_grid",
    "run_id",
    "run_or_load",
    "score_table",
    "stl_claims",
    "stream_corpus",
    "summarize",
    "task_table",
    "vazquez_claims",
    "word_contexts",
    "write_table",
]
