"""The texts of the study: verified sources, labelled tasks, sentences for diagnostics."""

from shrink_utils.text.corpora import (
    CORPORA as CORPORA,
    load_sentences as load_sentences,
    read_snippets as read_snippets,
)
from shrink_utils.text.tasks import GLUE as GLUE, glue_dir as glue_dir
from shrink_utils.text.pairs import (
    heuristic_pairs as heuristic_pairs,
    training_pairs as training_pairs,
)
from shrink_utils.text.tasks import (
    TASKS as TASKS,
    TaskSpec as TaskSpec,
    load_task as load_task,
    task_spec as task_spec,
)
from shrink_utils.text.corpora import (
    split_sentences as split_sentences,
    train_tokenizer as train_tokenizer,
)
