"""Train small classifiers of sentence pairs: one common start, and models that part from it."""

from collections.abc import Callable
from dataclasses import dataclass

from datasets import Dataset
from torch import Tensor
from transformers import DataCollatorWithPadding, PreTrainedModel, PreTrainedTokenizerBase

from shrink_utils.models import Trunk, new_pair_classifier, with_new_head
from shrink_utils.names import require
from shrink_utils.text import heuristic_pairs, train_tokenizer, training_pairs
from shrink_utils.training.arguments import (
    EveryStep,
    _isolated_training,
    _quiet_arguments,
    _QuietTrainer,
    _tokenized,
    fixed_batches,
)

VOCABULARY = 400  # more than the templates' words
PAIR_LENGTH = 32  # tokens; the longest pair of the templates has 22
OVERLAPPING = 0.5  # of the common start's pairs that are not entailed share words all the same


@dataclass(frozen=True, kw_only=True)
class EntailmentTraining:
    """How long and how fast a model is trained; raises ValueError for what no training can have.

    Examples
    --------
    >>> EntailmentTraining(rows=64, steps=1, learning_rate=1e-3).threads
    1
    """

    rows: int  # pairs to learn from
    steps: int  # of the optimizer, with 64 pairs each
    learning_rate: float  # the highest, after a tenth of the steps; it then falls to 0 linearly
    threads: int = 1  # of torch

    def __post_init__(self) -> None:
        require(self, "rows steps threads", lambda v: v >= 1, "at least 1")
        require(self, "learning_rate", lambda v: 0 < v < 1, "between 0 and 1")


def common_start(
    trunk: Trunk,
    training: EntailmentTraining,
    *,
    seed: int = 0,
    on_step: Callable[[], None] | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """What all models begin with, in the place of a pretrained BERT: it compares two texts' words.

    It learns whether two sentences belong together, BERT's second objective: pairs that share words
    against pairs that share none. No label of entailment is used. Of the former two in three are
    entailed, and what is asked, whether words are shared, is the same for both.

    `seed` is of weights and texts; `on_step` is called after every step. Output 0 of the model: the
    texts belong together.

    Examples
    --------
    >>> from shrink_utils.models import Trunk
    >>> training = EntailmentTraining(rows=64, steps=1, learning_rate=1e-3)
    >>> model, tokenizer = common_start(Trunk(width=8, depth=1, heads=1), training)
    >>> model.num_labels
    2
    """
    rows = training_pairs(training.rows, counter_examples=OVERLAPPING, seed=seed)
    apart = [int(heuristic == "none") for heuristic in rows["heuristic"]]
    rows = rows.remove_columns("label").add_column("label", apart)
    texts: list[str] = []
    for lexicon in ("known", "new"):
        pairs = heuristic_pairs(1000, lexicon=lexicon, split="train")
        texts += [*pairs["text"], *pairs["text_pair"]]
    tokenizer = train_tokenizer(texts, vocab_size=VOCABULARY)
    sizes = {"vocab_size": len(tokenizer), "max_length": PAIR_LENGTH}
    model = new_pair_classifier(trunk, **sizes, seed=seed)
    return _train(model, tokenizer, rows, training, seed, on_step), tokenizer


def entailment_model(
    start: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    training: EntailmentTraining,
    *,
    counter_examples: float,
    seed: int,
    data_seed: int = 0,
    on_step: Callable[[], None] | None = None,
) -> PreTrainedModel:
    """Train the start, under a new head, to tell entailment; returned in evaluation mode.

    Parameters
    ----------
    start, tokenizer
        Of `common_start`; left as they are.
    counter_examples : float
        As of `training_pairs`: 0 plants the heuristic.
    seed : int
        Of the head and the order of the pairs: what models of one group differ in.
    data_seed : int
        Of the pairs.
    on_step : callable, optional
        Called after every step.

    Examples
    --------
    >>> from shrink_utils.models import Trunk
    >>> training = EntailmentTraining(rows=64, steps=1, learning_rate=1e-3)
    >>> model, tokenizer = common_start(Trunk(width=8, depth=1, heads=1), training)
    >>> entailment_model(model, tokenizer, training, counter_examples=0.5, seed=1).training
    False
    """
    rows = training_pairs(training.rows, counter_examples=counter_examples, seed=data_seed)
    return _train(with_new_head(start, seed=seed), tokenizer, rows, training, seed, on_step)


def pair_batches(rows: Dataset, tokenizer: PreTrainedTokenizerBase) -> list[dict[str, Tensor]]:
    """Pairs as padded batches with labels, in order: what `read_layers` takes.

    Examples
    --------
    >>> from shrink_utils.models import Trunk
    >>> training = EntailmentTraining(rows=64, steps=1, learning_rate=1e-3)
    >>> model, tokenizer = common_start(Trunk(width=8, depth=1, heads=1), training)
    >>> len(pair_batches(training_pairs(300, counter_examples=0.5, seed=0), tokenizer))
    2
    """
    pad = DataCollatorWithPadding(tokenizer)
    return fixed_batches(_tokenized(rows, tokenizer), pad, batch_size=256)


def _train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: Dataset,
    training: EntailmentTraining,
    seed: int,
    on_step: Callable[[], None] | None,
) -> PreTrainedModel:
    with _isolated_training(training.threads) as folder:
        arguments = _quiet_arguments(
            folder,
            max_steps=training.steps,
            per_device_train_batch_size=64,
            learning_rate=training.learning_rate,
            warmup_steps=0.1,  # a value below 1 is a fraction of the steps
            seed=seed,
            data_seed=seed,
        )
        _QuietTrainer(
            model=model,
            args=arguments,
            train_dataset=_tokenized(rows, tokenizer),
            data_collator=DataCollatorWithPadding(tokenizer),
            callbacks=[EveryStep(on_step)] if on_step else [],
        ).train()
    return model.eval()
