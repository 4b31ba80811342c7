"""Layer, component and attention head of each parameter of a BERT-like model, and sums over them.

A *block* is a parameter tensor or the part of one that belongs to an attention head: rows of the
query, key and value projections (with their biases), columns of the output projection.
"""

import re
from collections.abc import Mapping

import pandas as pd
import torch
from torch import Tensor, nn

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


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters that an optimizer may move, by name; tied ones once, under their first name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


class Blocks:
    """The blocks of a model, and the sums of products of tensors over them.

    The DataFrame ``table`` has one row per block: ``parameter``, ``stack`` ("encoder" or "decoder"
    in a model that has both, else ""), ``layer`` (0 for the embeddings, −1 outside trunk and
    embeddings), ``component``, ``head`` (−1 where there is none), ``counted`` (whether sign
    statistics count it) and ``size`` in scalars.

    `model` may be any; what it has outside the names of a BERT-like one is of component "other".
    """

    def __init__(self, model: nn.Module) -> None:
        self._heads: dict[str, int | None] = {}  # by parameter; None where it is one block
        rows = []
        two = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
        for name, parameter in trainable(model).items():
            stack = name.split(".")[0] if two else ""
            layer, component = _place(name.removeprefix(f"{stack}.") if two else name)
            self._heads[name] = n = _heads(model, name, parameter, component)
            # Softmax does not see what is added to all keys: the true gradient of their bias is
            # zero, and the sign of what is computed is rounding.
            counted = not name.endswith("attention.self.key.bias")
            rows += [
                (name, stack, layer, component, head, counted, parameter.numel() // (n or 1))
                for head in ([-1] if n is None else range(n))
            ]
        columns = "parameter stack layer component head counted size".split()
        self.table = pd.DataFrame(rows, columns=columns)

    def dots(
        self, before: Mapping[str, Tensor], after: Mapping[str, Tensor], *by: Mapping[str, Tensor]
    ) -> list[Tensor]:
        """Σ (after − before) · by, over each block: one Tensor (blocks,) for each of `by`.

        All arguments are tensors by parameter, of its shape. Differences, products and sums are
        taken in float64; the result is on the CPU.
        """
        found: list[list[Tensor]] = [[] for _ in by]
        for name, heads in self._heads.items():
            change = after[name].to(torch.float64, copy=True).sub_(before[name].double())
            for sums, of in zip(found, by, strict=True):
                x = of[name].to(torch.float64, copy=True).mul_(change)
                if heads is not None and name.endswith("output.dense.weight"):
                    x = x.sum(dim=0)  # a head has columns of it
                sums.append(x.sum().reshape(1) if heads is None else x.reshape(heads, -1).sum(1))
        return [torch.cat(sums).cpu() for sums in found]


def _heads(model: nn.Module, name: str, parameter: Tensor, component: str) -> int | None:
    """How many heads share a parameter; None for one that belongs to none."""
    attention = component.removeprefix("cross ")
    if attention not in ATTENTION or (attention == "out" and parameter.ndim == 1):
        return None
    owner = re.match(r".*attention\.", name)[0] + "self"
    return model.get_submodule(owner).num_attention_heads


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


def shares(table: pd.DataFrame, *by: str, trunk: bool = False) -> pd.Series:
    """Share of the loss change: positive where a group lowered a loss that fell; their sum is 1.

    `table` is that of `LossChanges.table` or a part, and `by` one or more of its columns ``step``,
    ``stack``, ``layer``, ``component``, ``head`` and ``parameter``. `trunk` leaves out embeddings,
    head and what is in no layer, and divides by the sum of the rest: the embeddings' share is so
    large that it hides the others. Contributions that sum to zero are a ValueError.
    """
    sums = (table[table.layer > 0] if trunk else table).groupby(list(by)).value.sum()
    total = sums.sum()
    if total == 0:
        raise ValueError("table: its contributions sum to 0, shares are not defined")
    return sums / total
