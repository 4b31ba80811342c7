"""From rows of a task to tokens, and from tokens to batches and parts of batches."""

from collections.abc import Callable

import torch
from datasets import Dataset
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Encoders that make the same of a row whatever its padding, also of embedded words. Decoders are
# not among them: they look for a row's last word in its ids.
ENCODERS = ("bert", "mpnet", "roberta")
PARTS = 4
LEAST_SAVED = 0.2  # of a batch's positions; where parts save less, the batch passes whole


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
    starts = range(0, len(examples), batch_size)
    return [dict(pad(examples[start : start + batch_size])) for start in starts]


def by_length(
    inputs: dict[str, Tensor], model: PreTrainedModel
) -> tuple[list[dict[str, Tensor]], Tensor]:
    """Parts of a batch, the shortest rows first, each as wide as its own longest row.

    Together they give what the batch gives, but for rounding and for the draws of dropout.

    Parameters
    ----------
    inputs : dict of Tensor
        ``input_ids``, ``attention_mask`` and others of shape (b, t), and ``labels`` (b,).
    model : PreTrainedModel
        Its table of words is read once for all parts, which have ``inputs_embeds`` instead of
        ``input_ids``: each gradient of a look-up is as large as the table.

    Returns
    -------
    parts : list of dict
        The batch itself where parts would save little, where it is padded on the left, or where
        the model is none of `ENCODERS`.
    place : Tensor, shape (b,)
        Where each row of the batch stands in the parts, taken one after the other.
    """
    mask = inputs["attention_mask"]
    lengths, order = mask.sum(1).sort(stable=True)
    chunks = order.tensor_split(min(PARTS, len(order)))
    widths = [int(part.max()) for part in lengths.tensor_split(len(chunks))]
    positions = sum(len(rows) * t for rows, t in zip(chunks, widths, strict=True))
    possible = model.config.model_type in ENCODERS and mask[:, 0].all()
    if not possible or positions > (1 - LEAST_SAVED) * mask.numel():
        return [inputs], torch.arange(len(mask), device=mask.device)
    words = model.get_input_embeddings()(inputs["input_ids"])  # (b, t, d)
    rest = {name: x for name, x in inputs.items() if name != "input_ids"} | {"inputs_embeds": words}
    parts = [
        {name: x[rows, :t] if x.ndim > 1 else x[rows] for name, x in rest.items()}
        for rows, t in zip(chunks, widths, strict=True)
    ]
    return parts, order.argsort()
