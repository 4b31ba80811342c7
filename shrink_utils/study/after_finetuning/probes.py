"""Linear probes: what a linear map can read off vectors, on rows that it was not fitted on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

PENALTIES = np.logspace(0, 5, 11)  # of standardized features; leave-one-out on the fit rows chooses


class ProbeScore(NamedTuple):
    """What the probe reaches on rows held out, and what reading nothing would reach there."""

    value: float
    chance: float


def deal_folds(groups: ArrayLike, *, n_folds: int = 4, seed: int = 0) -> np.ndarray:
    """Deal groups of rows to folds as equal in number of groups as can be, (n,).

    Parameters
    ----------
    groups : array_like, shape (n,)
        A label per row. Rows of one group share their fold, so that none of them is predicted by a
        probe that saw another: sentences for their words, word types for their occurrences.
    n_folds : int
        At least 2 and at most the number of groups, else a ``ValueError``.
    seed : int
        The deal depends on nothing else but the labels.
    """
    distinct, index = np.unique(np.asarray(groups), return_inverse=True)
    if not 2 <= n_folds <= len(distinct):
        raise ValueError(
            f"n_folds: {n_folds}, expected 2 to {len(distinct)}, the number of different groups"
        )
    dealt = np.random.default_rng(seed).permutation(np.arange(len(distinct)) % n_folds)
    return dealt[index]


def predict_classes(fit: ArrayLike, labels: ArrayLike, rows: ArrayLike) -> np.ndarray:
    """Classes (m,) of rows (m, d), by a linear probe fitted on `fit` (n, d) and `labels` (n,).

    Ridge regression on one column ±1 per class, the largest wins; features are standardized, the
    penalty is chosen by leave-one-out on the fit rows. In closed form: nothing to converge, and the
    same result every time. Where nothing can be read it falls back on the commonest class. A
    single class is a ``ValueError``. Alain & Bengio 2016.
    """
    distinct = np.unique(np.asarray(labels))
    if len(distinct) < 2:
        raise ValueError(f"labels: the rows to fit on are all of class {distinct[0]}")
    return _fitted(RidgeClassifierCV(PENALTIES), fit, labels).predict(np.asarray(rows))


def probe_classes(x: ArrayLike, labels: ArrayLike, *, folds: ArrayLike) -> ProbeScore:
    """Share of rows whose class is found, each by `predict_classes` fitted on the other folds.

    Parameters
    ----------
    x : array_like, shape (n, d)
    labels, folds : array_like, shape (n,)
        The class of each row, and its fold, as of `deal_folds`.

    Returns
    -------
    ProbeScore
        Accuracies, between 0 and 1; `chance` always says the commonest class of the fit rows.

    Raises
    ------
    ValueError
        Lengths that differ, fewer than two folds, or fit rows of a single class.
    """
    x, labels, folds = _checked(x, labels, folds, "labels")
    right, common = [], []
    for fit in _fit_rows(folds):
        classes, counts = np.unique(labels[fit], return_counts=True)
        right.append(predict_classes(x[fit], labels[fit], x[~fit]) == labels[~fit])
        common.append(classes[counts.argmax()] == labels[~fit])
    return ProbeScore(float(np.concatenate(right).mean()), float(np.concatenate(common).mean()))


def probe_values(x: ArrayLike, values: ArrayLike, *, folds: ArrayLike) -> ProbeScore:
    """R² of a linear probe for a number, each row predicted by a probe fitted on the other folds.

    Parameters
    ----------
    x, folds
        As in `probe_classes`.
    values : array_like, shape (n,)
        The number of each row.

    Returns
    -------
    ProbeScore
        `value` = 1 − Σ(y − ŷ)² / Σ(y − ȳ)² over all rows; at most 1, and negative when the probe
        does worse than the mean ȳ of all rows. `chance` is the same of predicting the mean of the
        fit rows: 0 or just below.

    Raises
    ------
    ValueError
        Lengths that differ, fewer than two folds, or values that are all equal.
    """
    x, values, folds = _checked(x, np.asarray(values, dtype=float), folds, "values")
    spread = np.square(values - values.mean()).sum()
    if spread == 0:
        raise ValueError(f"values: all {len(values)} are equal, there is nothing to explain")
    missed = guessed = 0.0
    for fit in _fit_rows(folds):
        predicted = _fitted(RidgeCV(PENALTIES), x[fit], values[fit]).predict(x[~fit])
        missed += np.square(predicted - values[~fit]).sum()
        guessed += np.square(values[fit].mean() - values[~fit]).sum()
    return ProbeScore(float(1 - missed / spread), float(1 - guessed / spread))


def _checked(x: ArrayLike, targets: ArrayLike, folds: ArrayLike, name: str) -> tuple:
    x, targets, folds = (np.asarray(given) for given in (x, targets, folds))
    for what, given in ((name, targets), ("folds", folds)):
        if given.shape != x.shape[:1]:
            raise ValueError(f"{what}: shape {given.shape}, expected one a row of x, {x.shape}")
    if len(np.unique(folds)) < 2:
        raise ValueError("folds: a single one, expected at least 2")
    return x.astype(np.float64), targets, folds


def _fit_rows(folds: np.ndarray) -> list[np.ndarray]:
    """For each fold a mask, (n,), of the rows outside it."""
    return [folds != fold for fold in np.unique(folds)]


def _fitted(ridge, x: ArrayLike, targets: ArrayLike) -> Pipeline:
    return make_pipeline(StandardScaler(), ridge).fit(np.asarray(x), np.asarray(targets))
