"""Loss change allocation (LCA): how much of a change of the loss each parameter brought about.

L(θ + Δ) − L(θ) = ∫₀¹ Δ · ∇L(θ + sΔ) ds, a sum over parameters of what each contributed (Lan et al.
2019). A rule replaces the integral by nodes s_k and weights w_k.

A *block* is a parameter tensor or the part of one that belongs to an attention head: rows of the
query, key and value projections (with their biases), columns of the output projection.

References
----------
Lan, Liu, Zhou & Yosinski 2019, *LCA: Loss Change Allocation for Neural Network Training*
(NeurIPS); Vázquez et al. 2022, *A Closer Look at Parameter Contributions When Training Neural
Language and Translation Models* (COLING).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from transformers import TrainerCallback
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from shrink_utils.models.encoders import evaluating
from shrink_utils.names import IGNORED

# Components of a layer, in the order of the computation; the encoder's states come in by "cross".
ATTENTION = ("query", "key", "value", "out")
TRUNK = (*ATTENTION, *(f"cross {name}" for name in ATTENTION), "W1", "W2", "LayerNorm")

NOWHERE = {"stack": "", "layer": -1, "component": "", "head": -1, "counted": False}
LAYER = re.compile(r"encoder\.layer\.(\d+)\.(.+)")
INSIDE = {  # what follows the number of the layer
    r"(cross)?attention\.self\.(query|key|value)\.": None,  # named by the match itself
    r"(cross)?attention\.output\.dense\.": "out",
    r"intermediate\.dense\.": "W1",
    r"output\.dense\.": "W2",
    r".*norm\.": "LayerNorm",
}


def _trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters that an optimizer may move, by name; tied ones once, under their first name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


class Blocks:
    """The blocks of a model, and the sums of products of tensors over them.

    The DataFrame ``table`` has one row per block: ``parameter``, ``stack`` ("encoder" or "decoder"
    in a model that has both, else ""), ``layer`` (0 for the embeddings, −1 outside trunk and
    embeddings), ``component``, ``head`` (−1 where there is none), ``counted`` (whether sign
    statistics count it) and ``size`` in scalars.

    `model` may be any; what it has outside the names of a BERT-like one is of component "other".

    Examples
    --------
    >>> from torch import nn
    >>> Blocks(nn.Linear(2, 3)).table["size"].tolist()
    [6, 3]
    """

    def __init__(self, model: nn.Module) -> None:
        self._heads: dict[str, int | None] = {}  # by parameter; None where it is one block
        rows = []
        two = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
        for name, parameter in _trainable(model).items():
            stack = name.split(".")[0] if two else ""
            layer, component = _place(name.removeprefix(f"{stack}.") if two else name)
            n = None  # how many heads share it
            is_out = component.endswith("out")
            if component.removeprefix("cross ") in ATTENTION and (not is_out or parameter.ndim > 1):
                owner = re.match(r".*attention\.", name)[0] + "self"
                n = model.get_submodule(owner).num_attention_heads
            self._heads[name] = n
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


def _place(name: str) -> tuple[int, str]:
    """Layer and component of a parameter."""
    layer = LAYER.search(name)
    if layer is None and re.search(r"(^|\.)embeddings\.", name):
        return 0, "LayerNorm" if "LayerNorm" in name else "embedding"
    if layer is None:
        return -1, "head" if re.search(r"(^|\.)(cls|classifier|pooler)\.", name) else "other"
    number, inside = int(layer[1]) + 1, layer[2]
    for pattern, component in INSIDE.items():
        if match := re.match(pattern, inside, flags=re.IGNORECASE):
            cross = "cross " if inside.startswith("cross") and component != "LayerNorm" else ""
            return number, cross + (component or match[2])
    return number, "other"


def shares(table: pd.DataFrame, *by: str, trunk: bool = False) -> pd.Series:
    """Share of the loss change: positive where a group lowered a loss that fell; their sum is 1.

    `table` is that of `LossChanges.table` or a part, and `by` one or more of its columns ``step``,
    ``stack``, ``layer``, ``component``, ``head`` and ``parameter``. `trunk` leaves out embeddings,
    head and what is in no layer, and divides by the sum of the rest: the embeddings' share is so
    large that it hides the others. Contributions that sum to zero are a ValueError.

    Examples
    --------
    >>> table = pd.DataFrame({"layer": [1, 2], "value": [-3.0, -1.0]})
    >>> shares(table, "layer").tolist()
    [0.75, 0.25]
    """
    sums = (table[table.layer > 0] if trunk else table).groupby(list(by)).value.sum()
    total = sums.sum()
    if total == 0:
        raise ValueError("table: its contributions sum to 0, shares are not defined")
    return sums / total


# Takes the model and gives the loss in parts, scalars whose sum is the loss. Each part is
# differentiated before the next is computed, so that a large set needs the memory of one part.
Loss = Callable[[nn.Module], Iterable[Tensor]]


class FixedSetLoss:
    """Mean loss over a fixed set, for `loss_change` and its recorder.

    Parameters
    ----------
    batches : sequence of dict
        Inputs of a transformers model with their ``labels``, masks drawn beforehand. Each batch
        counts by the number of its predictions.

    Raises
    ------
    ValueError
        No batches, or one without labels; and, when the loss is taken, nothing to predict in any.

    Notes
    -----
    It is the *task's* loss as the model computes it: a regularizer that a trainer adds is not in
    it, so that allocations of runs with and without one are of the same function.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> class Model(nn.Linear):
    ...     def forward(self, x, labels):
    ...         return SimpleNamespace(loss=(super().forward(x)[:, 0] - labels).square().mean())
    >>> loss = FixedSetLoss([{"x": torch.ones(2, 1), "labels": torch.ones(2)}])
    >>> len([*loss(Model(1, 1))])
    1
    """

    def __init__(self, batches: Sequence[Mapping[str, Tensor]]) -> None:
        if not batches or not all("labels" in batch for batch in batches):
            raise ValueError(f"batches: {len(batches)}, expected one or more, each with labels")
        self.batches = [dict(batch) for batch in batches]

    def __call__(self, model: nn.Module) -> Iterator[Tensor]:
        """The loss in parts, one per batch that has something to predict."""
        device = next(model.parameters()).device
        # A causal LM predicts every token but the first.
        first = int(type(model).__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
        predicted = [int((batch["labels"][..., first:] != IGNORED).sum()) for batch in self.batches]
        if not any(predicted):
            raise ValueError(f"batches: no token to predict in any of {len(self.batches)}")
        for batch, count in zip(self.batches, predicted, strict=True):
            if count:  # the mean over no predictions is undefined
                loss = model(**{key: x.to(device) for key, x in batch.items()}).loss
                yield count / sum(predicted) * loss


class _Point(NamedTuple):
    """The loss somewhere, and its gradient by parameter."""

    loss: float
    gradients: dict[str, Tensor]


def _loss_and_gradients(
    model: nn.Module, loss: Loss, *, at: Mapping[str, Tensor] | None = None
) -> _Point:
    """Evaluate the loss and its gradient, without dropout.

    Afterwards the model is as before: weights, gradients, the mode of every module, and the state
    of the random numbers.

    Parameters
    ----------
    model : nn.Module
        The gradient is zero for a parameter that the loss does not depend on.
    loss : callable
        Gives the loss in parts. It must be deterministic, or the allocation means nothing.
    at : mapping of str to Tensor, optional
        Values of the trainable parameters, by name; by default those that the model has.

    Raises
    ------
    ValueError
        No parameter is trainable, names or shapes in `at` that are not the model's, or a loss
        that is not finite or gives no part.
    """
    parameters = _trainable(model)
    if not parameters:
        raise ValueError("model: none of its parameters is trainable, nothing can be allocated")
    own = {name: p.data for name, p in parameters.items()}
    at = own if at is None else at
    if {n: x.shape for n, x in at.items()} != {n: x.shape for n, x in own.items()}:
        raise ValueError("at: names or shapes are not those of the model's trainable parameters")
    gradients: dict[str, Tensor] = {}
    total, parts = 0.0, 0
    gpus = {p.device.index for p in model.parameters() if p.device.type == "cuda"}
    with torch.random.fork_rng(devices=sorted(gpus)), torch.enable_grad(), evaluating(model):
        try:
            for name, p in parameters.items():  # their own storage is set aside, never written
                p.data = at[name].to(own[name])
            for part in loss(model):
                found = torch.autograd.grad(part, [*parameters.values()], allow_unused=True)
                for name, more in zip(parameters, found, strict=True):
                    if more is not None:
                        gradients[name] = gradients[name] + more if name in gradients else more
                total, parts = total + float(part.detach()), parts + 1
        finally:
            for name, p in parameters.items():
                p.data = own[name]
    if parts == 0 or not torch.isfinite(torch.tensor(total)):
        raise ValueError(f"loss: {total} in {parts} parts, expected a finite number in one or more")
    for name in parameters.keys() - gradients.keys():
        gradients[name] = torch.zeros_like(parameters[name])
    return _Point(total, gradients)


NODES = {
    "euler": {0.0: 1.0},
    "trapezoid": {0.0: 1 / 2, 1.0: 1 / 2},
    "simpson": {0.0: 1 / 6, 0.5: 4 / 6, 1.0: 1 / 6},
}
NODE_RULES = tuple(NODES)


@dataclass(frozen=True)
class LossChanges:
    """What each block contributed to each step, by each rule.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> def loss(model):
    ...     yield (model(torch.ones(1, 1)) - 1).square().sum()
    >>> before, after = ({"weight": torch.tensor([[w]])} for w in (0.0, 1.0))
    >>> changes = loss_change(model, loss, before, after)
    >>> changes.closure("trapezoid")
    0.0
    """

    blocks: pd.DataFrame  # of `Blocks.table`
    values: dict[str, np.ndarray]  # by rule (steps, blocks); negative where the loss was lowered
    losses: np.ndarray  # (steps, 2), before and after each step

    def closure(self, rule: str) -> float:
        """abs(ΣA − ΔL) / abs(ΔL) over all steps; NaN when the loss did not change."""
        change = float((self.losses[:, 1] - self.losses[:, 0]).sum())
        if change == 0:
            return float("nan")
        return abs(float(self.values[rule].sum()) - change) / abs(change)

    def table(self, rule: str) -> pd.DataFrame:
        """One row per step (from 1) and block, with the columns of `blocks` and ``value``."""
        steps, count = self.values[rule].shape
        table = pd.concat([self.blocks] * steps, ignore_index=True)
        table.insert(0, "step", np.repeat(np.arange(1, steps + 1), count))
        return table.assign(value=self.values[rule].reshape(-1))


def record_table(changes: LossChanges) -> pd.DataFrame:
    """A record as one tidy table of one value per row.

    Columns ``quantity``, ``rule``, ``step``, ``stack``, ``layer``, ``component``, ``head``,
    ``counted`` and ``value``. By ``quantity``: "allocation", of each rule, weights and biases of a
    place together; "loss" after each step, and before training at step 0.
    """
    frames = []
    for rule in changes.values:
        sums = changes.table(rule).groupby(["step", *NOWHERE], sort=False).value.sum()
        frames.append(sums.reset_index().assign(quantity="allocation", rule=rule))
    losses = [changes.losses[0, 0], *changes.losses[:, 1]]
    loss = pd.DataFrame({"step": np.arange(len(losses)), "value": losses})
    frames.append(loss.assign(quantity="loss", rule="", **NOWHERE))
    return pd.concat(frames, ignore_index=True)[["quantity", "rule", "step", *NOWHERE, "value"]]


class AllocationRecorder(TrainerCallback):
    """Allocate the loss of a fixed set at every optimizer step of transformers' Trainer.

    Whatever the Trainer minimizes (a regularizer may be in it), what is allocated is `loss`. In a
    loop of your own, call `begin` once, and `on_pre_optimizer_step` before and `on_optimizer_step`
    after each step of any optimizer, both without arguments.

    Parameters
    ----------
    loss : callable
        Deterministic, such as a `FixedSetLoss`.
    rules : sequence of {"euler", "trapezoid", "simpson"}
        The gradient at the end of a step is that at the start of the next one: Euler's rule and the
        trapezoid cost one gradient per step, Simpson's two.

    Raises
    ------
    ValueError
        No rule, or an unknown one.

    Notes
    -----
    The model's weights, gradients, modes and the state of the random numbers are left alone:
    training with a recorder gives the same weights, to the bit, as training without one. Under the
    Trainer's mixed precision the model's own forward is in it too, and the closure error says what
    that costs.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> def loss(model):
    ...     yield (model(torch.ones(1, 1)) - 1).square().sum()
    >>> optimizer, recorder = torch.optim.SGD(model.parameters(), lr=0.1), AllocationRecorder(loss)
    >>> recorder.begin(model)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     sum(loss(model)).backward()
    ...     recorder.on_pre_optimizer_step()
    ...     optimizer.step()
    ...     recorder.on_optimizer_step()
    >>> recorder.changes().losses.shape
    (3, 2)
    """

    def __init__(self, loss: Loss, *, rules: Sequence[str] = ("trapezoid",)) -> None:
        if not rules or not set(rules) <= set(NODE_RULES):
            raise ValueError(
                f"rules: {list(rules)}, expected one or more of {', '.join(NODE_RULES)}"
            )
        self._loss, self._rules = loss, tuple(rules)

    def begin(self, model: nn.Module) -> None:
        """Begin a new record."""
        self._model, self._blocks = model, Blocks(model)
        self._weights: Mapping[str, Tensor] = {}  # where the last step ended, and what was there
        self._point: _Point | None = None
        self._rows: dict[str, list[Tensor]] = {rule: [] for rule in self._rules}
        self._losses: list[tuple[float, float]] = []

    def on_train_begin(self, args, state, control, model=None, **kwargs) -> None:
        """Begin a new record."""
        self.begin(model)

    def on_pre_optimizer_step(self, *args, **kwargs) -> None:
        """Note where a step begins: nothing is evaluated when that is where the last one ended."""
        now = _trainable(self._model)
        if self._point is None or not all(torch.equal(self._weights[n], now[n]) for n in now):
            self._weights = _copied(now)
            self._point = _loss_and_gradients(self._model, self._loss)

    def on_optimizer_step(self, *args, **kwargs) -> None:
        """Allocate what the step changed, before the Trainer clears the gradients."""
        self._allocate(_copied(_trainable(self._model)))

    def changes(self) -> LossChanges:
        """What has been allocated since the record began."""
        return LossChanges(
            blocks=self._blocks.table,
            values={rule: torch.stack(rows).numpy() for rule, rows in self._rows.items()},
            losses=np.array(self._losses),
        )

    def _allocate(self, after: Mapping[str, Tensor]) -> None:
        """Allocate the line from the last weights; the next step may begin where it ends."""
        before = self._weights
        points = {0.0: self._point}
        for s in {1.0} | {s for rule in self._rules for s in NODES[rule] if s > 0}:
            at = after if s == 1 else {n: torch.lerp(x, after[n], s) for n, x in before.items()}
            points[s] = _loss_and_gradients(self._model, self._loss, at=at)
        dots = self._blocks.dots(before, after, *(point.gradients for point in points.values()))
        at = dict(zip(points, dots, strict=True))  # by node, Δ · ∇L over each block, (blocks,)
        for rule in self._rules:
            self._rows[rule].append(sum(w * at[s] for s, w in NODES[rule].items()))
        self._losses.append((points[0.0].loss, points[1.0].loss))
        self._weights, self._point = after, points[1.0]


def _copied(parameters: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in parameters.items()}


def loss_change(
    model: nn.Module,
    loss: Loss,
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    *,
    rules: Sequence[str] = ("trapezoid",),
) -> LossChanges:
    """Allocate the change of a loss between two settings of a model's weights, as one step.

    Parameters
    ----------
    model : nn.Module
        Its own weights are not looked at, and nothing in it changes.
    loss : callable
        Takes the model and gives the loss in parts (scalars whose sum is the loss), such as
        ``lambda model: [model(**batch).loss]`` or a `FixedSetLoss`. Dropout is off while it runs.
    before, after : mapping of str to Tensor
        The trainable weights by name, as in ``model.named_parameters()``.
    rules : sequence of {"euler", "trapezoid", "simpson"}
        Any number of them share their gradients.

    Raises
    ------
    ValueError
        An unknown rule, weights that are not the model's, or a loss that is not finite.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> def loss(model):
    ...     yield (model(torch.ones(1, 1)) - 1).square().sum()
    >>> before, after = ({"weight": torch.tensor([[w]])} for w in (0.0, 1.0))
    >>> changes = loss_change(model, loss, before, after)
    >>> changes.values["trapezoid"]
    array([[-1.]])
    """
    recorder = AllocationRecorder(loss, rules=rules)
    recorder.begin(model)
    recorder._weights, recorder._point = before, _loss_and_gradients(model, loss, at=before)
    recorder._allocate(after)
    return recorder.changes()
