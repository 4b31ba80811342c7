"""The examples in the docstrings of what the room lists print what stands there."""

import doctest

import pytest

from shrink_utils import topology

LISTED = {name: value for name, value in vars(topology).items() if callable(value)}


@pytest.mark.parametrize("name", LISTED)
def test_every_listed_name_has_an_example_that_runs(name):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    (found,) = finder.find(LISTED[name], name, globs=dict(vars(topology)))
    assert found.examples
    assert runner.run(found).failed == 0
