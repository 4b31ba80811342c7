"""The path integral behind an allocation: quadrature along the straight line of one step.

L(θ + Δ) − L(θ) = ∫₀¹ Δ · ∇L(θ + sΔ) ds, a sum over parameters of what each contributed (Lan et al.
2019). A rule replaces the integral by nodes s_k and weights w_k.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from shrink_utils.training.dynamics.blocks import Blocks
from shrink_utils.training.dynamics.gradients import Loss, Point, loss_and_gradients

NODES = {
    "euler": {0.0: 1.0},
    "trapezoid": {0.0: 1 / 2, 1.0: 1 / 2},
    "simpson": {0.0: 1 / 6, 0.5: 4 / 6, 1.0: 1 / 6},
}
RULES = (*NODES, "adaptive")


def check_rules(rules: Sequence[str]) -> None:
    """Raise ValueError for no rule, or one that is not in `RULES`."""
    if not rules or not set(rules) <= set(RULES):
        raise ValueError(f"rules: {list(rules)}, expected one or more of {', '.join(RULES)}")


class Segment:
    """The line from the weights before a step to those after it; nothing on it is computed twice.

    `start` holds the loss and gradient at `before`; the other arguments are as in `loss_change`.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        blocks: Blocks,
        before: Mapping[str, Tensor],
        after: Mapping[str, Tensor],
        start: Point,
    ) -> None:
        self._model, self._loss, self._blocks = model, loss, blocks
        self._before, self._after = before, after
        self.end = loss_and_gradients(model, loss, at=after)
        self.gradients = 1  # evaluated here; the one at the start was given
        # By the share of the way: the loss, and Δ · ∇L over each block, (blocks,).
        self._samples = dict(zip((0.0, 1.0), self._sampled(start, self.end), strict=True))

    def at(self, s: float) -> tuple[float, Tensor]:
        """Loss, and Δ · ∇L over each block (blocks,), at the share `s` of the way."""
        if s not in self._samples:
            weights = {n: torch.lerp(x, self._after[n], s) for n, x in self._before.items()}
            point = loss_and_gradients(self._model, self._loss, at=weights)
            (self._samples[s],) = self._sampled(point)
            self.gradients += 1
        return self._samples[s]

    def _sampled(self, *points: Point) -> list[tuple[float, Tensor]]:
        gradients = [point.gradients for point in points]
        dots = self._blocks.dots(self._before, self._after, *gradients)
        return [(point.loss, of) for point, of in zip(points, dots, strict=True)]


def integrate(
    segment: Segment, rule: str, *, tolerance: float, max_pieces: int
) -> tuple[Tensor, int]:
    """What each block contributed to the change of the loss.

    Parameters
    ----------
    segment : Segment
    rule : {"euler", "trapezoid", "simpson", "adaptive"}
        "adaptive" takes Simpson's rule and halves the piece of the line with the largest error
        until the errors of all pieces together are within `tolerance`.
    tolerance : float
        Of "adaptive", in units of the loss.
    max_pieces : int
        Of "adaptive": where halving ends in any case.

    Returns
    -------
    values : Tensor, shape (blocks,)
    pieces : int
        How many the line was split into.
    """
    if rule != "adaptive":
        return _piece(segment, NODES[rule], 0.0, 1.0), 1
    pieces = {(0.0, 1.0): _simpson(segment, 0.0, 1.0)}
    while len(pieces) < max_pieces and sum(e for _, e in pieces.values()) > tolerance:
        a, b = worst = max(pieces, key=lambda ends: pieces[ends][1])
        del pieces[worst]
        middle = (a + b) / 2
        for ends in ((a, middle), (middle, b)):
            pieces[ends] = _simpson(segment, *ends)
    return torch.stack([values for values, _ in pieces.values()]).sum(dim=0), len(pieces)


def _piece(segment: Segment, nodes: dict[float, float], a: float, b: float) -> Tensor:
    length = b - a
    return length * sum(w * segment.at(a + s * length)[1] for s, w in nodes.items())


def _simpson(segment: Segment, a: float, b: float) -> tuple[Tensor, float]:
    """Contributions of a piece, and by how much their sum misses the change of the loss."""
    values = _piece(segment, NODES["simpson"], a, b)
    return values, abs(float(values.sum()) - (segment.at(b)[0] - segment.at(a)[0]))
