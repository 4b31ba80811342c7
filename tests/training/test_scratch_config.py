"""The description of a pretraining."""

from __future__ import annotations

import pytest

from shrink_utils.models import Trunk
from shrink_utils.training import ScratchConfig

VALUES = {
    "objective": "mlm",
    "width": 16,
    "depth": 2,
    "heads": 2,
    "source": "products",
    "sentences": 64,
    "vocabulary": 300,
    "max_length": 12,
    "steps": 3,
    "batch_size": 16,
    "learning_rate": 1e-3,
    "warmup": 0.1,
    "seed": 0,
}


def test_the_values_come_back():
    config = ScratchConfig(**VALUES)
    assert ScratchConfig(**config.as_dict()) == config
    assert {**VALUES, **config.as_dict()} == config.as_dict()


def test_the_trunk_and_the_label():
    config = ScratchConfig(**VALUES, activation="solu", dropout=0.2)
    assert config.trunk == Trunk(width=16, depth=2, heads=2, activation="solu", dropout=0.2)
    assert config.label == "mlm · 2 × 16 solu · products · seed 0"


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
def test_the_impossible_is_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        ScratchConfig(**{**VALUES, **change})
