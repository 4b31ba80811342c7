"""The rule bar by bar is the rule of `topology`, and the slider goes through it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shrink_utils.study.explore.selection import (
    describe_step,
    draw_step,
    selection_explorer,
    selection_stages,
    selection_steps,
)
from shrink_utils.topology import prominent_features

DOZEN = [10.0, 9.0, 8.0, 4.0, 3.0, 2.5, 2.2, 2.0, 1.9, 1.8, 1.7, 1.6]


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=40))
def test_the_last_round_keeps_what_the_package_selects(lengths):
    if max(lengths) == min(lengths):
        return
    steps = selection_steps(lengths)
    if any(abs(step.c[-1] - 1) < 1e-9 for step in steps):
        return  # a tie as far as rounding goes
    kept = steps[-1].bars[: steps[-1].i]
    chosen = prominent_features(torch.tensor(lengths, dtype=torch.float64))
    assert kept == pytest.approx([lengths[i] for i in chosen])


def test_the_dozen_takes_three_rounds():
    steps = selection_steps(DOZEN)
    assert [(step.round, step.i) for step in steps if not step.is_feature] == [
        (1, 4),
        (2, 3),
        (3, 3),
    ]
    assert steps[3].neutral[-1] > DOZEN[4] and steps[2].neutral[-1] < DOZEN[3]


def test_the_sentence_says_length_threshold_and_result():
    steps = selection_steps(DOZEN)
    assert describe_step(steps, 0) == (
        "Round 1, bar 1: its length 9 is longer than what would replace it, 4.46 (C = 1.105): "
        "a feature."
    )
    assert describe_step(steps, len(steps) - 1).endswith("Kept in the end: 10, 9, 8.")


@pytest.mark.parametrize("lengths", [[], [1.0], [2.0, 2.0], [1.0, 0.0]])
def test_nothing_to_decide_is_an_error(lengths):
    with pytest.raises(ValueError, match="lengths: expected two or more"):
        selection_steps(lengths)


def test_the_figure_shows_the_step_that_was_asked_for():
    left, middle, right = draw_step(selection_steps(DOZEN), 3).axes
    assert (left.get_title("left") or left.get_title()) == "round 1, bar 4: noise"
    assert len(middle.lines[0].get_xdata()) == 4 and len(right.lines[0].get_xdata()) == 5


def test_the_stages_show_every_step():
    titles = [
        ax.get_title() or ax.get_title("left")
        for ax in selection_stages(selection_steps(DOZEN)).axes
    ]
    assert sum(title.startswith("round") for title in titles) == 10


def test_the_slider_steps_and_ends_where_a_shorter_list_ends():
    explorer = selection_explorer({"dozen": DOZEN, "three": [3.0, 2.0, 1.0]})
    step = explorer.controls["step"]
    first = explorer.picture.value
    step.value = 10
    assert explorer.picture.value != first and "Kept in the end" in explorer.picture.value
    explorer.controls["name"].value = "three"
    assert step.max == len(selection_steps([3.0, 2.0, 1.0])) == step.value
    assert "Kept in the end" in explorer.picture.value
