"""The texts of the study: verified sources, labelled tasks, sentences for diagnostics."""

from __future__ import annotations

from shrink_utils.text.corpora import CORPORA, load_sentences, read_snippets
from shrink_utils.text.sources import Source, fetch, sha256_of, source_path, sources
from shrink_utils.text.tasks import TASKS, TaskSpec, load_task, task_spec

__all__ = [
    "CORPORA",
    "TASKS",
    "Source",
    "TaskSpec",
    "fetch",
    "load_sentences",
    "load_task",
    "read_snippets",
    "sha256_of",
    "source_path",
    "sources",
    "task_spec",
]
