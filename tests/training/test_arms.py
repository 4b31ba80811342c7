"""The arms, and the regularizer that each stands for."""

from __future__ import annotations

import json

import pytest

from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training import ARMS, arm_options, make_regularizer
from shrink_utils.training.penalties import AverageCosine, IsoScoreStar, SpectralEntropy


def test_every_arm_but_none_makes_a_regularizer_of_the_given_weight():
    made = {arm: make_regularizer(arm, weight=0.5) for arm in ARMS}
    assert made.pop("none") is None
    assert {regularizer.weight for regularizer in made.values()} == {0.5}
    assert len({repr(regularizer) for regularizer in made.values()}) == len(made)


def test_the_two_readings_of_the_paper_differ_in_their_rule():
    assert make_regularizer("prominent").rule == "ratio"
    assert make_regularizer("published").rule == "published"


def test_the_random_bars_are_as_many_as_the_prominent_ones():
    random, prominent = make_regularizer("random"), make_regularizer("prominent")
    assert (random.selection, random.rule) == ("random", prominent.rule)


def test_loops_are_the_prominent_bars_of_the_next_dimension():
    loops = make_regularizer("loops")
    assert isinstance(loops, BarcodeRegularizer)
    assert (loops.selection, loops.homology_dim) == ("prominent", 1)


def test_penalties_are_made_by_name():
    assert type(make_regularizer("cosine")) is AverageCosine
    assert type(make_regularizer("spectral")) is SpectralEntropy
    assert type(make_regularizer("isoscore")) is IsoScoreStar
    assert make_regularizer("isoscore").shrinkage == 0.2


def test_each_run_has_a_regularizer_of_its_own():
    assert make_regularizer("isoscore") is not make_regularizer("isoscore")  # one remembers


def test_options_are_plain_values_and_those_of_the_papers_arms_stay():
    """They are hashed into the name of a run: a change would compute every run again."""
    assert json.loads(json.dumps(ARMS)) == ARMS
    assert arm_options("none") is None
    assert arm_options("prominent") == {"selection": "prominent", "rule": "ratio"}
    assert arm_options("published") == {"selection": "prominent", "rule": "published"}
    assert arm_options("all") == {"selection": "all"}


def test_a_typo_is_met_with_the_nearest_arm():
    with pytest.raises(ValueError, match="arm: no arm 'prominnt', did you mean 'prominent'"):
        arm_options("prominnt")
