"""Descriptions of runs refuse what cannot be run; arms stand for regularizers."""

from dataclasses import replace

import pytest

from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training import ARMS, make_regularizer


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


@pytest.mark.parametrize("fixture", ["config", "scratch_config"])
def test_a_configuration_survives_the_way_through_a_dict(fixture, request):
    """A run is named after the dict: fields in their order, values as they are."""
    config = request.getfixturevalue(fixture)
    assert type(config)(**config.as_dict()) == config
    assert list(config.as_dict().items()) == list(vars(config).items())


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


def test_arms_of_bars_select_what_their_names_say():
    assert make_regularizer("prominent").rule == "ratio"
    assert make_regularizer("published").rule == "published"  # the paper's other reading
    random, loops = make_regularizer("random"), make_regularizer("loops")
    assert (random.selection, random.rule) == ("random", "ratio")  # as many as prominent
    assert isinstance(loops, BarcodeRegularizer)
    assert (loops.selection, loops.homology_dim) == ("prominent", 1)
