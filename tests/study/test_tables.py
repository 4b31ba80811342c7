"""Tables 2 and 3: which steps are averaged, which spread is shown."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import (
    as_printed,
    read_table,
    score_table,
    summarize,
    task_table,
    write_table,
)


@pytest.fixture
def summary(tiny_runs):
    return summarize(tiny_runs)


def test_scores_average_the_last_30_percent_of_full_batches(tiny_runs):
    run = tiny_runs[0]
    steps = 11
    history = pd.DataFrame({"rows": [16] * 10 + [3], "step": range(1, steps + 1)})
    for name in ("raw_1", "raw_2", "raw_3", "centred_1", "centred_2", "centred_3"):
        history[name] = np.arange(steps, dtype=float)
    row = summarize([replace(run, history=history)]).iloc[0]
    assert row.centred_1 == np.mean([7, 8, 9])  # the short eleventh batch does not count


def test_the_metric_is_that_of_the_last_epoch(tiny_runs):
    epochs = [{"accuracy": 0.1, "f1": 0.2}, {"accuracy": 0.9, "f1": 0.8}]
    row = summarize([replace(tiny_runs[0], evaluations=epochs)]).iloc[0]
    assert (row.metric, row.value, row.accuracy, row.f1) == ("accuracy", 0.9, 0.9, 0.8)


def test_the_task_table_has_mean_and_sample_deviation_over_seeds(summary):
    table = task_table(summary).set_index(["arm", "metric"])
    assert set(table.index) == {(a, m) for a in ("none", "all") for m in ("accuracy", "f1")}
    row = table.loc["all", "accuracy"]
    values = summary[summary.arm == "all"].value
    assert row["mean"] == pytest.approx(values.mean())
    assert row.sd == pytest.approx(np.std(values, ddof=1))
    assert row.n == 2


def test_the_score_table_has_a_row_for_each_space_and_rank(summary):
    table = score_table(summary)
    assert len(table) == 2 * 2 * 3  # arms, spaces, scores
    cell = table[(table.arm == "none") & (table.space == "centred") & (table.k == "2")].iloc[0]
    assert cell["mean"] == pytest.approx(summary[summary.arm == "none"].centred_2.mean())


def test_printed_tables_put_arms_side_by_side():
    table = pd.DataFrame(
        {
            "task": ["t"] * 3,
            "arm": ["none", "all", "more"],
            "mean": [0.5834, -0.25, 10.5],
            "sd": [0.0412, np.nan, 20.25],
        }
    )
    printed = as_printed(table, rows=["task"])
    assert list(printed.columns) == ["none", "all", "more"]
    assert printed.loc["t"].tolist() == [".583 ± .041", "-.250", "10.500 ± 20.250"]


def test_a_table_comes_back_as_it_was_written(finished, summary):
    table = task_table(summary)
    write_table(table, "again", profile=finished)
    pd.testing.assert_frame_equal(read_table("again", profile=finished), table, atol=1e-6)


def test_a_table_that_is_not_there_says_what_writes_it(finished):
    with pytest.raises(FileNotFoundError, match="make reproduce PROFILE=tiny"):
        read_table("nothing", profile=finished)


def test_a_table_that_cannot_be_written_whole_leaves_the_old_one(finished, summary, full_disk):
    table = task_table(summary)
    write_table(table, "half", profile=finished)
    full_disk(pd.DataFrame, "to_csv")
    with pytest.raises(OSError, match="No space"):
        write_table(table.iloc[:1], "half", profile=finished)
    assert len(read_table("half", profile=finished)) == len(table)
    assert [p.name for p in (finished.folder / "tables").glob("half*")] == ["half.csv"]
