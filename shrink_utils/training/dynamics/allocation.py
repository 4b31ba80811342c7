"""Loss change allocation (LCA): how much of a change of the loss each parameter brought about.

References
----------
Lan, Liu, Zhou & Yosinski 2019, *LCA: Loss Change Allocation for Neural Network Training*
(NeurIPS); Vázquez et al. 2022, *A Closer Look at Parameter Contributions When Training Neural
Language and Translation Models* (COLING).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor, nn

from shrink_utils.training.dynamics.blocks import Blocks
from shrink_utils.training.dynamics.changes import LossChanges
from shrink_utils.training.dynamics.gradients import Loss, loss_and_gradients
from shrink_utils.training.dynamics.quadrature import Segment, check_rules, integrate

__all__ = ["loss_change"]


def loss_change(
    model: nn.Module,
    loss: Loss,
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    *,
    rules: Sequence[str] = ("trapezoid",),
    token_ids: Tensor | None = None,
    tolerance: float = 1e-3,
    max_pieces: int = 32,
) -> LossChanges:
    """Allocate the change of a loss between two settings of a model's weights.

    Parameters
    ----------
    model : nn.Module
        Its own weights are not looked at, and nothing in it changes.
    loss : callable
        Takes the model and gives the loss in parts (scalars whose sum is the loss), such as
        ``lambda model: [model(**batch).loss]`` or a `FixedSetLoss`. Dropout is off while it runs.
    before, after : mapping of str to Tensor
        The trainable weights by name, as in ``model.named_parameters()``.
    rules : sequence of {"euler", "trapezoid", "simpson", "adaptive"}
        Any number of them share their gradients.
    token_ids : Tensor, optional
        Word-pieces that occur in the set; see `Blocks`.
    tolerance, max_pieces
        Of the adaptive rule; see `quadrature.integrate`.

    Returns
    -------
    LossChanges
        Of one step.

    Raises
    ------
    ValueError
        An unknown rule, weights that are not the model's, or a loss that is not finite.
    """
    check_rules(rules)
    began = time.perf_counter()
    blocks = Blocks(model, token_ids=token_ids)
    start = loss_and_gradients(model, loss, at=before)
    line = Segment(model, loss, blocks, before, after, start)
    options = {"tolerance": tolerance, "max_pieces": max_pieces}
    found = {rule: integrate(line, rule, **options) for rule in rules}
    return LossChanges(
        blocks=blocks.table,
        values={rule: values.numpy()[None] for rule, (values, _) in found.items()},
        losses=np.array([[start.loss, line.end.loss]]),
        pieces=np.array([max(pieces for _, pieces in found.values())]),
        gradients=1 + line.gradients,
        seconds=time.perf_counter() - began,
    )
