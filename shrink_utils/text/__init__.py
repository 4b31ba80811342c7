"""The texts of the study: labelled tasks, sentences for diagnostics, pairs."""

from shrink_utils.text.corpora import (
    CORPORA as CORPORA,
    load_sentences as load_sentences,
    read_snippets as read_snippets,
)
from shrink_utils.text.pairs import (
    heuristic_pairs as heuristic_pairs,
    training_pairs as training_pairs,
)
from shrink_utils.text.tasks import (
    TASKS as TASKS,
    load_task as load_task,
)
