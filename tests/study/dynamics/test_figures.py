"""Figures of chapter 10 hold the numbers of the tables that they are given."""

from __future__ import annotations

from itertools import product

import pandas as pd
import pytest

from shrink_utils.study.drawing import figure_data
from shrink_utils.study.dynamics.figures import arm_contributions, rebuilt_losses, trunk_shares

STACKS = [("mlm", ""), ("clm", ""), ("mt", "encoder"), ("mt", "decoder")]


def _allocated(rows, columns):
    table = pd.DataFrame(rows, columns=columns.split())
    return table.assign(quantity="allocation", rule="trapezoid", head=-1)


def test_a_share_that_rounds_to_zero_has_no_sign():
    kinds = product(STACKS, (1, 2), ("key", "W1"))
    values = {"key": 0.001, "W1": -1.0}  # keys hurt a little
    rows = [(*stack, 0, 1, layer, kind, values[kind]) for stack, layer, kind in kinds]
    fig = trunk_shares(_allocated(rows, "objective stack seed step layer component value"))
    said = [text.get_text() for text in fig.axes[0].texts]
    assert said == ["0", "50", "0", "50"]


def test_a_layer_pays_by_its_difference_to_no_regularizer():
    layers = {"none": (-2.0, -3.0), "all": (-1.0, -4.0)}
    columns = "arm stack step layer component value"
    rows = [(arm, "", 1, i, "out", v) for arm, pair in layers.items() for i, v in enumerate(pair)]
    losses = pd.DataFrame(list(product(layers, (0, 1))), columns=["arm", "step"])
    losses = losses.assign(quantity="loss", value=0.7)
    fig = arm_contributions(pd.concat([_allocated(rows, columns), losses]))
    paid = figure_data(fig).query("panel == 3 and series == 'all'")
    assert paid.y.tolist() == pytest.approx([1000, -1000])
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["none", "all"]


def test_every_rule_starts_from_the_loss_and_adds_its_own_contributions():
    rules = {"euler": -2.0, "trapezoid": -1.5, "simpson": -1.25, "adaptive": -1.0}
    rows = [("allocation", rule, 1, value) for rule, value in rules.items()]
    rows += [("loss", "", 0, 7.0), ("loss", "", 1, 6.0), ("pieces", "", 1, 4.0)]
    table = pd.DataFrame(rows, columns=["quantity", "rule", "step", "value"])
    drawn = figure_data(rebuilt_losses(table)).query("panel == 1")
    ends = drawn.groupby("series").y.last()
    assert ends[[rule.capitalize() for rule in rules]].tolist() == [5.0, 5.5, 5.75, 6.0]
