"""From rows of a task to tokens, and from tokens to batches."""

from collections.abc import Callable

from datasets import Dataset
from torch import Tensor
from transformers import PreTrainedTokenizerBase


def tokenized(
    rows: Dataset, tokenizer: PreTrainedTokenizerBase, *, max_length: int | None = None
) -> Dataset:
    """Tokens of ``text`` (and ``text_pair``), with the label in ``labels``.

    Longer rows than `max_length` are cut; by default at what the tokenizer says.

    Raises
    ------
    ValueError
        `max_length` leaves no token of a text beside the special ones.
    """
    pairs = second_texts(rows)
    special = tokenizer.num_special_tokens_to_add(pair=pairs is not None)
    least = special + (1 if pairs is None else 2)
    if max_length is not None and max_length < least:
        raise ValueError(
            f"max_length: {max_length} tokens, expected at least {least}: "
            f"{special} are special tokens, and one per text is to be left"
        )
    tokens = tokenizer(list(rows["text"]), pairs, truncation=True, max_length=max_length)
    return Dataset.from_dict({**tokens, "labels": list(rows["label"])})


def second_texts(rows: Dataset) -> list[str] | None:
    """Second texts; None for a task of single texts."""
    return None if rows["text_pair"][0] is None else list(rows["text_pair"])


def fixed_batches(rows: Dataset, pad: Callable, *, batch_size: int) -> list[dict[str, Tensor]]:
    """Tokenized rows as batches, in their order, padded by `pad`, a collator of transformers."""
    examples = rows.to_list()
    return [dict(pad(examples[i : i + batch_size])) for i in range(0, len(examples), batch_size)]
