"""Descriptions of runs refuse what cannot be run; arms stand for regularizers."""

import json
from dataclasses import replace

import pytest

from shrink_utils.models import Trunk
from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training import ARMS, arm_options, make_regularizer
from shrink_utils.training.penalties import AverageCosine, IsoScoreStar, SpectralEntropy


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("task", "sentiment_movie", "sentiment_movies"),
        ("arm", "noen", "arm: no arm 'noen', did you mean 'none'"),
        ("pooling", "max", "pooling: 'max' is none of cls, mean, first_last"),
        ("schedule", "stairs", "schedule: 'stairs' is none of constant, linear, cosine"),
        ("epochs", 0, "epochs: must be at least 1, found 0"),
        ("batch_size", -1, "batch_size: must be at least 1, found -1"),
        ("accumulation", 0, "accumulation: must be at least 1, found 0"),
        ("accumulation", 3, "accumulation: must be a divisor of the batch size 16, found 3"),
        ("precision", "float16", "precision: 'float16' is none of float32, bfloat16"),
        ("train_rows", 1, "train_rows: must be at least 2, found 1"),
        ("learning_rate", 0.0, "learning_rate: must be between 0 and 1, found 0.0"),
        ("learning_rate", float("nan"), "learning_rate: must be between 0 and 1, found nan"),
        ("warmup", 1.0, "warmup: must be at least 0 and below 1, found 1.0"),
        ("weight", -0.1, "weight: must be 0 or more, found -0.1"),
    ],
)
def test_an_impossible_value_is_named(config, name, value, message):
    with pytest.raises(ValueError, match=message):
        replace(config, **{name: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "nmt"}, "objective: no objective 'nmt', did you mean 'mt'"),
        ({"heads": 3}, "width: 16 does not divide into 3 heads"),
        ({"activation": "relu"}, "activation: no activation 'relu'"),
        ({"steps": 0}, "steps: must be at least 1, found 0"),
        ({"sentences": 0}, "sentences: must be at least 1, or None, found 0"),
        ({"vocabulary": 5}, "vocabulary: must be above the 5 special tokens, found 5"),
        ({"max_length": 2}, "max_length: must be at least 3"),
        ({"learning_rate": 1.0}, "learning_rate: must be between 0 and 1"),
        ({"masked": 0.0}, "masked: must be between 0 and 1"),
        ({"warmup": 1.0}, "warmup: must be at least 0 and below 1"),
        ({"data_seed": -1}, "data_seed: must be 0 or more"),
    ],
)
def test_an_impossible_pretraining_is_refused_by_name(scratch_config, change, message):
    with pytest.raises(ValueError, match=message):
        replace(scratch_config, **change)


def test_rows_may_be_left_open(config):
    assert replace(config, train_rows=None, eval_rows=None).train_rows is None


@pytest.mark.parametrize("fixture", ["config", "scratch_config"])
def test_a_configuration_survives_the_way_through_a_dict(fixture, request):
    """A run is named after the dict: fields in their order, values as they are."""
    config = request.getfixturevalue(fixture)
    assert type(config)(**config.as_dict()) == config
    assert list(config.as_dict().items()) == list(vars(config).items())


def test_the_trunk_and_the_label(scratch_config):
    config = replace(scratch_config, activation="solu", dropout=0.2)
    assert config.trunk == Trunk(width=16, depth=2, heads=2, activation="solu", dropout=0.2)
    assert config.label == "mlm · 2 × 16 solu · products · seed 0"


def test_every_arm_but_none_makes_a_regularizer_of_the_given_weight():
    made = {arm: make_regularizer(arm, weight=0.5) for arm in ARMS}
    assert made.pop("none") is None
    assert {regularizer.weight for regularizer in made.values()} == {0.5}
    assert len({repr(regularizer) for regularizer in made.values()}) == len(made)
    assert make_regularizer("isoscore") is not make_regularizer("isoscore")  # it remembers batches


def test_arms_of_bars_select_what_their_names_say():
    assert make_regularizer("prominent").rule == "ratio"
    assert make_regularizer("published").rule == "published"  # the paper's other reading
    random, loops = make_regularizer("random"), make_regularizer("loops")
    assert (random.selection, random.rule) == ("random", "ratio")  # as many as prominent
    assert isinstance(loops, BarcodeRegularizer)
    assert (loops.selection, loops.homology_dim) == ("prominent", 1)


def test_penalties_are_made_by_name():
    assert type(make_regularizer("cosine")) is AverageCosine
    assert type(make_regularizer("spectral")) is SpectralEntropy
    assert type(make_regularizer("isoscore")) is IsoScoreStar
    assert make_regularizer("isoscore").shrinkage == 0.2


def test_options_are_plain_values_and_those_of_the_papers_arms_stay():
    """They are hashed into the name of a run: a change would compute every run again."""
    assert json.loads(json.dumps(ARMS)) == ARMS
    assert arm_options("none") is None
    assert arm_options("prominent") == {"selection": "prominent", "rule": "ratio"}
    assert arm_options("published") == {"selection": "prominent", "rule": "published"}
    assert arm_options("all") == {"selection": "all"}
