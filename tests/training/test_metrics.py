"""Task metrics against scikit-learn and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef
from transformers import EvalPrediction

from shrink_utils.text import task_spec
from shrink_utils.training import task_metrics

RNG = np.random.default_rng(0)


def _scores(task: str, outputs: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    return task_metrics(task_spec(task))(EvalPrediction(outputs, labels))


def test_pairs_are_judged_by_accuracy_and_f1():
    logits, labels = RNG.normal(size=(50, 2)).astype("float32"), RNG.integers(0, 2, 50)
    predicted = logits.argmax(-1)
    assert _scores("mrpc", logits, labels) == pytest.approx(
        {"accuracy": accuracy_score(labels, predicted), "f1": f1_score(labels, predicted)}
    )


def test_cola_is_judged_by_matthews_correlation():
    logits, labels = RNG.normal(size=(50, 2)).astype("float32"), RNG.integers(0, 2, 50)
    expected = matthews_corrcoef(labels, logits.argmax(-1))
    assert _scores("cola", logits, labels)["matthews"] == pytest.approx(expected, abs=1e-6)


def test_sts_is_judged_by_rank_correlation():
    outputs = RNG.normal(size=(40, 1)).astype("float32")
    labels = RNG.normal(size=40).astype("float32")
    expected = spearmanr(outputs[:, 0], labels).statistic
    assert _scores("stsb", outputs, labels)["spearman"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")  # scikit-learn's
@pytest.mark.parametrize("predicted", [0, 1])
@pytest.mark.parametrize("n_ones", [0, 30, 100])
def test_a_collapsed_classifier_scores_as_glues_scorer_says(predicted, n_ones):
    """With unequal classes, where an epsilon in the denominator would show."""
    logits = np.eye(2, dtype="float32")[np.full(100, predicted)]
    labels = (np.arange(100) < n_ones).astype(int)
    expected = matthews_corrcoef(labels, logits.argmax(-1))
    assert _scores("cola", logits, labels)["matthews"] == expected == 0.0


def test_one_class_in_the_labels_scores_zero_whatever_is_predicted():
    logits = np.eye(2, dtype="float32")[(np.arange(50) >= 5).astype(int)]
    assert _scores("cola", logits, np.ones(50, int))["matthews"] == 0.0
