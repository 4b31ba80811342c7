"""What chapters show of a finished study's records: simulated runs, with effects that are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shrink_utils.__main__ import main
from shrink_utils.study import load_profile
from shrink_utils.study.claims.claim import whole_table
from shrink_utils.study.claims.clouds import measure_clouds
from shrink_utils.study.claims.stl import at_least_loss
from shrink_utils.study.claims.verdicts import finetuning_claims
from shrink_utils.study.full_length import (
    FullLength,
)
from shrink_utils.study.records import record_finished, recorded
from shrink_utils.study.tables import correct_rows, evaluations, graded, summarize

ROOT = Path(__file__).resolve().parents[2]
MOVIES, PRODUCTS = "sentiment_movies", "sentiment_products"
ROWS = {MOVIES: 400, PRODUCTS: 300, "mrpc": 2000, "cola": 300}
# Planted: by arm, and by arm and weight where it is swept.
SCORE = {"none": 0.6, "prominent": 0.4, "published": 0.4, "all": 0.5, "random": 0.3}
SWEPT = {("prominent", 3.0): 0.2, ("all", 3.0): 0.35, ("random", 0.3): 0.5}
SWEPT |= {("isoscore", 0.3): 0.5, ("isoscore", 1.0): 0.3, ("spectral", 0.3): 0.5}
SWEPT |= {("spectral", 1.0): 0.3, ("cosine", 0.03): 0.58, ("cosine", 0.1): 0.57}  # never at .4
ACCURACY = {"prominent": 0.7, "isoscore": 0.6}  # on products; all others .8
ONSET = {"prominent": 60, "all": 30, "none": 30, "random": 30}
ISOSCORE = {"none": 0.1, "prominent": 0.3}  # all others .2


def simulated(profile, *, seed=0):
    """Tables of records of a profile's runs, with the effects above and a little noise."""
    rng = np.random.default_rng(seed)
    made = [_run(config, profile, rng) for config in profile.all_runs()]
    frames = {name: [run[name] for run in made] for name in made[0]}
    return {name: pd.concat(parts, ignore_index=True) for name, parts in frames.items()}


def _run(config, profile, rng):
    arm = config.arm
    keys = {name: getattr(config, name) for name in ("model", "task", "arm", "weight", "seed")}
    keys["epochs"] = config.epochs
    level = SWEPT.get((arm, config.weight), SCORE.get(arm, 0.0))
    if config.task == MOVIES and arm == "all":
        level = SCORE["prominent"]
    level += 0.01 * rng.standard_normal()
    right = ACCURACY.get(arm, 0.8) if config.task in (PRODUCTS, "mrpc") else 0.8
    correct = (rng.random(ROWS[config.task]) < right).astype(float)
    one = pd.DataFrame([keys])
    return {
        "runs": one.assign(
            **_scores(level, arm),
            metric="accuracy",
            value=correct.mean(),
            accuracy=correct.mean(),
        ),
        "steps": _steps(keys, level, arm, long=config.epochs > profile.epochs, rng=rng),
        "evaluations": _evaluations(one, level, correct.mean()),
        "correct": pd.DataFrame({**keys, "row": range(len(correct)), "correct": correct}),
        "clouds": one.assign(**_cloud(arm, config.seed, rng)),
    }


def _evaluations(one, level, accuracy):
    """Before training; then the least loss, half of the score that the last epoch has."""
    found = {"epoch": [0, 1, 2], "loss": [0.2, 0.3, 0.9], "value": [0.5, accuracy, accuracy]}
    scores = {"centred_1": [0.1, level / 2, level], "raw_1": [0.1, level / 2, level]}
    table = pd.DataFrame(found | scores).assign(step=0, metric="accuracy")
    return table.merge(one, how="cross")


def _scores(level, arm):
    scores = {f"{space}_{k}": 0.1 / k for space in ("raw", "centred") for k in (2, 3)}
    of_first = {"raw_1": level + 0.1, "centred_1": level}
    ends = {"raw_before": 0.3, "raw_after": 0.5, "centred_before": 0.1, "centred_after": level}
    return scores | of_first | ends


def _steps(keys, level, arm, *, long, rng):
    step = np.arange(1, 291 if long else 25)
    rise = level / (1 + np.exp(-(step - ONSET.get(arm, 12)) / 4))
    last_of_epoch = long & (step % 29 == 0)
    noisy = np.where(last_of_epoch, 5.0, rise + 0.01 * rng.standard_normal(len(step)))
    rows = np.where(last_of_epoch, 19, 64)
    return pd.DataFrame({**keys, "step": step, "rows": rows, "centred_1": noisy, "raw_1": noisy})


def _cloud(arm, seed, rng):
    isoscore = ISOSCORE.get(arm, 0.2) + 0.005 * rng.standard_normal()
    silhouette = 0.5 - isoscore + 0.005 * rng.standard_normal()
    counts = {f"elongated_{when}": 10 + seed % 3 for when in ("before", "own", "pretrained")}
    edge = (-0.5 if arm == "all" else 0.0) + 0.05 * rng.standard_normal()
    shape = {"isoscore": isoscore, "silhouette": silhouette, "log_edge": edge}
    return {"classes": 2, "class_cosine": 0.95 + 0.01 * rng.random(), **shape, **counts}


def write_records(tables, data, name="cohort"):
    """As `record` leaves them, in a folder of data."""
    folder = data / "reference" / name
    folder.mkdir(parents=True)
    if not (data / "published").exists():
        (data / "published").symlink_to(ROOT / "data" / "published")
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False)


@pytest.fixture(scope="module")
def cohort():
    return load_profile("cohort")


@pytest.fixture(scope="module")
def tables(cohort):
    return simulated(cohort)


@pytest.fixture(scope="module")
def full(cohort, tables):
    return FullLength(cohort, tables)


def _claim(full, name):
    (row,) = full.claims[full.claims.claim == name].itertuples()
    return row


def test_planted_effects_are_found_by_the_primary_hypotheses(full):
    verdicts = full.hypotheses.set_index("id").verdict
    assert set(verdicts[["H1", "H2", "H6", "H8", "H11", "H12"]]) == {"supported"}
    assert set(verdicts[["H4", "H7"]]) == {"contradicted"}
    assert verdicts["H5"] == "equivalent" and verdicts["H10"] == "not tested"


@pytest.mark.parametrize(
    ("name", "estimate", "verdict"),
    [
        ("stl:lowers-centred-of-none:minilm:sentiment_movies:prominent", -0.2, "agrees"),
        ("stl:metric-kept:minilm:sentiment_products:prominent", -0.1, "disagrees"),
        ("stl:lowers-centred-of-none:minilm:sentiment_products (10 epochs):random", -0.3, "agrees"),
        ("stl:shorter-tree:minilm:sentiment_products (10 epochs):all", -0.5, "agrees"),
        ("stl:metric-rises:minilm:sentiment_products:prominent", -0.1, "disagrees"),
        ("stl:lowers-centred-of-none-best:minilm:sentiment_movies:prominent", -0.1, "agrees"),
        ("stl:clusters-kept:minilm:sentiment_movies:prominent", -0.2, "disagrees"),
        ("stl:clusters-above-all:minilm:sentiment_products:prominent", -0.1, "disagrees"),
        ("mga:conflict:minilm:sentiment_movies", -0.4 / 3, "agrees"),
        ("topology:metric-above-all:minilm:sentiment_products:3", -0.1, "disagrees"),
        ("topology:matched:minilm:sentiment_products:isoscore", 0.1, "agrees"),
        ("topology:lowers-more:minilm:sentiment_products:random", 0.1, "disagrees"),
    ],
)
def test_planted_effects_are_found_by_the_full_length_table(full, name, estimate, verdict):
    row = _claim(full, name)
    assert row.estimate == pytest.approx(estimate, abs=0.03) and row.adjusted == verdict


def test_the_table_has_every_row_that_tables_of_runs_can_bear_on(full):
    """Those of the grid and of the sweep, and the same of the long runs."""
    committed = pd.read_csv(ROOT / "data" / "reference" / "cohort" / "claims.csv").claim
    long = full.claims.claim.str.contains("(10 epochs)", regex=False)
    assert set(full.claims.claim) == set(committed) and long.sum() == 53
    assert full.claims.claim.is_unique and len(full.claims) == 166


@pytest.fixture(scope="module")
def glue():
    """Records of MRPC and CoLA, simulated: on MRPC the task suffers."""
    profile = load_profile("glue")
    return FullLength(profile, simulated(profile))


def test_the_three_questions_of_other_tasks_were_fixed_before_and_all_else_is_exploratory(glue):
    fixed = glue.claims.claim[~glue.claims.kind.str.endswith("exploratory")]
    names = ("lowers-centred-of-none", "metric-kept", "lowers-centred-of-all")
    expected = {f"stl:{n}:minilm:{task}:prominent" for n in names for task in ("mrpc", "cola")}
    assert set(fixed) == expected


def test_claims_from_records_are_those_from_run_folders(finished, tiny_runs, monkeypatch, tmp_path):
    monkeypatch.setattr("shrink_utils.study.records.data_dir", lambda: tmp_path)
    profile = replace(finished, sweep=())
    record_finished(profile)
    runs = graded(summarize(tiny_runs), correct_rows(tiny_runs))
    runs = at_least_loss(runs, evaluations(tiny_runs))
    found = finetuning_claims(runs, runs, measure_clouds(tiny_runs), weight=profile.weight)
    expected = whole_table(found)
    claims = FullLength(profile, recorded(profile)).claims
    claims = claims.assign(kind=claims.kind.str.removesuffix(", exploratory"))
    assert len(claims) > 10
    pd.testing.assert_frame_equal(claims, expected)


def test_the_command_keeps_what_it_decides(full, tables, monkeypatch, tmp_path, capsys):
    write_records(tables, tmp_path)
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    kept = tmp_path / "reference" / "cohort" / "hypotheses.csv"
    main(["--profile", "cohort", "hypotheses"])
    assert "supported" in capsys.readouterr().out
    pd.testing.assert_frame_equal(_answer(kept), full.answer)


def _answer(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)
