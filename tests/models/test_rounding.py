"""A rounding replicate moves every weight by rounding, and without a seed nothing at all."""

import pytest
import torch

from shrink_utils.models import (
    Trunk,
    load_classifier,
    load_encoder,
    new_pair_classifier,
    random_encoder,
    scratch_model,
    with_new_head,
)
from shrink_utils.paths import rounding_seed
from shrink_utils.study.profiles import load_profile
from shrink_utils.study.results import result_key

SIZES = {"vocab_size": 60, "max_length": 12, "seed": 0}
TRUNK = Trunk(width=16, depth=1, heads=2, dropout=0.0)
MODELS = {
    "an encoder": lambda: load_encoder("tiny-random").model,
    "random weights": lambda: random_encoder("tiny-random", seed=3).model,
    "a classifier": lambda: load_classifier("tiny-random", n_labels=2, seed=0)[0],
    "a language model": lambda: scratch_model(TRUNK, "clm", **SIZES),
    "a translation model": lambda: scratch_model(TRUNK, "mt", **SIZES),
    "a pair classifier": lambda: new_pair_classifier(TRUNK, **SIZES),
    "a new head": lambda: with_new_head(new_pair_classifier(TRUNK, **SIZES), seed=1),
}
FEW = {torch.float32: 1e-6, torch.float64: 1e-13}


def _weights(model):
    return {name: weights.clone() for name, weights in model().state_dict().items()}


@pytest.fixture(params=MODELS)
def model(request, monkeypatch):
    monkeypatch.delenv("SHRINK_ROUNDING_SEED", raising=False)
    return MODELS[request.param]


def test_without_a_seed_no_bit_of_a_weight_or_key_changes(model, monkeypatch):
    as_always, key = _weights(model), result_key("run", code="code")
    folder = load_profile("quick").folder
    monkeypatch.setenv("SHRINK_ROUNDING_SEED", "")
    assert all(torch.equal(w, as_always[name]) for name, w in _weights(model).items())
    assert result_key("run", code="code") == key and load_profile("quick").folder == folder


def test_with_a_seed_every_weight_moves_by_rounding_alone(model, monkeypatch):
    as_always = _weights(model)
    state = torch.get_rng_state()
    monkeypatch.setenv("SHRINK_ROUNDING_SEED", "1")
    moved, again = _weights(model), _weights(model)
    assert torch.equal(state, torch.get_rng_state())
    monkeypatch.setenv("SHRINK_ROUNDING_SEED", "2")
    other = _weights(model)
    for name, before in as_always.items():
        if before.is_floating_point() and before.count_nonzero() > 1:
            apart = (moved[name] / before - 1)[before != 0].abs()
            assert 0 < apart.max() < 12 * FEW[before.dtype], name
            assert not torch.equal(moved[name], other[name]), name
        assert torch.equal(moved[name], again[name]), name


def test_a_head_stands_on_the_same_encoder(monkeypatch):
    monkeypatch.setenv("SHRINK_ROUNDING_SEED", "1")
    bare = load_encoder("tiny-random").model.state_dict()
    headed = load_classifier("tiny-random", n_labels=2, seed=0)[0].base_model.state_dict()
    assert all(torch.equal(headed[name], weights) for name, weights in bare.items())


def test_a_replicate_is_kept_apart_from_the_study(monkeypatch):
    monkeypatch.delenv("SHRINK_ROUNDING_SEED", raising=False)
    key, folder = result_key("run", code="code"), load_profile("quick").folder
    monkeypatch.setenv("SHRINK_ROUNDING_SEED", "7")
    assert result_key("run", code="code") != key
    assert load_profile("quick").folder.name == f"{folder.name}-rounding7"


@pytest.mark.parametrize("given", ["one", "-1", "1.5"])
def test_a_seed_that_is_no_number_is_refused(given, monkeypatch):
    monkeypatch.setenv("SHRINK_ROUNDING_SEED", given)
    with pytest.raises(ValueError, match=r"SHRINK_ROUNDING_SEED.*whole number"):
        rounding_seed()
