"""Tasks under one face: names, schema, subsamples."""

from __future__ import annotations

import pytest
from datasets import ClassLabel, Value

from shrink_utils.text import TASKS, load_task, task_spec

OFFLINE = [name for name, spec in TASKS.items() if spec.offline]


@pytest.mark.parametrize("name", OFFLINE)
def test_every_offline_task_has_the_columns_and_labels_of_its_spec(name):
    spec, task = task_spec(name), load_task(name, max_train=64, max_eval=32)
    assert list(task) == ["train", "validation"]
    assert [len(task[split]) for split in task] == [64, 32]
    for split in task.values():
        assert split.column_names == ["text", "text_pair", "label"]
        assert split.features["text"] == split.features["text_pair"] == Value("string")
        assert split.features["label"] == ClassLabel(names=list(spec.label_names))
        assert all(isinstance(text, str) and text for text in split["text"])
        assert all((pair is not None) == spec.is_pair for pair in split["text_pair"])
        assert set(split["label"]) == set(range(spec.n_labels))


def test_a_subsample_is_drawn_without_replacement_from_its_own_split():
    whole = load_task("sentiment_products")
    part = load_task("sentiment_products", max_train=500, max_eval=200)
    for split, n in (("train", 500), ("validation", 200)):
        everything = whole[split]["text"][:]
        drawn = part[split]["text"][:]
        assert len(drawn) == n
        assert all(drawn.count(text) <= everything.count(text) for text in set(drawn))
