"""The texts of the study: verified sources, labelled tasks, sentences for diagnostics."""

from __future__ import annotations

from shrink_utils.text.corpora import CORPORA, load_sentences, read_snippets
from shrink_utils.text.hans import hans_dir, read_hans
from shrink_utils.text.heuristics import heuristic_pairs, training_pairs
from shrink_utils.text.pairs import load_pairs
from shrink_utils.text.rule_language import translate
from shrink_utils.text.sources import Source, fetch, sha256_of, source_path, sources
from shrink_utils.text.tasks import TASKS, TaskSpec, load_task, task_spec
from shrink_utils.text.vocabulary import train_tokenizer

__all__ = [
    "CORPORA",
    "TASKS",
    "Source",
    "TaskSpec",
    "fetch",
    "hans_dir",
    "heuristic_pairs",
    "load_pairs",
    "load_sentences",
    "load_task",
    "read_hans",
    "read_snippets",
    "sha256_of",
    "source_path",
    "sources",
    "task_spec",
    "train_tokenizer",
    "training_pairs",
    "translate",
]
