"""Descriptions of runs refuse what cannot be run; arms are regularizers, rows are shared out."""

from dataclasses import replace

import pytest
import torch
from transformers import TrainingArguments, training_args

from shrink_utils.study import ARMS, finetune, make_regularizer, pretrain
from shrink_utils.study.finetuning import _fine_tuning_arguments, _quiet_arguments


@pytest.mark.parametrize(
    ("fixture", "name", "value"),
    [
        ("config", "task", "sentiment_movie"),
        ("config", "epochs", 0),
        ("config", "weight", -0.1),
        ("scratch_config", "heads", 3),
        ("scratch_config", "vocabulary", 5),
    ],
)
def test_an_impossible_value_is_named(request, fixture, name, value):
    with pytest.raises(ValueError, match=name) as error:
        replace(request.getfixturevalue(fixture), **{name: value})
    assert str(value) in str(error.value)


def test_every_arm_but_none_makes_a_regularizer_of_the_given_weight():
    made = {arm: make_regularizer(arm, weight=0.5) for arm in ARMS}
    assert made.pop("none") is None
    assert {regularizer.weight for regularizer in made.values()} == {0.5}
    plain = (str, int, float)  # the options, whatever the penalty also remembers
    options = {
        (type(r).__name__, *(v for v in vars(r).values() if isinstance(v, plain)))
        for r in made.values()
    }
    assert len(options) == len(made)
    assert make_regularizer("isoscore") is not make_regularizer("isoscore")  # it remembers batches


def test_what_an_arm_returns_is_where_the_embeddings_are():
    """On a GPU a count left on the processor ended the run."""
    embeddings, labels = torch.randn(16, 8, requires_grad=True), torch.tensor([0, 1] * 8)
    drawing = {"none", "random", "sigreg", "whole_batch", "shuffled_classes"}  # on the processor
    for regularizer in map(make_regularizer, ARMS.keys() - drawing):
        with torch.device("meta"):  # where a tensor is made whose place nobody names
            made = regularizer(embeddings, labels)
        tensors = [part for part in made if torch.is_tensor(part)]  # lengths of bars are a list
        assert {part.device for part in tensors} == {embeddings.device}, regularizer


def test_a_runs_values_reach_its_trainer_and_processes_share_its_rows(
    config, tmp_path, monkeypatch
):
    found = _fine_tuning_arguments(config, str(tmp_path))
    assert found.per_device_train_batch_size == found.per_device_eval_batch_size == 16
    for name in ("learning_rate", "weight_decay", "seed"):
        assert getattr(found, name) == getattr(config, name) > 0
    assert found.warmup_steps == config.warmup
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(ValueError, match=r"batch_size: 16 rows cannot .* between 3 processes"):
        _fine_tuning_arguments(config, str(tmp_path))
    monkeypatch.setattr(TrainingArguments, "n_gpu", 4)
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES: one GPU per process, found 4"):
        _quiet_arguments(str(tmp_path))


@pytest.mark.parametrize("training", [finetune, pretrain])
def test_the_processor_trains_where_the_device_has_no_float64(request, monkeypatch, training):
    """Whole trainings; here is no such device, so that whatever went to it would be an error."""
    fixture = "config" if training is finetune else "scratch_config"
    config = request.getfixturevalue(fixture)
    expected = training(config)
    monkeypatch.setattr(training_args, "is_torch_mps_available", lambda: True)
    found = training(config)
    assert found.evaluations == expected.evaluations
    assert {p.device.type for p in found.model.parameters()} == {"cpu"}
