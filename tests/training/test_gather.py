"""Two real processes share a step: losses and gradients are those of one process."""

import copy
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from transformers import BertConfig, BertForSequenceClassification, Trainer

from shrink_utils.models import load_classifier, save_classifier
from shrink_utils.study import finetune
from shrink_utils.study.finetuning import _quiet_arguments
from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training import BarcodeTrainer
from shrink_utils.training.gather import gathered_batch, shared_draws
from shrink_utils.training.penalties import IsoScoreStar, Regrouped, SIGReg
from tests.study.conftest import CONFIG

ROOT = Path(__file__).parents[2]
# Rows of each process, whether their labels count, and the weight of the regularizer.
CASES = {
    "equal": ((7, 7), True, 0.7),
    "unequal": ((3, 11), True, 0.7),
    "one cloud": ((9, 5), False, 0.7),
    "task alone": ((3, 11), True, 0.0),
    "labels spread unevenly": ((32, 32), True, 0.7),
    "no label in a process": ((8, 9), True, 0.7),
    "class weights": ((7, 9), True, 0.7),
    "class weights, no label in a process": ((7, 9), True, 0.7),
    "no row in a process": ((0, 9), True, 0.7),
    "a mean over tokens": ((5, 8), False, 0.7),
}
UNLABELLED = {
    "labels spread unevenly": slice(36, 64),
    "class weights": slice(5, 8),
    "class weights, no label in a process": slice(0, 7),
    "no label in a process": slice(0, 8),
}


class Small(nn.Module):
    """Logits and the vectors below them."""

    def __init__(self) -> None:
        super().__init__()
        self.below, self.head = nn.Linear(5, 4), nn.Linear(4, 2)

    def forward(self, x):
        embeddings = torch.tanh(self.below(x))
        return self.head(embeddings), embeddings


def _loss_and_gradients(name, rank=None):
    """Of the rows of a process in DDP, or of all rows without it."""
    counts, per_class, weight = CASES[name]
    torch.manual_seed(0)
    model, x = Small().double(), torch.randn(sum(counts), 5, dtype=torch.float64)
    labels = torch.randint(0, 2, (sum(counts),))
    labels[UNLABELLED.get(name, [])] = -100
    weights = torch.tensor([0.3, 1.7]).double() if "weights" in name else None
    part = slice(None)
    if rank is not None:
        part = slice(sum(counts[:rank]), sum(counts[: rank + 1]))
    replica = model if rank is None else DistributedDataParallel(model)
    logits, embeddings = replica(x[part])
    task, own = cross_entropy(logits, labels[part], weight=weights), {}
    if weights is not None:
        own = {"count": weights[labels[part][labels[part] >= 0]].sum()}
    if name == "a mean over tokens":  # of each row as many as its number
        tokens = torch.arange(1, 14)[part].double()
        each = cross_entropy(logits, labels[part], reduction="none")
        task, own = tokens @ each / tokens.sum(), {"count": tokens.sum()}
    task, embeddings, labels = gathered_batch(
        task, embeddings, labels[part] if per_class else None, **own
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
    "random": BarcodeRegularizer("random"),
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


def _trained(kind, folder):
    """Log and weights of a training whose parts have different rows that count."""
    torch.manual_seed(0)
    small = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 32}
    model = BertForSequenceClassification(BertConfig(**small, num_attention_heads=2))
    words = torch.randint(5, 60, (24, 6))
    rows = [{"input_ids": w, "labels": -100 if i < 3 else i % 2} for i, w in enumerate(words)]
    args = _quiet_arguments(str(folder), use_cpu=True, max_steps=2, per_device_train_batch_size=4)
    own = {} if kind is Trainer else {"regularizer": BarcodeRegularizer("all", weight=0.0)}
    trainer = kind(model=model, args=args, train_dataset=rows, **own)
    trainer.train()
    names = ("loss", "grad_norm", "task_loss", "bars")
    log = [{k: v for k, v in entry.items() if k in names} for entry in trainer.state.log_history]
    return log, trainer.accelerator.unwrap_model(trainer.model).state_dict()


def _config(folder):
    return replace(CONFIG, model=str(folder / "model"), epochs=1)


def _in_a_process(folder: Path) -> None:
    """What torchrun starts twice."""
    history = finetune(_config(folder)).history
    rank = dist.get_rank()
    history.to_parquet(folder / f"{rank}.parquet")
    torch.save({name: _loss_and_gradients(name, rank) for name in CASES}, folder / f"{rank}.pt")
    torch.save(_rewards(rank), folder / f"{rank}-rewards.pt")
    torch.save((_of_a_group(rank), _refusal(rank)), folder / f"{rank}-group.pt")
    for kind in (Trainer, BarcodeTrainer):
        torch.save(_trained(kind, folder / "out"), folder / f"{rank}-{kind.__name__}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What each process found, beside a model without dropout, whose masks would differ."""
    folder = tmp_path_factory.mktemp("processes")
    model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = 0.0
    save_classifier(model, tokenizer, folder / "model")
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launch, __file__, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rank", range(2))
def test_loss_and_gradients_are_those_of_one_process(folder, rank, name):
    found = torch.load(folder / f"{rank}.pt")[name]
    torch.testing.assert_close(found, _loss_and_gradients(name), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rank", range(2))
def test_processes_with_the_same_rows_are_told_apart_by_their_group(folder, rank):
    (loss, gradient, drawn), refusal = torch.load(folder / f"{rank}-group.pt")
    expected_loss, expected, _ = _of_a_group()
    torch.testing.assert_close((loss, gradient), (expected_loss, expected), rtol=1e-10, atol=1e-12)
    torch.manual_seed(100 + rank)
    assert torch.equal(drawn, torch.rand(2))
    assert ("group" in refusal) == (rank == 0)


@pytest.mark.parametrize("name", DRAWN)
def test_a_reward_that_draws_draws_once_for_all_as_the_first_process_alone(folder, name):
    alone = _rewards()
    parts = [torch.load(folder / f"{rank}-rewards.pt") for rank in range(2)]
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


@pytest.mark.parametrize("rank", range(2))
def test_with_weight_0_two_processes_train_as_under_the_stock_trainer(folder, rank):
    log, weights = torch.load(folder / f"{rank}-Trainer.pt")
    own_log, own_weights = torch.load(folder / f"{rank}-BarcodeTrainer.pt")
    for entry, own in zip(log[:2], own_log[:2], strict=True):
        assert own | entry == own and own["bars"] > 4  # of both parts' rows
        assert own["task_loss"] == pytest.approx(entry["loss"], rel=1e-6)
    for name, value in weights.items():
        assert torch.equal(value, own_weights[name]), name


def test_a_run_of_two_processes_begins_as_a_run_of_one(folder):
    alone = finetune(_config(folder)).history
    first, second = (pd.read_parquet(folder / f"{rank}.parquet") for rank in range(2))
    pd.testing.assert_frame_equal(first, second)
    assert len(first) == len(alone) == 3
    assert first.rows.tolist() == [16, 16, 16]  # the last step's 8 rows are filled up
    for column in ("task_loss", "regularizer", "grad_norm", "centred_1"):
        assert first[column][0] == pytest.approx(alone[column][0], rel=1e-5), column
        assert first[column][1] == pytest.approx(alone[column][1], rel=1e-3), column


def test_one_process_keeps_what_it_has():
    parts = torch.tensor(0.3), torch.randn(4, 3), torch.arange(4)
    assert all(a is b for a, b in zip(gathered_batch(*parts), parts, strict=True))
    assert gathered_batch(*parts[:2], None)[2] is None


if __name__ == "__main__":
    _in_a_process(Path(sys.argv[1]))
