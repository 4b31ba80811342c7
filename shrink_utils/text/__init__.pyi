from .corpora import CORPORA, load_sentences, read_snippets
from .glue import GLUE, glue_dir
from .heuristics import (
    HANS_FILE,
    HELD_OUT,
    PAIR_FEATURES,
    hans_dir,
    heuristic_pairs,
    read_hans,
    training_pairs,
)
from .sources import (
    Source,
    fetch,
    hub_revision,
    hub_revisions,
    sha256_of,
    source_hashes,
    source_path,
    sources,
)
from .tasks import TASKS, TaskSpec, load_task, task_spec
from .translation import load_pairs, train_tokenizer, translate

__all__ = [
    "CORPORA",
    "GLUE",
    "HANS_FILE",
    "HELD_OUT",
    "PAIR_FEATURES",
    "TASKS",
    "Source",
    "TaskSpec",
    "fetch",
    "glue_dir",
    "hans_dir",
    "heuristic_pairs",
    "hub_revision",
    "hub_revisions",
    "load_pairs",
    "load_sentences",
    "load_task",
    "read_hans",
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
