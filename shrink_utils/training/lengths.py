"""Rows of like lengths pass together: a processor works as long on padding as on words."""

import torch
from torch import Tensor
from torch.nn import Module

PARTS = 4
LEAST_SAVED = 0.2  # of a batch's positions; where parts save less, the batch passes whole


def by_length(inputs: dict[str, Tensor], embed: Module) -> tuple[list[dict[str, Tensor]], Tensor]:
    """Parts of a batch, the shortest rows first, each as wide as its own longest row.

    What a model makes of a row does not depend on padding. So the parts give together what the
    batch gives, but for rounding and for the draws of dropout.

    Parameters
    ----------
    inputs : dict of Tensor
        ``input_ids``, ``attention_mask`` and others of shape (b, t), and ``labels`` (b,).
    embed : Module
        The model's table of tokens. It is read once for all parts, which have ``inputs_embeds``
        instead of ``input_ids``: each gradient of a look-up is as large as the table.

    Returns
    -------
    parts : list of dict
        The batch itself where parts would save little, or where it is padded on the left.
    place : Tensor, shape (b,)
        Where each row of the batch stands in the parts, taken one after the other.
    """
    mask = inputs["attention_mask"]
    lengths, order = mask.sum(1).sort(stable=True)
    chunks = order.tensor_split(min(PARTS, len(order)))
    widths = [int(part.max()) for part in lengths.tensor_split(len(chunks))]
    positions = sum(len(rows) * t for rows, t in zip(chunks, widths, strict=True))
    if positions > (1 - LEAST_SAVED) * mask.numel() or not mask[:, 0].all():
        return [inputs], torch.arange(len(mask), device=mask.device)
    words = embed(inputs["input_ids"])  # (b, t, d)
    rest = {name: x for name, x in inputs.items() if name != "input_ids"} | {"inputs_embeds": words}
    parts = [
        {name: x[rows, :t] if x.ndim > 1 else x[rows] for name, x in rest.items()}
        for rows, t in zip(chunks, widths, strict=True)
    ]
    return parts, order.argsort()
