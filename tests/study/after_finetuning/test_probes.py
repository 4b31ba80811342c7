"""Probes on data whose contents are known, and against the normal equations of ridge regression."""

from __future__ import annotations

import numpy as np
import pytest

from shrink_utils.geometry import principal_axes
from shrink_utils.study.after_finetuning.probes import (
    PENALTIES,
    deal_folds,
    predict_classes,
    probe_classes,
    probe_values,
)

RNG = np.random.default_rng(0)
N = 240
X = RNG.normal(size=(N, 8)) * [9, 5, 2, 1, 1, 1, 1, 0.1] + 3
FOLDS = np.arange(N) % 4


def _classes(x):
    """Three classes that the third column tells, nearly."""
    return np.digitize(x[:, 2] + RNG.normal(size=len(x)) * 0.1, [2, 4])


LABELS = _classes(X)


def test_folds_are_of_equal_size_and_cover_every_row():
    folds = deal_folds(np.arange(103), n_folds=4)
    assert sorted(np.bincount(folds)) == [25, 26, 26, 26]


def test_rows_of_one_group_share_a_fold():
    groups = RNG.integers(0, 30, size=300)
    folds = deal_folds(groups, n_folds=5)
    assert all(len(set(folds[groups == g])) == 1 for g in set(groups))
    assert len(set(folds)) == 5


def test_classes_that_a_column_tells_are_found():
    score = probe_classes(X, LABELS == 1, folds=FOLDS)
    assert score.value == pytest.approx(np.mean(LABELS == 0) + np.mean(LABELS == 2), abs=0.1)
    assert probe_classes(X, LABELS > 1, folds=FOLDS).value > 0.9


def test_chance_is_the_commonest_class_of_the_fit_rows():
    labels = np.array(["b"] * 9 + ["a"] * 7)
    folds = np.array([0] * 8 + [1] * 8)  # fold 0 is all b; fit on it: b, fit on the other: a
    labels[0] = "a"  # two classes to fit on
    expected = (1 + 1) / 16  # fold 0 guessed a: 1 right of 8; fold 1 guessed b: 1 right of 8
    assert probe_classes(RNG.normal(size=(16, 2)), labels, folds=folds).chance == expected


def test_nothing_is_found_where_nothing_is():
    shuffled = RNG.permutation(LABELS)
    score = probe_classes(X, shuffled, folds=FOLDS)
    assert score.value == pytest.approx(score.chance, abs=0.08)


def test_a_held_out_row_never_helps_to_predict_itself():
    """A column that names each row: a probe that saw the row would read its label off it."""
    named = np.eye(40)
    labels = np.arange(40) % 2
    folds = deal_folds(np.arange(40), n_folds=4)
    assert probe_classes(named, labels, folds=folds).value < 0.7


def _ridge(x, y, penalty):
    """Standardize; then the normal equations with an unpenalized intercept."""
    x = (x - x.mean(0)) / x.std(0)
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ (y - y.mean()))


def _left_out_error(x, y, penalty):
    x = (x - x.mean(0)) / x.std(0)
    hat = x @ np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T) + 1 / len(x)
    residual = (y - hat @ y) / (1 - np.diag(hat))
    return np.mean(residual**2)


def test_values_are_predicted_by_the_ridge_of_the_normal_equations():
    y = X[:, 0] - 2 * X[:, 3] + RNG.normal(size=N)
    predicted = np.empty(N)
    for fold in range(4):
        fit = fold != FOLDS
        best = min(PENALTIES, key=lambda penalty: _left_out_error(X[fit], y[fit], penalty))
        weights = _ridge(X[fit], y[fit], best)
        scaled = (X[~fit] - X[fit].mean(0)) / X[fit].std(0)
        predicted[~fit] = y[fit].mean() + scaled @ weights
    expected = 1 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2)
    assert probe_values(X, y, folds=FOLDS).value == pytest.approx(expected, rel=1e-9)


def test_removing_the_direction_that_tells_the_class_leaves_chance():
    labels, fit = X[:, 0] > 3, FOLDS != 0  # the loudest column
    right = {}
    for skip in (0, 1):
        treat = principal_axes(X[fit]).treatment(remove=1, skip=skip)
        predicted = predict_classes(treat(X[fit]), labels[fit], treat(X[~fit]))
        right[skip] = np.mean(predicted == labels[~fit])
    assert right[0] < 0.7 and right[1] > 0.9
