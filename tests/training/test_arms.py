"""The arms, and the regularizer that each stands for."""

from __future__ import annotations

import pytest

from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training import ARMS, arm_options, make_regularizer


def test_every_arm_but_none_makes_a_regularizer_of_the_given_weight():
    made = {arm: make_regularizer(arm, weight=0.5) for arm in ARMS}
    assert made.pop("none") is None
    assert all(isinstance(regularizer, BarcodeRegularizer) for regularizer in made.values())
    assert {regularizer.weight for regularizer in made.values()} == {0.5}


def test_the_two_readings_of_the_paper_differ_in_their_rule():
    assert make_regularizer("prominent").rule == "ratio"
    assert make_regularizer("published").rule == "published"


def test_a_typo_is_met_with_the_nearest_arm():
    with pytest.raises(ValueError, match="arm: no arm 'prominnt', did you mean 'prominent'"):
        arm_options("prominnt")
