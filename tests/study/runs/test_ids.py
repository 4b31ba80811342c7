"""A run's name changes with whatever its numbers hang on."""

from __future__ import annotations

import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.runs import ids, scratch

CONFIG = load_profile("smoke").runs()[0]
SCRATCH = scratch.scratch_config(load_profile("smoke"), "mlm")


@pytest.mark.parametrize(
    "name",
    [lambda: ids.run_id(CONFIG), lambda: scratch.scratch_id(SCRATCH)],
    ids=["run", "scratch"],
)
@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("source_hashes", lambda: {"minilm": "0" * 64}),
        ("version", lambda library: "0.0"),
        ("code_version", lambda module, but="": "0" * 16),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_archives_libraries_and_code_make_another_run(monkeypatch, name, what, other):
    before = name()
    for module in (ids, scratch):
        monkeypatch.setattr(module, what, other)
        monkeypatch.setattr(module, "_computed_by", module._computed_by.__wrapped__)
    assert name() != before


def test_another_commit_of_the_model_makes_another_run(monkeypatch):
    before = ids.run_id(CONFIG)
    monkeypatch.setattr(ids, "hub_revision", lambda name: "0" * 40)
    assert ids.run_id(CONFIG) != before
