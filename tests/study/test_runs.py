"""A fine-tuning run: its name, its folder; computed once, whole, and noticed when damaged."""

import shutil
from dataclasses import replace

import pytest
import torch

from shrink_utils.models import hidden_states
from shrink_utils.study import load_run, run_encoder, run_id
from shrink_utils.study.runs import _drop_models, _model_of
from shrink_utils.text import load_task
from tests.study.conftest import flip_a_byte


def test_the_encoder_of_a_run_is_the_fine_tuned_one(finished, tiny_runs):
    """It gives the vectors that the run kept of its validation rows, which training moved."""
    run = tiny_runs[0]
    encoder = run_encoder(run)
    config = run.config
    rows = load_task(config.task, max_eval=config.eval_rows, seed=config.seed)["validation"]
    options = {"layers": [-1], "max_length": config.max_length, "batch_size": config.batch_size}
    vectors = hidden_states(encoder, list(rows["text"]), **options)[0]
    assert torch.equal(vectors, run.embeddings["after"])
    assert not torch.allclose(vectors, run.embeddings["before"], atol=1e-3)
    assert encoder.name == config.label


def test_a_kept_model_says_what_it_is(finished, tiny_runs):
    """Base, task, term, weight, seed, commit, and its numbers before and after."""
    run = tiny_runs[-1]
    card = (_model_of(run.folder).folder / "model" / "README.md").read_text(encoding="utf-8")
    rows = {}
    for line in card.splitlines():
        name, _, value = line.strip("| ").partition(" | ")
        rows[name] = value
    assert rows["base"] == run.config.model and rows["task"] == run.config.task
    assert rows["regularization term"] == "all, weight 1" and rows["commit"]
    assert rows["seed, epochs, learning rate"].startswith(f"{run.config.seed}, 1, ")
    for name, key in (("accuracy", "accuracy"), ("loss", "loss"), ("PC1 share", "centred_1")):
        ends = [run.evaluations[i][key] for i in (0, -1)]
        assert [float(x) for x in rows[name].split(" | ")] == pytest.approx(ends, abs=6e-4)


def test_a_model_that_is_damaged_or_was_not_kept_is_trained_again(copied):
    config, folder = copied
    run = load_run(folder / run_id(config))
    kept, whole = _model_of(run.folder).folder, run_encoder(run).model.state_dict()
    flip_a_byte(kept / "model" / "model.safetensors")
    with pytest.warns(UserWarning, match="model.safetensors changed"):
        again = run_encoder(load_run(run.folder)).model.state_dict()
    assert all(torch.equal(again[name], weights) for name, weights in whole.items())
    shutil.rmtree(kept)
    again = run_encoder(run).model.state_dict()
    assert all(torch.equal(again[name], weights) for name, weights in whole.items())
    assert kept.is_dir()


@pytest.mark.parametrize(("kept", "seeds"), [("none", set()), ("first seed", {0}), ("all", {0, 1})])
def test_a_finished_study_keeps_the_models_that_its_profile_names(
    finished, tmp_path, monkeypatch, kept, seeds
):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    runs_of = finished.folder / "runs"
    for config in finished.all_runs():
        _model_of(runs_of / run_id(config)).folder.mkdir(parents=True)
    (runs_of / "0123456789abcdef.model").mkdir()  # of the user's own run
    _drop_models(replace(finished, models_kept=kept))
    left = [c for c in finished.all_runs() if _model_of(runs_of / run_id(c)).folder.is_dir()]
    assert {config.seed for config in left} == seeds
    assert len(list(runs_of.iterdir())) == len(left) + 1
