"""The examples in the docstrings of what the rooms list print what stands there."""

import doctest
import re
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
NUMBER = re.compile(r"[-+]?\d+\.\d*(?:e[-+]?\d+)?")


class _UpToRounding(doctest.OutputChecker):
    """torch prints "1." where all is exact, else "1.0000", and processors differ in that."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        numbers = [[float(x) for x in NUMBER.findall(text)] for text in (want, got)]
        words = ["".join(NUMBER.sub("#", text).split()) for text in (want, got)]
        same = words[0] == words[1] and numbers[0] == pytest.approx(numbers[1], rel=0, abs=1e-4)
        return same or super().check_output(want, got, optionflags)


def _failed(examples: doctest.DocTest) -> int:
    assert examples.examples
    return doctest.DocTestRunner(_UpToRounding()).run(examples).failed


@pytest.mark.parametrize(
    ("got", "right"),
    [
        ("tensor([1.0000, 0.5000])", True), ("tensor([ 1.0001, 0.5])", True),
        ("tensor([1.0000, 0.5002])", False), ("array([1., 0.5])", False), ("tensor([1.])", False),
        ("tensor([-1., 0.5])", False),
    ],
)  # fmt: skip
def test_an_example_may_differ_by_rounding_and_by_nothing_else(got, right):
    assert _UpToRounding().check_output("tensor([1., 0.5])\n", f"{got}\n", 0) == right


@pytest.mark.parametrize("name", LISTED)
def test_every_listed_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the Trainer keeps what it is not told to keep elsewhere
    module = sys.modules[LISTED[name].__module__]
    finder = doctest.DocTestFinder(recurse=False)
    (found,) = finder.find(LISTED[name], name, globs=dict(vars(module)))
    assert _failed(found) == 0


@pytest.mark.parametrize("module", OF_THE_STUDY)
def test_examples_of_trainings_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.DocTestFinder().find(import_module(f"shrink_utils.study.{module}"))
    failed = [_failed(examples) for examples in found if examples.examples]
    assert failed and not any(failed)
