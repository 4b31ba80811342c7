"""The frontier of made-up runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.ablation import frontier_figure, frontier_table, place_on_sweep

ROOT = Path(__file__).resolve().parents[2]
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


def test_a_sweep_without_its_beginning_is_an_error():
    summary = _summary()
    with pytest.raises(
        ValueError, match="sentiment_movies has a sweep of weights and no arm 'none'"
    ):
        frontier_table(summary[summary.arm != "none"])


def test_in_the_legend_the_arm_without_a_regularizer_is_a_point():
    (legend,) = frontier_figure(frontier_table(_summary())).legends
    lines = {entry.get_label(): entry.get_linestyle() for entry in legend.legend_handles}
    assert lines.pop("none") == "None" and "None" not in lines.values()


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


def test_a_sweep_that_stands_still_is_read_at_its_smaller_weight():
    assert _read([0.6, 0.6], [0.8, 0.4], 0.6) == (0.8, True)


def test_every_arm_has_a_line_from_none_through_the_means_of_its_weights():
    fig = frontier_figure(frontier_table(_summary()))
    (ax,) = fig.axes
    lines = [line for line in ax.get_lines() if len(line.get_xdata()) == 1 + len(WEIGHTS)]
    assert len(lines) == 2
    for line in lines:
        assert line.get_xdata() == pytest.approx([0.61, *(0.6 / (1 + np.array(WEIGHTS)) + 0.01)])
        assert line.get_ydata() == pytest.approx([0.82, *(0.82 - np.array(WEIGHTS) / 100)])
    small = [line for line in ax.get_lines() if line.get_markersize() == 3]
    assert [len(line.get_xdata()) for line in small] == [3, 3 * len(WEIGHTS), 3 * len(WEIGHTS)]
    labels = [text.get_text() for text in fig.legends[0].get_texts()]
    assert labels == ["none", "prominent", "random"]
    assert ax.get_ylabel() == "accuracy" and "first centred score" in ax.get_xlabel()


def test_a_panel_for_each_task_and_the_raw_score():
    both = pd.concat([_summary(), _summary().assign(task="sentiment_products")])
    fig = frontier_figure(frontier_table(both), column="raw_1")
    assert [ax.get_title(loc="left") or ax.get_title() for ax in fig.axes] == [
        "minilm · sentiment_movies",
        "minilm · sentiment_products",
    ]
    assert "first raw score" in fig.axes[0].get_xlabel()


def test_one_seed_can_be_drawn(recwarn):
    frontier_figure(frontier_table(_summary(seeds=(0,)))).canvas.draw()
    assert not recwarn.list


def test_nothing_to_draw_is_an_error():
    with pytest.raises(ValueError, match="frontier: empty, the profile sweeps no weights"):
        frontier_figure(frontier_table(_summary(weights=(1.0,))))


def _code(chapter):
    path = ROOT / "notebooks" / f"{chapter}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return {cell["id"]: "".join(cell["source"]) for cell in code}


@pytest.fixture
def shown(monkeypatch):
    shown = []
    monkeypatch.setattr("shrink_utils.study.figures.display", shown.append)
    return shown


def test_the_chapter_shows_a_profile_that_sweeps_no_weights(finished, monkeypatch, capsys, shown):
    profile = replace(finished, sweep=())
    monkeypatch.setattr("shrink_utils.study.begin", lambda *args, **options: profile)
    names = {}
    for cell, source in _code("07_ablation").items():
        if not cell.startswith(("full-", "exercise-")):
            exec(source, names)
    assert "0 more runs" in capsys.readouterr().out
    assert len(shown) == 2 * 4  # figures with their captions; none of a frontier


@pytest.mark.parametrize("swept", [True, False])
def test_the_chapter_of_claims_shows_rewards_where_there_are_some(
    shown, swept, monkeypatch, tmp_path
):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    claims = pd.read_csv(ROOT / "data" / "reference" / "quick" / "claims.csv")
    claims = claims[swept | ~claims.claim.str.startswith("topology:")]
    code = _code("11_claims")
    names = {"profile": load_profile("smoke"), "claims": claims, "table": shown.append}
    exec(code["begin"].split("\n\nprofile")[0], names)
    for cell in ("topology", "forest-topology"):
        exec(code[cell], names)
    assert len(shown) == (3 if swept else 0)  # a table; a figure with its caption
