from .corpora import CORPORA, load_sentences, read_snippets
from .hans import hans_dir, read_hans
from .heuristics import heuristic_pairs, training_pairs
from .pairs import load_pairs
from .pins import hub_revision, hub_revisions, source_hashes
from .rule_language import translate
from .sources import Source, fetch, sha256_of, source_path, sources
from .tasks import TASKS, TaskSpec, load_task, task_spec
from .vocabulary import train_tokenizer

__all__ = [
    "CORPORA",
    "TASKS",
    "Source",
    "TaskSpec",
    "fetch",
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
