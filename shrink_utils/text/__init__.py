"""The texts of the study: verified sources, labelled tasks, sentences for diagnostics."""

from shrink_utils.text.corpora import CORPORA, load_sentences, read_snippets
from shrink_utils.text.glue import GLUE, glue_dir
from shrink_utils.text.pairs import (
    HELD_OUT,
    heuristic_pairs,
    load_pairs,
    train_tokenizer,
    training_pairs,
    translate,
)
from shrink_utils.text.sources import (
    Source,
    fetch,
    hub_revisions,
    sha256_of,
    source_hashes,
    source_path,
    sources,
)
from shrink_utils.text.tasks import TASKS, TaskSpec, load_task, task_spec

__all__ = [
    "CORPORA",
    "GLUE",
    "HELD_OUT",
    "TASKS",
    "Source",
    "TaskSpec",
    "fetch",
    "glue_dir",
    "heuristic_pairs",
    "hub_revisions",
    "load_pairs",
    "load_sentences",
    "load_task",
    "read_snippets",
    "sha256_of",
    "source_hashes",
    "source_path",
    "sources",
    "task_spec",
    "train_tokenizer",
    "training_pairs",
    "translate",
]
