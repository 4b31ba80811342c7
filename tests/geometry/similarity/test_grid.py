"""A grid is its measure, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils.geometry import cca, cka, pwcca, rsa, similarity_grid, svcca
from shrink_utils.geometry.similarity import MEASURES

FUNCTIONS = {
    "rsa": rsa,
    "cca": lambda x, y: float(cca(x, y).mean()),
    "svcca": svcca,
    "pwcca": pwcca,
    "cka": cka,
    "cka_debiased": lambda x, y: cka(x, y, debiased=True),
}


@pytest.fixture
def models():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(40, 6))

    def layers(count):
        return [base @ rng.normal(size=(6, 5)) + rng.normal(size=(40, 5)) for _ in range(count)]

    return layers(3), layers(2)


def test_every_measure_has_its_function_here():
    assert set(FUNCTIONS) == set(MEASURES)


@pytest.mark.parametrize("measure", FUNCTIONS)
def test_entries_are_the_measure_of_the_pair(models, measure):
    xs, ys = models
    expected = [[FUNCTIONS[measure](x, y) for y in ys] for x in xs]
    found = similarity_grid(measure, xs, ys)
    assert found.shape == (3, 2) and found.dtype == torch.float64
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("measure", FUNCTIONS)
def test_one_model_is_compared_with_itself(models, measure):
    xs, _ = models
    found = similarity_grid(measure, torch.tensor(np.stack(xs)))
    np.testing.assert_allclose(found.diagonal(), np.ones(3), rtol=0, atol=1e-12)
    np.testing.assert_allclose(found, similarity_grid(measure, xs, xs), rtol=0, atol=1e-12)


def test_every_layer_is_prepared_once(models, monkeypatch):
    calls = []
    kind = MEASURES["cka"]
    counting = kind._replace(prepare=lambda x, name: calls.append(name) or kind.prepare(x, name))
    monkeypatch.setitem(MEASURES, "cka", counting)
    similarity_grid("cka", *models)
    assert calls == ["xs[0]", "xs[1]", "xs[2]", "ys[0]", "ys[1]"]


def test_errors_name_the_layer(models):
    xs, ys = models
    with pytest.raises(ValueError, match=r"ys\[1\] of shape \(40, 5\) has no variance"):
        similarity_grid("cka", xs, [ys[0], np.ones((40, 5))])


def test_a_misspelt_measure_is_refused(models):
    with pytest.raises(ValueError, match=r"no measure 'pwca', did you mean 'pwcca'"):
        similarity_grid("pwca", *models)


@pytest.mark.parametrize("layers", [([], None), ([np.eye(5)], [])])
def test_no_layers_are_refused(layers):
    with pytest.raises(ValueError, match="at least one layer each"):
        similarity_grid("cka", *layers)
