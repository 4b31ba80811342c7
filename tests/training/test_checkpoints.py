"""An interrupted run resumes: equal to one that was not, from what is whole only."""

import os
import warnings
from dataclasses import replace

import pandas as pd
import pytest
import torch

from shrink_utils.training import checkpoints, finetune

STEPS = 3  # of an epoch


class EndedError(RuntimeError):
    """What ends a run in these tests."""


@pytest.fixture(autouse=True)
def always_old(monkeypatch):
    """Every epoch of these short runs is long enough for a checkpoint."""
    monkeypatch.setattr(checkpoints, "CHECKPOINT_SECONDS", 0.0)


@pytest.fixture(scope="module")
def config(config):
    return replace(config, arm="isoscore", epochs=3)  # a regularizer that remembers batches


@pytest.fixture(scope="module")
def undisturbed(config):
    return {arm: finetune(replace(config, arm=arm)) for arm in ("isoscore", "random")}


def _end_after(folder, config, *, step):
    """Run until the recorder has seen `step` steps."""

    def end(row):
        if row["step"] > step:
            raise EndedError

    with pytest.raises(EndedError):
        finetune(config, on_row=end, checkpoints=folder)


def _assert_resumed(folder, config, undisturbed, *, first):
    """Make the steps from `first` on: the result is that of the undisturbed run."""
    told = []
    run = finetune(config, on_row=lambda row: told.append(row["step"]), checkpoints=folder)
    assert told == list(range(first, 3 * STEPS + 1))
    other = undisturbed[config.arm]
    pd.testing.assert_frame_equal(run.history, other.history, check_exact=True)
    assert run.evaluations == other.evaluations
    assert all(torch.equal(run.embeddings[name], x) for name, x in other.embeddings.items())
    for name, x in other.model.state_dict().items():
        assert torch.equal(run.model.state_dict()[name], x)


@pytest.mark.parametrize("arm", ["isoscore", "random"])
def test_a_resumed_run_is_the_undisturbed_one(arm, config, undisturbed, tmp_path):
    """``random`` draws bars from torch's generator, whose state has to come back too."""
    config = replace(config, arm=arm)
    _end_after(tmp_path, config, step=STEPS + 1)
    _assert_resumed(tmp_path, config, undisturbed, first=STEPS + 1)


def test_a_run_that_was_ended_twice(config, undisturbed, tmp_path):
    _end_after(tmp_path, config, step=STEPS + 1)
    _end_after(tmp_path, config, step=2 * STEPS)
    _assert_resumed(tmp_path, config, undisturbed, first=2 * STEPS + 1)


def test_one_checkpoint_is_kept_and_none_of_the_last_epoch(config, tmp_path):
    finetune(config, checkpoints=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"checkpoint-{2 * STEPS}"]


def test_a_short_run_writes_no_checkpoint_and_leaves_no_folder(config, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "CHECKPOINT_SECONDS", 60.0)
    finetune(replace(config, epochs=2), checkpoints=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "hurt",
    [
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "optimizer.pt").unlink(),
        lambda folder: os.truncate(folder / "model.safetensors", 1000),
        lambda folder: (folder / "rows.json").write_text("[]"),
    ],
    ids=["not finished", "a file less", "truncated", "changed"],
)
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(hurt, config, undisturbed, tmp_path):
    _end_after(tmp_path, config, step=STEPS)
    hurt(tmp_path / f"checkpoint-{STEPS}")
    with pytest.warns(UserWarning, match=f"checkpoint-{STEPS} is not used"):
        _assert_resumed(tmp_path, config, undisturbed, first=1)


def test_an_older_checkpoint_stands_in_for_one_that_was_not_finished(config, undisturbed, tmp_path):
    """The older one goes only when the newer one is whole."""
    _end_after(tmp_path, config, step=STEPS)
    unfinished = tmp_path / f"checkpoint-{2 * STEPS}"
    unfinished.mkdir()
    (unfinished / "trainer_state.json").write_text("{")
    with pytest.warns(UserWarning, match=f"checkpoint-{2 * STEPS} is not used"):
        _assert_resumed(tmp_path, config, undisturbed, first=STEPS + 1)


def test_no_checkpoint_is_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpoints.Checkpoints(tmp_path, None, None).restore() is None
