"""Whole small runs: what is in the loss, what is written down, what a seed fixes, the scores."""

import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from datasets import Dataset
from scipy.stats import spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef, silhouette_score
from transformers import EvalPrediction

from shrink_utils.geometry import anisotropy, between_share, within_classes
from shrink_utils.models import load_encoder
from shrink_utils.study import finetune
from shrink_utils.study.finetuning import _second_texts, _task_metrics, _tokenized
from shrink_utils.text.tasks import task_spec

# Of each kind one at least; the others are tested one by one.
ARMS = ("none", "prominent", "all", "isoscore")
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def results(config):
    return {arm: finetune(replace(config, arm=arm)) for arm in ARMS}


def test_an_evaluation_has_the_shape_of_its_classes_and_their_silhouette(results, config):
    for result in results.values():
        x, labels = result.embeddings["after"], result.embeddings["labels"]
        last = result.evaluations[-1]
        assert last["silhouette"] == pytest.approx(silhouette_score(x, labels), rel=1e-5)
        assert last["within_1"] == anisotropy(within_classes(x, labels), k=1).item()
        assert last["between"] == between_share(x, labels)


def test_the_regularizer_term_is_minus_the_entropy_of_the_selected_bars(results):
    for arm in ("prominent", "all"):
        history = results[arm].history
        pd.testing.assert_series_equal(
            history.regularizer, -history.entropy, check_names=False, rtol=1e-5
        )
    assert (results["none"].history.regularizer == 0).all()


def test_arms_of_a_seed_start_equal_and_then_part(results):
    first = {result.history.task_loss.iloc[0] for result in results.values()}
    last = {result.history.task_loss.iloc[-1] for result in results.values()}
    assert (len(first), len(last)) == (1, len(ARMS))


def test_a_configuration_fixes_the_numbers_and_another_seed_changes_them(config, results):
    again, other = finetune(config), finetune(replace(config, seed=4))
    pd.testing.assert_frame_equal(again.history, results["prominent"].history)
    assert torch.equal(again.embeddings["after"], results["prominent"].embeddings["after"])
    assert other.history.task_loss.iloc[0] != again.history.task_loss.iloc[0]


def test_embeddings_and_their_geometry_are_of_the_same_rows_before_and_after(results):
    embeddings = results["none"].embeddings
    assert embeddings["before"].shape == embeddings["after"].shape == (16, 32)
    assert embeddings["labels"].shape == (16,)
    assert not torch.equal(embeddings["before"], embeddings["after"])
    for arm in ("prominent", "all"):
        assert torch.equal(results[arm].embeddings["before"], embeddings["before"])
    for when, evaluation in zip(("before", "after"), results["none"].evaluations[::2], strict=True):
        raw, centred = (anisotropy(embeddings[when], k=3, center=c).tolist() for c in (False, True))
        assert [evaluation[f"raw_{k}"] for k in (1, 2, 3)] == pytest.approx(raw)
        assert [evaluation[f"centred_{k}"] for k in (1, 2, 3)] == pytest.approx(centred)


def test_torch_threads_and_random_numbers_are_given_back(config):
    def state():
        numbers = random.getstate(), np.random.get_state()[1].tolist()
        return torch.get_num_threads(), numbers, torch.get_rng_state().tolist()

    before = state()
    finetune(replace(config, epochs=1, threads=before[0] + 1))
    assert state() == before


def _scores(task, outputs, labels):
    return _task_metrics(task_spec(task))(EvalPrediction(outputs, labels))


def test_tasks_are_judged_as_scikit_learn_and_scipy_judge():
    logits, labels = RNG.normal(size=(50, 2)).astype("float32"), RNG.integers(0, 2, 50)
    predicted = logits.argmax(-1)
    expected = {"accuracy": accuracy_score(labels, predicted), "f1": f1_score(labels, predicted)}
    assert _scores("mrpc", logits, labels) == pytest.approx(expected)
    expected = matthews_corrcoef(labels, predicted)
    assert _scores("cola", logits, labels)["matthews"] == pytest.approx(expected)
    outputs, targets = logits[:, :1], logits[:, 1] + logits[:, 0]
    expected = spearmanr(outputs[:, 0], targets).statistic
    assert _scores("stsb", outputs, targets)["spearman"] == pytest.approx(expected)
    assert _scores("stsb", np.ones_like(outputs), targets)["spearman"] == 0.0  # as in own_answer


@pytest.mark.parametrize(("pairs", "least"), [([None] * 2, 3), (["one", "two"], 5)])
def test_texts_become_tokens_of_which_a_length_leaves_one_per_text_at_least(pairs, least):
    """Below the number of special tokens a tokenizer would cut nothing at all."""
    tokenizer, texts = load_encoder("tiny-random").tokenizer, ["a much longer film", "dull"]
    rows = Dataset.from_dict({"text": texts, "text_pair": pairs, "label": [0, 1]})
    assert _second_texts(rows) == (pairs if pairs[0] else None)
    whole = [tokenizer(a, b).input_ids for a, b in zip(texts, pairs, strict=True)]
    assert [list(ids) for ids in _tokenized(rows, tokenizer)["input_ids"]] == whole
    assert [len(ids) for ids in _tokenized(rows, tokenizer, max_length=least)["input_ids"]] == 2 * [
        least
    ]
    with pytest.raises(ValueError, match=f"max_length: {least - 1} .* at least {least}"):
        _tokenized(rows, tokenizer, max_length=least - 1)
