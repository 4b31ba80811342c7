"""A step that several processes share: everyone's loss is that of the whole batch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function

from shrink_utils.topology.arrays import as_tensor


def gathered_batch(
    task_loss: Tensor, embeddings: Tensor, labels: Tensor | Sequence[int] | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    r"""From a process's part of a step's rows to what one process with all of them would have.

    Without torch.distributed, or in a process of its own, everything is handed back as it is.

    Parameters
    ----------
    task_loss : Tensor, shape ()
        Mean over the b rows of this process.
    embeddings : Tensor, shape (b, d)
    labels : Tensor or sequence of whole numbers, of shape (b,), or None
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

    A reward that draws, such as ``BarcodeRegularizer("random")``, is to be called inside
    `shared_draws`: else each process draws for itself, and their losses differ.
    """
    if not _several():
        return task_loss, embeddings, labels
    counts = _counts(embeddings)
    shares = torch.tensor(counts, dtype=task_loss.dtype, device=task_loss.device) / sum(counts)
    means = _Gather.apply(task_loss[None], [1] * len(counts))  # (W,)
    return means @ shares, *_rows_of_all(embeddings, labels, counts)


def gathered(
    embeddings: Tensor, labels: Tensor | Sequence[int] | None
) -> tuple[Tensor, Tensor | None]:
    """Embeddings (B, d) and labels (B,) of all processes, as `gathered_batch` has them.

    Beside a task loss that stays each process's own, as in the Trainer: DistributedDataParallel
    takes the mean of the processes' gradients.
    """
    if not _several():
        return embeddings, labels
    return _rows_of_all(embeddings, labels, _counts(embeddings))


@contextmanager
def shared_draws(device: torch.device | str = "cpu") -> Iterator[None]:
    """Inside, torch's generator on the CPU draws the same numbers in all processes.

    They are those that the first process would have drawn alone. Afterwards the other processes'
    generators go on where they were. In a process of its own nothing changes.

    Parameters
    ----------
    device
        One that the processes can communicate from: the embeddings', a GPU with NCCL.
    """
    if not _several():
        yield
        return
    own = torch.get_rng_state()
    first = own.to(device, copy=True)
    dist.broadcast(first, src=0)
    torch.set_rng_state(first.cpu())
    try:
        yield
    finally:
        if dist.get_rank():
            torch.set_rng_state(own)


def _several() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _counts(embeddings: Tensor) -> list[int]:
    """Rows of each process."""
    own = torch.tensor([len(embeddings)], device=embeddings.device)
    rows = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(rows, own)
    return torch.cat(rows).tolist()


def _rows_of_all(
    embeddings: Tensor, labels: Tensor | Sequence[int] | None, counts: list[int]
) -> tuple[Tensor, Tensor | None]:
    if labels is not None:
        labels = as_tensor(labels, "labels").to(embeddings.device)
        if len(labels) != len(embeddings):
            raise ValueError(f"labels: {len(labels)} beside {len(embeddings)} rows of embeddings")
        labels = _Gather.apply(labels, counts)
    return _Gather.apply(embeddings, counts), labels


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
