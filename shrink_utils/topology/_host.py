"""Between a tensor's device and NumPy: at most one synchronization a call."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def to_host(*tensors: Tensor) -> list[np.ndarray]:
    """Values of tensors as contiguous arrays; those on one GPU come together, with one wait."""
    gpu = next((tensor.device for tensor in tensors if tensor.is_cuda), None)
    if gpu is not None:
        pinned = [torch.empty(t.shape, dtype=t.dtype, pin_memory=True) for t in tensors]
        for copy, tensor in zip(pinned, tensors, strict=True):
            copy.copy_(tensor.detach(), non_blocking=True)
        torch.cuda.current_stream(gpu).synchronize()
        return [copy.numpy() for copy in pinned]
    return [np.ascontiguousarray(tensor.detach().cpu().numpy()) for tensor in tensors]


def to_device(array: np.ndarray, like: Tensor) -> Tensor:
    """An array as a tensor beside `like`; a copy to a GPU is not waited for."""
    tensor = torch.from_numpy(array)
    if like.is_cuda:
        return tensor.pin_memory().to(like.device, non_blocking=True)
    return tensor if like.is_cpu else tensor.to(like.device)
