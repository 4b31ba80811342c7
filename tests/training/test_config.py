"""A run's description refuses what cannot be run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shrink_utils.training import RunConfig

CONFIG = RunConfig(
    model="tiny-random",
    task="sentiment_movies",
    arm="none",
    seed=0,
    train_rows=32,
    eval_rows=16,
    epochs=1,
    learning_rate=1e-4,
    weight_decay=0.0,
    max_length=16,
)


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
        ("accumulation", 3, "accumulation: must be a divisor of the batch size 64, found 3"),
        ("precision", "float16", "precision: 'float16' is none of float32, bfloat16"),
        ("train_rows", 1, "train_rows: must be at least 2, found 1"),
        ("learning_rate", 0.0, "learning_rate: must be between 0 and 1, found 0.0"),
        ("learning_rate", float("nan"), "learning_rate: must be between 0 and 1, found nan"),
        ("warmup", 1.0, "warmup: must be at least 0 and below 1, found 1.0"),
        ("weight", -0.1, "weight: must be 0 or more, found -0.1"),
    ],
)
def test_an_impossible_value_is_named(name, value, message):
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **{name: value})


def test_rows_may_be_left_open():
    assert replace(CONFIG, train_rows=None, eval_rows=None).train_rows is None


def test_a_configuration_survives_the_way_through_a_dict():
    assert RunConfig(**CONFIG.as_dict()) == CONFIG
