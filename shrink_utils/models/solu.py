"""The softmax linear unit, an activation that lets few neurons of a layer speak at once."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["SoLU"]


class SoLU(nn.Module):
    """LayerNorm(x · softmax(x)), over the last axis.

    Parameters
    ----------
    width : int
        Neurons of the layer.

    Notes
    -----
    Without the LayerNorm the output would be about ``width`` times smaller than the input; the
    published SoLU models have one.

    References
    ----------
    Elhage et al. (2022), *Softmax Linear Units*, Transformer Circuits Thread.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """(…, width) to (…, width)."""
        return self.norm(x * x.softmax(dim=-1))
