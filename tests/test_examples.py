"""The examples in the docstrings of what the rooms list print what stands there."""

import doctest
import sys
from importlib import import_module

import pytest

from shrink_utils import geometry, models, text, topology, training

LISTED = {
    f"{room.__name__.removeprefix('shrink_utils.')}.{name}": value
    for room in (topology, geometry, models, training, text)
    for name in dir(room)
    if not name.startswith("_") and callable(value := getattr(room, name))
}
OF_THE_STUDY = ("finetuning", "pretraining", "profiles")


@pytest.mark.parametrize("name", LISTED)
def test_every_listed_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the Trainer keeps what it is not told to keep elsewhere
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    module = sys.modules[LISTED[name].__module__]
    (found,) = finder.find(LISTED[name], name, globs=dict(vars(module)))
    assert found.examples
    assert runner.run(found).failed == 0


@pytest.mark.parametrize("module", OF_THE_STUDY)
def test_examples_of_trainings_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(import_module(f"shrink_utils.study.{module}")).failed == 0
