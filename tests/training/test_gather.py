"""Two real processes share a step: losses and gradients are those of one process."""

import copy
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from transformers import TrainingArguments

from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training import BarcodeTrainer
from shrink_utils.training.gather import gathered_batch, shared_draws
from shrink_utils.training.penalties import IsoScoreStar, Regrouped, SIGReg
from tests.training.conftest import bert, make_rows

ROOT = Path(__file__).parents[2]
# Rows of each process, whether their labels count, and the weight of the regularizer.
CASES = {
    "unequal": ((3, 11), True, 0.7),
    "one cloud": ((9, 5), False, 0.7),
    "task alone": ((3, 11), True, 0.0),
    "labels spread unevenly": ((32, 32), True, 0.7),
    "no label in a process": ((8, 9), True, 0.7),
    "class weights": ((7, 9), True, 0.7),
    "no row in a process": ((0, 9), True, 0.7),
    "class weights of zero": ((4, 9), True, 0.7),  # all that a process has
    "bytes": ((3, 11), True, 0.7),
}
UNLABELLED = {
    "labels spread unevenly": slice(36, 64),
    "class weights": slice(5, 8),
    "no label in a process": slice(0, 8),
}


class Small(nn.Module):
    """Logits and the vectors below them."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        self.below, self.head = nn.Linear(5, 4), nn.Linear(4, classes)

    def forward(self, x):
        embeddings = torch.tanh(self.below(x))
        return self.head(embeddings), embeddings


def _loss_and_gradients(name, rank=None):
    """Of the rows of a process in DDP, or of all rows without it."""
    counts, per_class, weight = CASES[name]
    torch.manual_seed(0)
    model = Small(157 if name == "bytes" else 2).double()
    x = torch.randn(sum(counts), 5, dtype=torch.float64)
    labels = torch.randint(0, 2, (sum(counts),))
    labels[UNLABELLED.get(name, [])] = -100
    if name == "bytes":  # 156 is −100 in eight bits
        labels = (labels + 155).to(torch.uint8)
    weights = torch.tensor([0.3, 1.7]).double() if "weights" in name else None
    if "zero" in name:
        weights[0], labels[: counts[0]] = 0.0, 0
    part = slice(None)
    if rank is not None:
        part = slice(sum(counts[:rank]), sum(counts[: rank + 1]))
    replica = model if rank is None else DistributedDataParallel(model)
    logits, embeddings = replica(x[part])
    task, own = cross_entropy(logits, labels[part], weight=weights), {}
    if weights is not None:
        own = {"count": weights[labels[part][labels[part] >= 0]].sum()}
    classes = labels[part] if name == "bytes" else labels[part].tolist()
    task, embeddings, labels = gathered_batch(
        task, embeddings, classes if per_class else None, **own
    )
    loss = task + BarcodeRegularizer("all", weight=weight)(embeddings, labels).loss
    loss.backward()
    return [loss.detach(), *(parameter.grad for parameter in model.parameters())]


def _of_a_group(rank=None):
    """Two processes with the *same* rows, as under tensor parallelism: each is its own group."""
    groups = None if rank is None else [dist.new_group([r]) for r in range(2)]
    group = None if rank is None else groups[rank]
    torch.manual_seed(0)
    x, labels = torch.randn(32, 5, dtype=torch.float64, requires_grad=True), torch.arange(32) % 2
    task, rows, classes = gathered_batch(x.square().mean(), x, labels, group=group)
    torch.manual_seed(100 + (rank or 0))
    with shared_draws(group=group):
        drawn = torch.rand(2)
    loss = task + BarcodeRegularizer("all")(rows, classes).loss
    loss.backward()
    return [loss.detach(), x.grad, drawn]


def _refusal(rank):
    """What a process that is not in the group is told."""
    group = dist.new_group([1])
    try:
        gathered_batch(torch.tensor(1.0), torch.eye(3), None, group=group)
    except ValueError as error:
        return str(error)
    return ""


# Rewards that draw, and one that remembers.
DRAWN = {
    "random": BarcodeRegularizer("random", rule="published"),
    "sigreg": SIGReg(),
    "shuffled": Regrouped("shuffled"),
    "isoscore": IsoScoreStar(),
}


def _rewards(rank=None):
    """Loss and gradients of every such reward, twice; each process's generator has its own seed."""
    found = {}
    for name, reward in DRAWN.items():
        reward = copy.deepcopy(reward)
        torch.manual_seed(0)
        x = torch.randn(20, 5, dtype=torch.float64)
        labels = [i % 3 if i % 4 else -100 for i in range(20)]  # a list, as in one process
        part = slice(None) if rank is None else slice(0, 7) if rank == 0 else slice(7, None)
        own = x[part].clone().requires_grad_()
        torch.manual_seed(100 + (rank or 0))
        torch.rand(3 if rank else 0)  # as after dropout of other rows
        for again in range(2):
            _, rows, classes = gathered_batch(own.sum(), own, labels[part])
            with shared_draws(rows.device):
                loss = reward(rows, classes).loss
            (gradient,) = torch.autograd.grad(loss, own)
            found[f"{name} {again}"] = [loss.detach(), gradient]
        found[f"{name} afterwards"] = [torch.rand(2)]
    return found


def _mean_of_step(outputs, labels, num_items_in_batch=None):
    """The task loss over the labelled rows of all processes."""
    return cross_entropy(outputs["logits"], labels, reduction="sum") / num_items_in_batch


def _trained(folder, rows_per_process):
    """Log and weights of a training by the Trainer, of which a fifth of the rows has no label."""
    reward, rows = BarcodeRegularizer("all", weight=0.7), make_rows(24)
    options = {"use_cpu": True, "disable_tqdm": True, "report_to": "none", "save_strategy": "no"}
    options |= {"logging_steps": 1, "max_steps": 2, "optim": "sgd", "learning_rate": 0.1}
    options |= {"train_sampling_strategy": "sequential"}
    trainer = BarcodeTrainer(
        model=bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),  # masks would differ
        args=TrainingArguments(folder, per_device_train_batch_size=rows_per_process, **options),
        train_dataset=rows,
        regularizer=reward,
        compute_loss_func=_mean_of_step,
    )
    trainer.train()
    names = ("loss", "grad_norm", "task_loss", "reward", "bars")
    log = [{k: v for k, v in entry.items() if k in names} for entry in trainer.state.log_history]
    return log[:2], trainer.accelerator.unwrap_model(trainer.model).state_dict()


def _in_a_process(folder: Path) -> None:
    trained = _trained(str(folder / "out"), 4)
    rank = dist.get_rank()
    found = {
        "trained": trained,
        "losses": {name: _loss_and_gradients(name, rank) for name in CASES},
        "rewards": _rewards(rank),
        "group": (_of_a_group(rank), _refusal(rank)),
    }
    torch.save(found, folder / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """What each of two processes found."""
    folder = tmp_path_factory.mktemp("processes")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    started = []
    for rank in "01":  # as torchrun does
        of = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
        of |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, __file__, str(folder)]
        started.append(subprocess.Popen(command, env={**os.environ, **of}, stderr=subprocess.PIPE))
    told = [process.communicate(timeout=240)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], told
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradients_are_those_of_one_process(processes, name):
    expected = _loss_and_gradients(name)
    for found in processes:
        torch.testing.assert_close(found["losses"][name], expected, rtol=1e-10, atol=1e-12)


def test_a_loss_per_row_is_no_mean():
    with pytest.raises(ValueError, match="task_loss"):
        gathered_batch(torch.ones(2), torch.eye(2), [0, 1])


@pytest.mark.parametrize("rank", range(2))
def test_processes_with_the_same_rows_are_told_apart_by_their_group(processes, rank):
    (loss, gradient, drawn), refusal = processes[rank]["group"]
    expected_loss, expected, _ = _of_a_group()
    torch.testing.assert_close((loss, gradient), (expected_loss, expected), rtol=1e-10, atol=1e-12)
    torch.manual_seed(100 + rank)
    assert torch.equal(drawn, torch.rand(2))
    assert ("group" in refusal) == (rank == 0)


@pytest.mark.parametrize("name", DRAWN)
def test_a_reward_that_draws_draws_once_for_all_as_the_first_process_alone(processes, name):
    alone = _rewards()
    parts = [found["rewards"] for found in processes]
    for again in (f"{name} 0", f"{name} 1"):
        loss, gradient = alone[again]
        for part in parts:
            torch.testing.assert_close(part[again][0], loss, rtol=1e-10, atol=1e-12)
        # The gather asks every process for the whole gradient; DDP's mean divides it again.
        found = torch.cat([part[again][1] for part in parts]) / 2
        torch.testing.assert_close(found, gradient, rtol=1e-9, atol=1e-12)
    afterwards = [part[f"{name} afterwards"][0] for part in parts]
    assert torch.equal(afterwards[0], alone[f"{name} afterwards"][0])
    torch.manual_seed(101)
    torch.rand(3)
    assert torch.equal(afterwards[1], torch.rand(2))  # dropout is each process's own


def test_two_processes_train_as_one_with_the_rows_of_both(processes, tmp_path):
    log, weights = _trained(str(tmp_path), 8)
    for rank in range(2):
        found, others = processes[rank]["trained"]
        for entry, expected in zip(found, log, strict=True):
            assert entry == pytest.approx(expected, rel=1e-4) and entry["bars"] > 2
        torch.testing.assert_close(others, weights, rtol=1e-4, atol=1e-6)


if __name__ == "__main__":
    _in_a_process(Path(sys.argv[1]))
