"""Float32 linear layers by oneDNN where no gradient is asked for: on AMD's processors faster."""

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode


class OneDNN(TorchFunctionMode):
    """Within a ``with`` statement, linear layers without gradient are multiplied by oneDNN.

    torch gives float32 products on the CPU to the BLAS that it was built with, and has no public
    way to ask for another. What oneDNN buys beside MKL on an AMD processor with AVX-512, in one
    thread, as the median of interleaved pairs: 1.13 in MiniLM's products, 1.05 in a pass over 400
    texts, 1 % of a fine-tuning run; under AVX2, 1.03 and 1.00. Results differ by rounding alone.
    Other devices, precisions and layers are as always.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Replace one function."""
        kwargs = kwargs or {}
        if function is functional.linear and not kwargs and _is_plain(*args[:2]):
            bias = args[2] if len(args) > 2 else None
            return torch.ops.mkldnn._linear_pointwise(args[0], args[1], bias, "none", [], "")
        return function(*args, **kwargs)


def _is_plain(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN can take a product: float32 on the CPU, many rows, nobody wants a gradient."""
    plain = all(t.device.type == "cpu" and t.dtype == torch.float32 for t in (x, weight))
    autocast = torch.is_autocast_enabled("cpu")
    available = torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled
    return plain and x.numel() > 0 and not torch.is_grad_enabled() and not autocast and available
