"""A step that several processes share: everyone's loss is that of the whole batch."""

from __future__ import annotations  # a torch without torch.distributed has no ProcessGroup

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function

from shrink_utils.names import IGNORED
from shrink_utils.topology.arrays import _as_tensor

Labels = Tensor | Sequence[int] | None


def gathered_batch(
    task_loss: Tensor,
    embeddings: Tensor,
    labels: Labels,
    *,
    count: float | Tensor | None = None,
    group: dist.ProcessGroup | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    r"""From a process's part of a step's rows to what one process with all of them would have.

    Without torch.distributed, or in a process of its own, everything is handed back as it is.

    Parameters
    ----------
    task_loss : Tensor, shape ()
        A mean over what this process has: a sum, divided by `count`. Where `count` is 0 its value
        is not looked at: ``cross_entropy`` gives NaN there. (Label rows of weight 0 as −100 where
        labels are smoothed: a sum of two such means has gradient NaN.)
    embeddings : Tensor, shape (b, d)
    labels : Tensor or sequence of whole numbers, of shape (b,), or None
        In all processes or in none.
    count : float, optional
        What `task_loss` was divided by. By default the rows that are not labelled −100, as
        ``cross_entropy`` counts them; give the sum of the weights for a weighted mean
        (``weight[labels].sum()``), or the number of tokens for a mean over tokens.
    group : ProcessGroup, optional
        The processes that share a batch, each with other rows, over which the gradients are
        averaged; all of them by default. Beside tensor, context or pipeline parallelism it is the
        data-parallel group, as processes with the same rows would count them twice.

    Returns
    -------
    task_loss : Tensor, shape ()
        The mean over all W processes: what they summed, divided by the sum of their counts; 0 if
        that is 0.
    embeddings : Tensor, shape (B, d)
        The first process's rows first; b may differ from process to process.
    labels : Tensor of shape (B,) or None

    Raises
    ------
    ValueError
        `task_loss` has axes, `labels` has another length, `count` is negative or not finite, or
        this process is not in `group`.

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

    Examples
    --------
    In a process of its own, as here, nothing changes:

    >>> import torch
    >>> embeddings, labels = torch.eye(3), torch.tensor([0, 1, -100])
    >>> loss, rows, classes = gathered_batch(torch.tensor(0.7), embeddings, labels)
    >>> loss, rows.shape, classes
    (tensor(0.7000), torch.Size([3, 3]), tensor([   0,    1, -100]))
    """
    if task_loss.dim():
        raise ValueError(f"task_loss: shape {tuple(task_loss.shape)}, expected (), that of a mean")
    if not _several(group):
        return task_loss, embeddings, labels
    if count is None:
        count = len(embeddings)
        if labels is not None:
            given = _as_tensor(labels, "labels")
            given = given if given.is_floating_point() else given.long()  # in a byte, 156 is −100
            count = (given != IGNORED).sum()
    if not 0 <= (count := float(count)) < math.inf:
        raise ValueError(f"count: {count}, expected what the task loss was divided by, 0 or more")
    if count == 0:  # a mean over nothing, kept in the graph, which DistributedDataParallel expects
        if task_loss.grad_fn is not None:  # `cross_entropy` of weights 0 divides its gradient by 0
            task_loss.grad_fn.register_hook(lambda out, _: tuple(map(_zeros, out)))
        task_loss = torch.where(torch.ones_like(task_loss, dtype=torch.bool), 0.0, task_loss)
    counts = _of_all(count, embeddings, group)
    shares = torch.tensor(counts, dtype=torch.float64) / (sum(counts) or 1.0)
    means = _Gather.apply(task_loss[None], [1] * len(counts), group)  # (W,)
    return means @ shares.to(means), *_gathered(embeddings, labels, group=group)


def _gathered(
    embeddings: Tensor, labels: Labels, *, group: dist.ProcessGroup | None = None
) -> tuple[Tensor, Tensor | None]:
    """Embeddings (B, d) and labels (B,) of all processes, as `gathered_batch` has them.

    Beside a task loss that stays each process's own, as in the Trainer: DistributedDataParallel
    takes the mean of the processes' gradients.
    """
    if not _several(group):
        return embeddings, labels
    counts = [round(n) for n in _of_all(len(embeddings), embeddings, group)]
    if labels is not None:
        labels = _as_tensor(labels, "labels").to(embeddings.device)
        if not (labels.is_floating_point() and len(labels)):  # of an empty list, no whole numbers
            labels = labels.long()  # one dtype in all processes
        if len(labels) != len(embeddings):
            raise ValueError(f"labels: {len(labels)} beside {len(embeddings)} rows of embeddings")
        labels = _Gather.apply(labels, counts, group)
    return _Gather.apply(embeddings, counts, group), labels


@contextmanager
def shared_draws(
    device: torch.device | str = "cpu", *, group: dist.ProcessGroup | None = None
) -> Iterator[None]:
    """Inside, torch's generator on the CPU draws the same numbers in all processes.

    They are those that the first process would have drawn alone. Afterwards the other processes'
    generators go on where they were. In a process of its own nothing changes.

    Parameters
    ----------
    device
        One that the processes can communicate from: the embeddings', a GPU with NCCL.
    group : ProcessGroup, optional
        As of `gathered_batch`.

    Examples
    --------
    >>> import torch
    >>> with shared_draws():
    ...     torch.rand(2).shape
    torch.Size([2])
    """
    if not _several(group):
        yield
        return
    own = torch.get_rng_state()
    first = own.to(device, copy=True)
    dist.broadcast(first, src=dist.get_global_rank(group or dist.group.WORLD, 0), group=group)
    torch.set_rng_state(first.cpu())
    try:
        yield
    finally:
        if dist.get_rank(group):
            torch.set_rng_state(own)


def _several(group: dist.ProcessGroup | None) -> bool:
    if not (dist.is_available() and dist.is_initialized()):
        return False
    if (rank := dist.get_rank(group)) < 0:
        raise ValueError(f"group: process {dist.get_rank()} is not in it (its rank there: {rank})")
    return dist.get_world_size(group) > 1


def _zeros(gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else torch.zeros_like(gradient)


def _of_all(number: float, where: Tensor, group: dist.ProcessGroup | None) -> list[float]:
    """A number of each process, in the order of their ranks."""
    own = torch.tensor([number], dtype=torch.float64, device=where.device)
    found = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(found, own, group=group)
    return torch.cat(found).tolist()


class _Gather(Function):
    """Rows (b, …) of all processes, (B, …); its backward is the sum over all processes."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, counts: list[int], group: dist.ProcessGroup | None
    ) -> Tensor:
        ctx.counts, ctx.group = counts, group
        padded = rows.new_zeros(max(counts), *rows.shape[1:])  # a gather wants equal shapes
        padded[: len(rows)] = rows
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded, group=group)
        return torch.cat([part[:n] for part, n in zip(parts, counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total, group=ctx.group)
        return total.split(ctx.counts)[dist.get_rank(ctx.group)], None, None
