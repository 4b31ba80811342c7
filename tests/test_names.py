"""The answer to a name with a typo."""

from __future__ import annotations

from shrink_utils.names import unknown_name


def test_the_nearest_name_and_the_list_are_in_the_message():
    error = unknown_name("name", "task", "mrcp", ["mrpc", "cola"])
    assert str(error) == "name: no task 'mrcp', did you mean 'mrpc'? (there are mrpc, cola)"


def test_nothing_is_proposed_when_nothing_is_near():
    assert "mean" not in str(unknown_name("name", "task", "xyz", ["mrpc", "cola"]))
