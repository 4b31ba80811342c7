"""The descriptions of small runs that tests begin from."""

import pytest

from shrink_utils.training import RunConfig, ScratchConfig

# Six steps of fine-tuning: two epochs of 16 + 16 + 8 rows.
CONFIG = RunConfig(
    model="tiny-random",
    task="sentiment_movies",
    arm="prominent",
    seed=3,
    train_rows=40,
    eval_rows=16,
    epochs=2,
    learning_rate=1e-3,
    weight_decay=1e-4,
    max_length=12,
    batch_size=16,
)


@pytest.fixture(scope="session")
def config():
    return CONFIG


@pytest.fixture(scope="session")
def scratch_config():
    """Three steps of pretraining."""
    return ScratchConfig(
        objective="mlm",
        width=16,
        depth=2,
        heads=2,
        source="products",
        sentences=80,
        vocabulary=300,
        max_length=12,
        steps=3,
        batch_size=16,
        learning_rate=1e-2,
        warmup=0.5,
        seed=0,
    )
