"""A step that several processes share: everyone's loss is that of the whole batch."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function


def whole_batch(
    task_loss: Tensor, embeddings: Tensor, labels: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    r"""From a process's part of a step's rows to what one process with all of them would have.

    Without torch.distributed, or in a process of its own, everything is handed back as it is.

    Parameters
    ----------
    task_loss : Tensor, shape ()
        Mean over the b rows of this process.
    embeddings : Tensor, shape (b, d)
    labels : Tensor of shape (b,) or None
        In all processes or in none.

    Returns
    -------
    task_loss : Tensor, shape ()
        Mean over the B rows of all W processes.
    embeddings : Tensor, shape (B, d)
        The first process's rows first; b may differ from process to process.
    labels : Tensor of shape (B,) or None

    Notes
    -----
    Made for a model inside ``DistributedDataParallel``, which divides the sum of the processes'
    gradients by W. Every process adds the same regularizer to the same task loss: W losses of one
    value L, each of which depends on the rows e of all replicas. The backward pass of the gather
    sums what all of them ask of a row: W ∂L/∂e. Divided by W, the gradient of the parameters is

    .. math:: \frac{1}{W} \sum_{r=1}^{W} \sum_{e \in r} W \frac{\partial L}{\partial e}
        \frac{\partial e}{\partial \theta} = \frac{\partial L}{\partial \theta},

    that of one process. A gather that passed on a process's own gradient alone would weaken the
    regularizer W times; regularizing each part alone would take the barcodes of smaller clouds.
    """
    if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
        return task_loss, embeddings, labels
    own = torch.tensor([len(embeddings)], device=embeddings.device)
    rows = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(rows, own)
    counts = torch.cat(rows).tolist()  # rows of each process
    shares = torch.tensor(counts, dtype=task_loss.dtype, device=task_loss.device) / sum(counts)
    means = _Gather.apply(task_loss[None], [1] * len(counts))  # (W,)
    return (
        means @ shares,
        _Gather.apply(embeddings, counts),
        None if labels is None else _Gather.apply(labels, counts),
    )


class _Gather(Function):
    """Rows (b, …) of all processes, (B, …); its backward is the sum over all processes."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, counts: list[int]) -> Tensor:
        ctx.counts = counts
        padded = rows.new_zeros(max(counts), *rows.shape[1:])  # a gather wants equal shapes
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return torch.cat([part[:n] for part, n in zip(parts, counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total.split(ctx.counts)[dist.get_rank()], None
