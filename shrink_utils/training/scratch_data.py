"""What a model trained from nothing reads: tokens to learn from, and fixed ones to be judged by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

from datasets import Dataset
from torch import Tensor
from transformers import (
    DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq,
    PreTrainedTokenizerBase,
)

from shrink_utils.text import load_pairs, train_tokenizer
from shrink_utils.training.rows import fixed_batches
from shrink_utils.training.scratch_config import ScratchConfig

__all__ = [
    "collator",
    "examples",
    "held_out_batches",
    "scratch_tokenizer",
    "training_examples",
]

HELD_OUT_MASKS = 0  # seed of the masks on the held-out sentences: the same for every model


def scratch_tokenizer(config: ScratchConfig) -> PreTrainedTokenizerBase:
    """The tokenizer of every model with this source, number of sentences and vocabulary.

    It is trained on the sentences and on their translations, so that all objectives share it, and
    once in a process.
    """
    return _tokenizer(config.source, config.sentences, config.vocabulary, config.max_length)


@lru_cache(maxsize=8)
def _tokenizer(
    source: str, sentences: int | None, vocabulary: int, max_length: int
) -> PreTrainedTokenizerBase:
    rows = load_pairs(source, n=sentences)["train"]
    tokenizer = train_tokenizer([*rows["text"], *rows["translation"]], vocab_size=vocabulary)
    tokenizer.model_max_length = max_length
    return tokenizer


def examples(config: ScratchConfig, tokenizer: PreTrainedTokenizerBase) -> tuple[Dataset, Dataset]:
    """Tokens of the training and of the held-out sentences.

    Parameters
    ----------
    config : ScratchConfig
    tokenizer : PreTrainedTokenizerBase
        Of `scratch_tokenizer`.

    Returns
    -------
    train, held_out : Dataset
        Columns ``input_ids`` and ``labels``, lists of unequal lengths. Labels are the tokens to
        predict: the tokens themselves (clm: the model shifts them), those of the translation with
        [SEP] and without [CLS] (mt), or −100 but at masked places (mlm). The training sentences
        of mlm have no labels: `collator` masks them anew each time.
    """
    return training_examples(config, tokenizer), _held_out(_reading(config), tokenizer)


def training_examples(config: ScratchConfig, tokenizer: PreTrainedTokenizerBase) -> Dataset:
    """The first of the two that `examples` gives."""
    return _train(_reading(config), tokenizer)


def collator(config: ScratchConfig, tokenizer: PreTrainedTokenizerBase) -> Callable:
    """A function from training examples to a padded batch; of mlm, it masks by `data_seed`."""
    if config.objective == "mlm":
        return DataCollatorForLanguageModeling(
            tokenizer, mlm_probability=config.masked, seed=config.data_seed
        )
    return DataCollatorForSeq2Seq(tokenizer)


def held_out_batches(
    config: ScratchConfig, tokenizer: PreTrainedTokenizerBase, *, n: int | None = None
) -> list[dict[str, Tensor]]:
    """The first `n` held-out sentences as padded batches with labels: what losses are judged on.

    Parameters
    ----------
    config : ScratchConfig
        Models of one source and objective are given the same sentences and masks.
    tokenizer : PreTrainedTokenizerBase
    n : int, optional
        Sentences; all that are held out when None.

    Returns
    -------
    list of dict
        ``input_ids``, ``attention_mask`` (b, t) and ``labels`` (b, u), b at most `batch_size`.

    Raises
    ------
    ValueError
        Fewer than `n` sentences are held out.
    """
    rows = _held_out(_reading(config), tokenizer, n)
    return fixed_batches(rows, DataCollatorForSeq2Seq(tokenizer), batch_size=config.batch_size)


@dataclass(frozen=True)
class _Reading:
    """What of a configuration decides the tokens: models that share it read the same."""

    objective: str
    source: str
    sentences: int | None
    max_length: int
    masked: float


def _reading(config: ScratchConfig) -> _Reading:
    return _Reading(**{field.name: getattr(config, field.name) for field in fields(_Reading)})


@lru_cache(maxsize=4)
def _train(reading: _Reading, tokenizer: PreTrainedTokenizerBase) -> Dataset:
    return _tokens(load_pairs(reading.source, n=reading.sentences)["train"], reading, tokenizer)


@lru_cache(maxsize=8)
def _held_out(
    reading: _Reading, tokenizer: PreTrainedTokenizerBase, n: int | None = None
) -> Dataset:
    rows = load_pairs(reading.source, n=reading.sentences)["held_out"]
    n = len(rows) if n is None else n
    if not 1 <= n <= len(rows):
        raise ValueError(f"n: {n}, expected 1 to {len(rows)} held-out sentences")
    tokens = _tokens(rows.select(range(n)), reading, tokenizer)
    return _masked(tokens, reading, tokenizer) if reading.objective == "mlm" else tokens


def _tokens(rows: Dataset, reading: _Reading, tokenizer: PreTrainedTokenizerBase) -> Dataset:
    def encode(texts: Sequence[str]) -> list[list[int]]:
        options = {"max_length": reading.max_length, "return_attention_mask": False}
        return tokenizer(list(texts), truncation=True, **options)["input_ids"]

    columns = {"input_ids": encode(rows["text"])}
    if reading.objective == "clm":
        columns["labels"] = columns["input_ids"]
    elif reading.objective == "mt":  # [CLS] is what the decoder begins from
        columns["labels"] = [ids[1:] for ids in encode(rows["translation"])]
    return Dataset.from_dict(columns)


def _masked(rows: Dataset, reading: _Reading, tokenizer: PreTrainedTokenizerBase) -> Dataset:
    """Masks that never change, drawn sentence by sentence so that the first n are the same."""
    mask = DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=reading.masked, seed=HELD_OUT_MASKS
    )
    batches = [mask([row]) for row in rows]
    return Dataset.from_dict(
        {name: [batch[name][0].tolist() for batch in batches] for name in ("input_ids", "labels")}
    )
