"""Families: small models trained here (random weights do), and folders in place of a hub."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from transformers import GPTNeoXConfig, GPTNeoXModel

from shrink_utils.geometry import cka
from shrink_utils.models import hidden_states, load_encoder
from shrink_utils.models._loading import quiet, seeded
from shrink_utils.study import load_profile
from shrink_utils.study.sizes import Family
from shrink_utils.study.stitching import family as module
from shrink_utils.study.stitching.family import family_models, measure_family
from shrink_utils.text import load_pairs
from tests.study.stitching.test_stitched import random_run

N = 32


@pytest.fixture(scope="module")
def local_profile():
    smoke = load_profile("smoke")
    family = Family(widths=(16, 24), depths=(2, 3), sentences=N)
    return replace(
        smoke, family=family, pretraining=replace(smoke.pretraining, seeds=(0, 1), max_length=16)
    )


@pytest.fixture(scope="module")
def local(local_profile):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "train_or_load", random_run)
        return measure_family.__wrapped__(local_profile)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two members in Hugging Face's layout, of Pythia's architecture."""
    tokenizer = load_encoder("tiny-random").tokenizer
    names = []
    for seed, (width, depth) in enumerate([(16, 2), (24, 4)]):
        config = GPTNeoXConfig(
            vocab_size=len(tokenizer),
            hidden_size=width,
            num_hidden_layers=depth,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
        )
        folder = tmp_path_factory.mktemp("family") / f"neox-{width}"
        with quiet(), seeded(seed):
            GPTNeoXModel(config).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        names.append(str(folder))
    return tuple(names)


@pytest.fixture
def hub_profile(local_profile, folders):
    return replace(local_profile, family=Family(members=folders, sentences=N))


def test_members_are_in_order_of_size_and_none_is_loaded_beforehand(local_profile, monkeypatch):
    monkeypatch.setattr(module, "train_or_load", None)
    models = family_models(local_profile)
    assert [model.member for model in models[::4]] == ["2 × 16", "3 × 24"]
    assert [(m.seed, m.weights) for m in models[:4]] == [
        (0, "trained"),
        (0, "untrained"),
        (1, "trained"),
        (1, "untrained"),
    ]


def test_every_relation_has_its_layers(local):
    counts = local.groupby(["relation", "weights"]).size().to_dict()
    assert counts == {
        ("within", "trained"): 2 * (9 + 16),
        ("within", "untrained"): 2 * (9 + 16),
        ("members", "trained"): 2 * 12,
        ("members", "untrained"): 2 * 3,
        ("seeds", "trained"): 3 + 4,
    }
    assert (local[local.relation == "members"].seed == 0).sum() == 12 + 3


def test_a_model_is_like_itself(local):
    within = local[(local.relation == "within") & (local.layer == local.other_layer)]
    np.testing.assert_allclose(within.cka, 1, atol=1e-12)
    assert (local[local.relation != "within"].cka < 0.999).all()


def test_members_of_a_hub_are_compared_by_debiased_cka_of_sentences(hub_profile, folders):
    found = measure_family.__wrapped__(hub_profile)
    assert set(found.member) | set(found.other) == {"neox-16", "neox-24"}
    assert set(found.seed) == {0} and "seeds" not in set(found.relation)
    texts = load_pairs(hub_profile.pretraining.source)["held_out"]["text"][:N]
    small, large = (
        hidden_states(load_encoder(name), texts, pooling="mean", max_length=64) for name in folders
    )
    trained = found[(found.relation == "members") & (found.weights == "trained")]
    value = trained[(trained.layer == 1) & (trained.other_layer == 3)].cka.item()
    assert value == pytest.approx(cka(small[1], large[3], debiased=True), abs=1e-6)
    untrained = found[(found.relation == "members") & (found.weights == "untrained")]
    assert [*zip(untrained.layer, untrained.other_layer, strict=True)] == [(0, 0), (1, 2), (2, 4)]


def test_one_model_is_in_memory_at_a_time(hub_profile, monkeypatch):
    alive: list[weakref.ref] = []

    def watched(load):
        def loading(name, **options):
            gc.collect()
            assert not [ref for ref in alive if ref() is not None]
            encoder = load(name, **options)
            alive.append(weakref.ref(encoder.model))
            return encoder

        return loading

    monkeypatch.setattr(module, "load_encoder", watched(module.load_encoder))
    monkeypatch.setattr(module, "random_encoder", watched(module.random_encoder))
    measure_family.__wrapped__(hub_profile)
    assert len(alive) == 4


def test_a_family_needs_a_depth_for_every_width():
    with pytest.raises(ValueError, match="widths and depths: one of each a member"):
        Family(widths=(16, 24), depths=(2,), sentences=8)
