"""Tasks under one face: names, schema, subsamples."""

from __future__ import annotations

import pytest
from datasets import ClassLabel, Value

from shrink_utils.text import TASKS, load_task, task_spec

OFFLINE = [name for name, spec in TASKS.items() if spec.offline]


def test_the_offline_tasks_are_the_six_of_the_design():
    sentiments = [f"sentiment_{s}" for s in ("movies", "products", "editorials", "tweets")]
    assert [*sentiments, "word_order", "coherence"] == OFFLINE


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


@pytest.mark.parametrize("spec", TASKS.values(), ids=TASKS)
def test_every_spec_has_known_metrics_and_a_number_of_outputs(spec):
    assert set(spec.metrics) <= {"accuracy", "f1", "matthews", "spearman"}
    assert spec.n_labels == (1 if spec.is_regression else len(spec.label_names))
    assert spec.is_regression == ("spearman" in spec.metrics)


def test_the_validation_rows_do_not_depend_on_the_seed():
    first, second = (load_task("sentiment_movies", max_eval=100, seed=seed) for seed in (0, 1))
    assert first["validation"][:] == second["validation"][:]


def test_the_training_rows_depend_on_the_seed_alone():
    rows = [
        load_task("sentiment_movies", max_train=100, max_eval=n, seed=seed)["train"]["text"][:]
        for seed, n in ((0, None), (0, 5), (1, None))
    ]
    assert rows[0] == rows[1]
    assert set(rows[0]) != set(rows[2])


def test_a_subsample_is_drawn_without_replacement_from_its_own_split():
    whole = load_task("sentiment_products")
    part = load_task("sentiment_products", max_train=500, max_eval=200)
    for split, n in (("train", 500), ("validation", 200)):
        everything = whole[split]["text"][:]
        drawn = part[split]["text"][:]
        assert len(drawn) == n
        assert all(drawn.count(text) <= everything.count(text) for text in set(drawn))


def test_a_maximum_above_the_rows_there_are_takes_them_all():
    task = load_task("sentiment_products", max_train=10**6)
    assert len(task["train"]) == len(load_task("sentiment_products")["train"])


@pytest.mark.parametrize("argument", ["max_train", "max_eval"])
def test_a_maximum_below_one_is_an_error(argument):
    with pytest.raises(ValueError, match=f"{argument}: 0, expected at least 1"):
        load_task("sentiment_movies", **{argument: 0})


@pytest.mark.parametrize(
    ("typo", "meant"), [("sentiment_movie", "sentiment_movies"), ("mrcp", "mrpc")]
)
def test_a_task_name_with_a_typo_gets_the_nearest_name_and_the_list(typo, meant):
    with pytest.raises(ValueError, match=f"did you mean '{meant}'.*word_order, coherence"):
        load_task(typo)
