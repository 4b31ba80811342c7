"""Treatments before a probe, on clouds in which one direction holds the class."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils.geometry import nearest_centre, principal_axes
from shrink_utils.study.finetuned.probes import deal_folds, predict_classes
from shrink_utils.study.finetuned.treated import (
    REMOVED,
    cluster_axes,
    treated_accuracies,
    treatments,
)


def _cloud(n=400, d=30, loud=8.0):
    """The longest direction tells the class; the others are noise."""
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[:, 3] *= loud
    return x, (x[:, 3] > 0).numpy()


@pytest.fixture(scope="module")
def table():
    found = treated_accuracies(*_cloud())
    return found.set_index(["treatment", "removed", "skipped"]).value


def test_every_removal_has_its_control(table):
    expected = {("untreated", 0, 0), ("commonest", 0, 0)}
    for name in ("global", "clusters"):
        expected |= {(name, 0, 0), *((name, k, skip) for k in REMOVED for skip in (0, k))}
    assert set(table.index) == expected


def test_removing_the_direction_of_the_class_loses_it_and_removing_the_next_does_not(table):
    for k in REMOVED:
        assert table["global", k, 0] < 0.65
        assert table["global", k, k] > 0.85


def test_subtracting_the_mean_costs_a_linear_probe_nothing(table):
    assert table["global", 0, 0] == table["untreated", 0, 0] > 0.85


def test_an_accuracy_is_the_share_of_rows_that_the_other_half_gets_right(table):
    x, labels = _cloud()
    folds = deal_folds(np.arange(400), n_folds=2)
    right = []
    for fold in (0, 1):
        fit, rest = folds != fold, folds == fold
        treat = principal_axes(x[fit]).treatment(remove=3, skip=3)
        right.append(predict_classes(treat(x[fit]), labels[fit], treat(x[rest])) == labels[rest])
    assert table["global", 3, 3] == pytest.approx(np.mean(right))


def test_the_commonest_class_is_that_of_the_rows_fitted_on(table):
    _, labels = _cloud()
    folds = deal_folds(np.arange(400), n_folds=2)
    hits = [labels[folds == f] == (labels[folds != f].mean() > 0.5) for f in (0, 1)]
    assert table["commonest", 0, 0] == pytest.approx(np.mean(hits))


def test_removals_that_few_rows_do_not_allow_are_left_out():
    removals = {key[1] for key in treatments(_cloud(n=15)[0])}
    assert removals == {0, 1, 3}


def test_clusters_are_treated_each_by_itself():
    x, _ = _cloud()
    own = cluster_axes(x, rank=2 * max(REMOVED))
    assert len(own.means) > 1
    for k in (0, *REMOVED):
        assert torch.equal(treatments(x)["clusters", k, 0](x), own.treatment(remove=k)(x))


def test_clusters_are_as_many_as_leave_each_with_enough_rows():
    x, _ = _cloud(n=90)
    axes = cluster_axes(x, rank=20)
    sizes = torch.bincount(nearest_centre(x, axes.centres))
    assert 1 < len(sizes) <= 4 and sizes.min() >= 21


def test_too_few_rows_for_two_clusters_are_one_cloud():
    x, _ = _cloud(n=30)
    assert len(cluster_axes(x, rank=20).means) == 1


def test_a_tight_small_cluster_is_merged_and_not_fitted_alone():
    x = torch.cat([_cloud(n=100)[0], 1e3 + _cloud(n=3)[0]])
    assert len(cluster_axes(x, rank=9, most=2).means) == 1


def test_another_seed_deals_other_halves(table):
    other = treated_accuracies(*_cloud(), seed=1).set_index(["treatment", "removed", "skipped"])
    assert not other.value.equals(table)


def test_the_same_cloud_gives_the_same_table_again(table):
    again = treated_accuracies(*_cloud()).set_index(["treatment", "removed", "skipped"]).value
    assert again.equals(table)
