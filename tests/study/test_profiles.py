"""Profiles: what ships, what is refused, what a hash and a seed mean."""

import re
from dataclasses import replace

import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.profiles import FOLDER

QUICK, SMOKE = (
    (FOLDER / f"{name}.toml").read_text(encoding="utf-8") for name in ("quick", "smoke")
)
WITHOUT_SWEEP = re.sub(r"\[\[(?:sweep|long)\]\]\n(?:\w.*\n)+", "", SMOKE)


def _load(tmp_path, text, **options):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return load_profile(path, **options)


ENTRIES = """[[sweep]]
task = "sentiment_movies"
arm = "all"
weights = [0.5, 1.0]

[[long]]
task = "sentiment_movies"
arms = ["none", "all"]
epochs = 10
seeds = [1]

"""


def test_a_sweep_varies_the_weight_and_long_runs_differ_in_epochs_and_rows_alone(tmp_path):
    profile = _load(tmp_path, WITHOUT_SWEEP.replace("[[grid]]", ENTRIES + "[[grid]]", 1))
    of_grid = {(r.task, r.arm, r.seed): r for r in profile.runs()}
    assert len(of_grid) == len(profile.runs()) == 14  # every combination once
    swept = [of_grid["sentiment_movies", "all", seed] for seed in profile.seeds]
    expected = [replace(run, weight=weight) for run in swept for weight in (0.5, 1.0)]
    assert profile.sweep_runs() == expected and {*swept} <= {*expected}  # weight 1 is the grid's
    more = {"epochs": 10, "train_rows": None}
    expected = [replace(of_grid["sentiment_movies", arm, 1], **more) for arm in ("none", "all")]
    assert profile.long_runs() == expected
    seeds = [run.seed for run in profile.all_runs()]
    assert seeds == sorted(seeds) and len(seeds) == len(profile.runs()) + 2 + len(profile.seeds)


def test_the_hash_is_stable_and_follows_every_value(tmp_path):
    quick = load_profile("quick")
    assert quick.hash == load_profile("quick").hash
    assert quick.hash != replace(quick, epochs=4).hash
    assert quick.hash != replace(quick, grid=quick.grid[1:]).hash
    assert quick.hash != load_profile("quick", seed=1).hash
    spaced = _load(tmp_path, "# a comment\n" + QUICK.replace(" = ", "   =  "))
    assert replace(spaced, name="quick").hash == quick.hash


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epochs = 3", "epoch = 3", "epochs: Field required; epoch: Unexpected keyword"),
        ("epochs = 3", "epochs = 0", "epochs: must be at least 1, found 0"),
        ("warmup = 0.1", "warmup = nan", "pretraining: warmup: Input should be a finite number"),
        ("seeds = [0, 1, 2, 3, 4]", "seeds = [0, 0]", "seeds: each may stand once"),
        ("seeds = [0, 1, 2, 3, 4]", "seeds = [1000]", "seeds: .* be below 1000"),
        ("rate = 8e-5", 'rate = "8e-5"', "grid: 0: learning_rate: .* valid number"),
        ('"all", "random"]', '"al"]', "arm: no arm 'al'"),
        ("models = 3", "models = 2", "heuristics: models: Input should be greater .* 3"),
    ],
)
def test_an_impossible_profile_is_refused_by_name(tmp_path, old, new, message):
    assert old in QUICK
    with pytest.raises(ValueError, match=message) as error:
        _load(tmp_path, QUICK.replace(old, new))
    assert "mine.toml" in str(error.value) and "\n" not in str(error.value)
