"""Tables 2 and 3, and the frontier: which steps are averaged, which spread and runs are shown."""

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import task_table
from shrink_utils.study.claims.reference import _first_steps
from shrink_utils.study.claims.stl import _frontier_table
from shrink_utils.study.run_tables import KEYS, _summary_row
from shrink_utils.study.runs import _tables_of
from shrink_utils.text.tasks import task_spec


@pytest.fixture
def tables(tiny_runs):
    return _tables_of(tiny_runs)


def test_scores_average_the_last_30_percent_of_full_batches(tiny_runs):
    run = tiny_runs[0]
    steps = 11
    history = pd.DataFrame({"rows": [16] * 10 + [3], "step": range(1, steps + 1)})
    for name in ("raw_1", "raw_2", "raw_3", "centred_1", "centred_2", "centred_3"):
        history[name] = np.arange(steps, dtype=float)
    row = _summary_row(task_spec(run.config.task), history, run.evaluations)
    assert row["centred_1"] == np.mean([7, 8, 9])  # the short eleventh batch does not count


@pytest.mark.parametrize(("epochs", "averaged"), [(1, 1), (3, 1), (10, 3), (11, 4)])
def test_the_metric_is_averaged_over_the_last_30_percent_of_the_epochs(epochs, averaged, tiny_runs):
    scores = np.arange(epochs + 1) / 20
    before = tiny_runs[0].evaluations[0]
    evaluations = [before | {"accuracy": score, "f1": score / 2} for score in scores]
    row = _summary_row(task_spec(tiny_runs[0].config.task), tiny_runs[0].history, evaluations)
    mean = scores[-averaged:].mean()
    assert row["metric"] == "accuracy" and row["f1"] == pytest.approx(mean / 2)
    assert [row["value"], row["accuracy"]] == pytest.approx([mean, mean])


def test_every_run_leaves_five_tables_that_name_it(tables, tiny_runs):
    for name, table in tables.items():
        assert list(table.columns[: len(KEYS)]) == KEYS and len(table) >= len(tiny_runs), name
    early = _first_steps(tables)
    assert len(early) == len(tiny_runs) * tables["steps"].step.clip(upper=4).nunique()
    assert (early.loss_before.notna() == (early.step == 1)).all()


def test_correctness_has_a_row_per_run_and_validation_row(tiny_runs, tables):
    table, summary = tables["correct"], tables["runs"]
    n = len(tiny_runs[0].embeddings["labels"])
    assert len(table) == len(tiny_runs) * n and table.row.max() == n - 1
    assert table.correct.between(0, 1).all()
    means = table.groupby(["arm", "seed"]).correct.mean()
    expected = summary.set_index(["arm", "seed"]).accuracy
    pd.testing.assert_series_equal(means, expected, check_names=False, check_like=True)


def test_the_task_table_has_mean_and_sample_deviation_over_seeds(tables):
    summary = tables["runs"]
    table = task_table(summary).set_index(["arm", "metric"])
    assert set(table.index) == {(a, m) for a in ("none", "all") for m in ("accuracy", "f1")}
    row = table.loc["all", "accuracy"]
    values = summary[summary.arm == "all"].value
    assert row["mean"] == pytest.approx(values.mean())
    assert row.sd == pytest.approx(np.std(values, ddof=1))
    assert row.n == 2


def test_a_frontier_has_each_run_once_none_at_weight_zero_and_no_task_without_a_sweep():
    cells = [("movies", "random", 4.0), ("movies", "none", 1.0), ("movies", "random", 0.5)]
    cells += [("products", "random", 1.0), ("products", "none", 1.0), ("movies", "all", 1.0)]
    rows = [(*cell, seed, 0.5) for cell in cells for seed in (1, 0)]
    runs = pd.DataFrame(rows, columns=["task", "arm", "weight", "seed", "centred_1"])
    runs["model"] = "minilm"
    found = _frontier_table(pd.concat([runs, runs], ignore_index=True))  # grid and sweep
    expected = [("none", 0.0), ("all", 1.0), ("random", 0.5), ("random", 4.0)]
    expected = [["movies", *cell, seed] for cell in expected for seed in (0, 1)]
    cells = found[["task", "arm", "weight", "seed"]].to_numpy().tolist()
    assert sorted(cells) == sorted(expected)
    assert _frontier_table(runs[runs.task == "products"]).empty


def test_a_sweep_without_the_arm_that_it_begins_with_is_refused():
    rows = [("minilm", "movies", "all", weight, 0, 0.5) for weight in (0.5, 1.0)]
    runs = pd.DataFrame(rows, columns=["model", "task", "arm", "weight", "seed", "centred_1"])
    with pytest.raises(ValueError, match=r"runs: minilm on movies has .* no arm 'none'"):
        _frontier_table(runs)
