"""The examples in the docstrings of what the room lists print what stands there."""

import doctest
import sys

import pytest

from shrink_utils import training

LISTED = {name: value for name in training.__all__ if callable(value := getattr(training, name))}


@pytest.mark.parametrize("name", LISTED)
def test_every_listed_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the Trainer keeps what it is not told to keep elsewhere
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    module = sys.modules[LISTED[name].__module__]
    (found,) = finder.find(LISTED[name], name, globs=dict(vars(module)))
    assert found.examples
    assert runner.run(found).failed == 0
