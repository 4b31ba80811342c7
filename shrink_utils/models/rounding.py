"""A rounding replicate: one machine plays another, whose sums round otherwise.

Processors add numbers in other orders, and training amplifies the last digits in which they differ.
With ``SHRINK_ROUNDING_SEED`` set, every weight that is freshly drawn or loaded is moved by about as
much as rounding does: what moves with it is not to be compared digit for digit between machines.
"""

import torch
from torch import nn

from shrink_utils.paths import rounding_seed

APART = {torch.float64: 1e-13, torch.float32: 1e-6}  # as far as kernels are apart


def rounded_otherwise(model: nn.Module) -> nn.Module:
    """Multiply each weight by 1 + ε in place, where a rounding seed is set; return the model.

    ε is normal, with a standard deviation of 1e-13 in float64 and of 1e-6 in float32. Without a
    seed nothing happens. An encoder gets the same ε bare and below a head. The global random state
    is left as it was.
    """
    if (seed := rounding_seed()) is None:
        return model
    draws = torch.Generator().manual_seed(seed)
    base = getattr(model, "base_model", model)
    with torch.no_grad():
        for weights in {**dict.fromkeys(base.parameters()), **dict.fromkeys(model.parameters())}:
            if weights.dtype in APART:
                noise = torch.randn(weights.shape, generator=draws, dtype=weights.dtype)
                weights.mul_(1 + APART[weights.dtype] * noise.to(weights.device))
    return model
