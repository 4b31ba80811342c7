"""A grid small enough for tests: one model, two arms, two seeds, made once."""

import shutil
from dataclasses import replace

import matplotlib.pyplot as plt
import pytest

from shrink_utils.study import RunConfig, ScratchConfig, load_profile, run_grid, run_id
from shrink_utils.study.figures import use_house_style

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


def flip_a_byte(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.fixture(autouse=True)
def _figures():
    use_house_style()
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def tiny_profile(tmp_path_factory):
    """Smoke, cut to two arms and two seeds, with results in a folder of its own."""
    smoke = load_profile("smoke")
    entry = replace(smoke.grid[0], arms=("none", "all"))
    return replace(smoke, name="tiny", grid=(entry,), long=(), seeds=(0, 1), epochs=1)


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="session")
def tiny_runs(tiny_profile, results):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHRINK_RESULTS_DIR", str(results))
        return run_grid(tiny_profile)


@pytest.fixture
def finished(tiny_profile, tiny_runs, results, monkeypatch):
    """The profile, with its runs where it looks for them."""
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(results))
    return tiny_profile


@pytest.fixture
def copied(finished, tmp_path):
    """(config, folder) of one finished run and its model, copied so that a test may hurt them."""
    config = finished.runs()[0]
    for name in (run_id(config), f"{run_id(config)}.model"):
        shutil.copytree(finished.folder / "runs" / name, tmp_path / name)
    return config, tmp_path
