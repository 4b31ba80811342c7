"""Layer, component and attention head of each parameter of a BERT-like model, and sums over them.

A *block* is a parameter tensor or the part of one that belongs to an attention head: rows of the
query, key and value projections (with their biases), columns of the output projection.
"""

import re
from collections.abc import Mapping

import pandas as pd
import torch
from torch import Tensor, nn

from shrink_utils.training.dynamics.gradients import trainable

# Components of a layer, in the order of the computation; the encoder's states come in by "cross".
ATTENTION = ("query", "key", "value", "out")
TRUNK = (*ATTENTION, *(f"cross {name}" for name in ATTENTION), "W1", "W2", "LayerNorm")

LAYER = re.compile(r"encoder\.layer\.(\d+)\.(.+)")
INSIDE = {  # what follows the number of the layer
    r"(cross)?attention\.self\.(query|key|value)\.": None,  # named by the match itself
    r"(cross)?attention\.output\.dense\.": "out",
    r"intermediate\.dense\.": "W1",
    r"output\.dense\.": "W2",
    r".*norm\.": "LayerNorm",
}


class Blocks:
    """The blocks of a model, and the sums of products of tensors over them.

    The DataFrame ``table`` has one row per block: ``parameter``, ``stack`` ("encoder" or "decoder"
    in a model that has both, else ""), ``layer`` (0 for the embeddings, −1 outside trunk and
    embeddings), ``component``, ``head`` (−1 where there is none), ``counted`` (whether sign
    statistics count it) and ``size`` in scalars.

    Parameters
    ----------
    model : nn.Module
        Any; what it has outside the names of a BERT-like model is of component "other".
    token_ids : Tensor, optional
        Word-pieces that the allocated loss has to do with. The rows of the others become a block
        of their own, which sign statistics leave out.
    """

    def __init__(self, model: nn.Module, *, token_ids: Tensor | None = None) -> None:
        self._splits: dict[str, _Split] = {}
        rows = []
        two = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
        for name, parameter in trainable(model).items():
            stack = name.split(".")[0] if two else ""
            layer, component = _place(name.removeprefix(f"{stack}.") if two else name)
            split = _split(model, name, parameter, component, token_ids)
            self._splits[name] = split
            keys = {"parameter": name, "stack": stack, "layer": layer, "component": component}
            rows += [{**keys, **block} for block in split.describe(name, parameter)]
        self.table = pd.DataFrame(rows)

    def dots(
        self, before: Mapping[str, Tensor], after: Mapping[str, Tensor], *by: Mapping[str, Tensor]
    ) -> list[Tensor]:
        """Σ (after − before) · by, over each block: one Tensor (blocks,) for each of `by`.

        All arguments are tensors by parameter, of its shape. Differences, products and sums are
        taken in float64; the result is on the CPU.
        """
        # All of `by` in one call: in a large model the differences take longer than the products.
        sums = [
            split.dots(before[name], after[name], [of[name] for of in by])
            for name, split in self._splits.items()
        ]
        return [torch.cat(parts).cpu() for parts in zip(*sums, strict=True)]


class _Split:
    """A parameter as one block; as equal shares of its rows or columns; or by word-pieces.

    `heads` is the number of shares, and `used`, (vocabulary,), the word-pieces that the loss has to
    do with: their rows are one block, the others another.
    """

    def __init__(
        self, *, heads: int | None = None, columns: bool = False, used: Tensor | None = None
    ) -> None:
        self.heads, self.columns, self.used = heads, columns, used

    def dots(self, before: Tensor, after: Tensor, by: list[Tensor]) -> list[Tensor]:
        """One (blocks,) for each of `by`."""
        if self.used is not None:
            return [self._of_touched(before, after, x) for x in by]
        change = after.to(torch.float64, copy=True).sub_(before.double())
        return [self._sums(x.to(torch.float64, copy=True).mul_(change)) for x in by]

    def _sums(self, x: Tensor) -> Tensor:
        if self.heads is None:
            return x.sum().reshape(1)
        if self.columns:
            x = x.sum(dim=0)
        return x.reshape(self.heads, -1).sum(dim=1)

    def _of_touched(self, before: Tensor, after: Tensor, by: Tensor) -> Tensor:
        touched = by.reshape(len(by), -1).any(dim=1)  # of a large vocabulary mostly none
        x = (after[touched].double() - before[touched].double()) * by[touched].double()
        by_row, used = x.reshape(len(x), -1).sum(dim=1), self.used.to(by.device)[touched]
        return torch.stack([by_row[used].sum(), by_row[~used].sum()])

    def describe(self, name: str, parameter: Tensor) -> list[dict]:
        """A row of the table per block."""
        if self.used is not None:
            sizes = [int(rows.sum()) * parameter[0].numel() for rows in (self.used, ~self.used)]
            return [
                {"head": -1, "counted": counted, "size": size}
                for counted, size in zip((True, False), sizes, strict=True)
            ]
        # Softmax does not see what is added to all keys: the true gradient of their bias is zero,
        # and the sign of what is computed is rounding.
        counted = not name.endswith("attention.self.key.bias")
        heads = [-1] if self.heads is None else range(self.heads)
        size = parameter.numel() // len(heads)
        return [{"head": head, "counted": counted, "size": size} for head in heads]


def _split(
    model: nn.Module, name: str, parameter: Tensor, component: str, token_ids: Tensor | None
) -> _Split:
    attention = component.removeprefix("cross ")
    if attention in ATTENTION and not (attention == "out" and parameter.ndim == 1):
        owner = re.match(r".*attention\.", name)[0] + "self"
        heads = model.get_submodule(owner).num_attention_heads
        return _Split(heads=heads, columns=attention == "out")
    if token_ids is not None and re.search(r"word_embeddings|predictions\.(decoder|bias)", name):
        used = torch.zeros(len(parameter), dtype=torch.bool)
        used[token_ids.cpu()] = True
        return _Split(used=used)
    return _Split()


def _place(name: str) -> tuple[int, str]:
    """Layer and component of a parameter."""
    if match := LAYER.search(name):
        return int(match[1]) + 1, _component(match[2])
    if re.search(r"(^|\.)embeddings\.", name):
        return 0, "LayerNorm" if "LayerNorm" in name else "embedding"
    return -1, "head" if re.search(r"(^|\.)(cls|classifier|pooler)\.", name) else "other"


def _component(name: str) -> str:
    for pattern, component in INSIDE.items():
        if match := re.match(pattern, name, flags=re.IGNORECASE):
            cross = "cross " if name.startswith("cross") and component != "LayerNorm" else ""
            return cross + (component or match[2])
    return "other"


def allocated(table: pd.DataFrame, *by: str) -> pd.Series:
    """Sum of the contributions in `table`, that of `LossChanges.table` or a part, per group.

    The columns `by` are one or more of ``step``, ``stack``, ``layer``, ``component``, ``head`` and
    ``parameter``; ValueError for none, or one that the table does not have.
    """
    if not by or not set(by) <= set(table.columns):
        raise ValueError(f"by: {list(by)}, expected columns out of {', '.join(table.columns)}")
    return table.groupby(list(by), sort=True, dropna=False).value.sum()


def shares(table: pd.DataFrame, *by: str, trunk: bool = False) -> pd.Series:
    """Share of the loss change: positive where a group lowered a loss that fell; their sum is 1.

    `trunk` leaves out the embeddings, the head and what is in no layer, and divides by the sum of
    the rest: the embeddings' share is so large that it hides the others. Contributions that sum to
    zero are a ValueError.
    """
    sums = allocated(table[table.layer > 0] if trunk else table, *by)
    total = sums.sum()
    if total == 0:
        raise ValueError("table: its contributions sum to 0, shares are not defined")
    return sums / total


def hurting(table: pd.DataFrame, *by: str, gradient: str) -> pd.DataFrame:
    """Parameters that hurt: block-steps that raised the loss, A > 0 (Vázquez et al.).

    One row per block, such as ``by = "stack", "layer", "component"``: ``positive`` (how many
    steps), ``of`` (how many there are), ``last`` (the last such step, 0 for none), ``maximum`` (the
    largest contribution, negative when all helped) and ``gradient``: of what it is, such as
    ``"fixed set"`` or ``"mini-batch"``, because the counts depend on it.

    Blocks whose sign means nothing are left out: the biases of keys, whose true gradient is zero,
    and word-pieces that the loss has nothing to do with.
    """
    counted = table[table.counted]
    values = counted.pivot_table(index="step", columns=list(by), values="value", aggfunc="sum")
    positive = values > 0
    last = positive.mul(values.index, axis=0).max()
    found = pd.DataFrame(
        {"positive": positive.sum(), "of": len(values), "last": last, "maximum": values.max()}
    )
    return found.reset_index().assign(gradient=gradient)
