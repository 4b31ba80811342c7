"""The frontier of made-up runs."""

import pandas as pd
import pytest

from shrink_utils.study.ablation import frontier_table, place_on_sweep

WEIGHTS = (0.5, 1.0, 4.0)


def _row(arm, weight, seed, score, value, *, task="sentiment_movies"):
    return {
        "model": "minilm",
        "task": task,
        "arm": arm,
        "weight": weight,
        "seed": seed,
        "centred_1": score,
        "raw_1": score + 0.1,
        "metric": "accuracy",
        "value": value,
        "f1": 0.5,
    }


def _summary(arms=("random", "prominent"), seeds=(0, 1, 2), weights=WEIGHTS):
    """Score 0.6 / (1 + weight) and metric 0.8 − weight / 100, shifted by the seed."""
    rows = [_row("none", 1.0, seed, 0.6 + 0.01 * seed, 0.8 + 0.02 * seed) for seed in seeds]
    rows += [
        _row(arm, w, seed, 0.6 / (1 + w) + 0.01 * seed, 0.8 - w / 100 + 0.02 * seed)
        for arm in arms
        for seed in seeds
        for w in weights
    ]
    return pd.DataFrame(rows)


def test_a_run_of_grid_and_sweep_is_one_row():
    grid = _summary(weights=(1.0,))
    frontier = frontier_table(pd.concat([grid, _summary()], ignore_index=True))
    assert len(frontier) == 3 * (1 + 2 * len(WEIGHTS))
    assert not frontier.duplicated(["arm", "weight", "seed"]).any()
    assert {"arm", "weight", "seed", "centred_1", "raw_1", "value"} <= set(frontier)


def test_none_has_weight_zero_and_arms_come_in_their_order():
    frontier = frontier_table(_summary())
    assert frontier[frontier.arm == "none"].weight.unique().tolist() == [0.0]
    assert list(dict.fromkeys(frontier.arm)) == ["none", "prominent", "random"]
    prominent = frontier[frontier.arm == "prominent"]
    assert prominent.weight.tolist() == sorted(3 * list(WEIGHTS))


def test_a_task_without_a_sweep_is_left_out():
    other = _summary(weights=(1.0,)).assign(task="sentiment_products")
    frontier = frontier_table(pd.concat([_summary(), other]))
    assert frontier.task.unique().tolist() == ["sentiment_movies"]
    nothing = frontier_table(other)
    assert nothing.empty and list(nothing) == list(frontier)


def _read(scores, values, score):
    place = place_on_sweep(scores, score)
    return float(place.of(values)), place.passed


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0.5, 0.75), (0.2, 0.5), (0.4, 0.7), (0.6, 0.8), (0.7, 0.8), (0.05, 0.4)],
)
def test_a_metric_is_interpolated_on_the_score_or_that_of_the_nearest_point(score, expected):
    found, passed = _read([0.6, 0.4, 0.1], [0.80, 0.70, 0.40], score)
    assert found == pytest.approx(expected) and passed == (0.1 <= score <= 0.6)


def test_a_sweep_that_turns_back_is_read_where_it_first_passes():
    assert _read([0.6, 0.2, 0.6], [0.8, 0.4, 0.0], 0.4)[0] == pytest.approx(0.6)
