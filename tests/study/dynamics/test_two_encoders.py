"""The two encoders' table against the measures, on tiny models."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from shrink_utils.geometry import affine, avg_sim, cka, intra_sim, procrustes, pwcca, rsa, self_sim
from shrink_utils.models import word_states
from shrink_utils.study import load_profile, scratch_encoder
from shrink_utils.study.dynamics.two_encoders import Trained, encoder_runs, measure_two_encoders
from shrink_utils.study.similarity.layers import matched_layers
from shrink_utils.text import load_pairs


def _pwcca(x, y):
    with warnings.catch_warnings():  # a LayerNorm as it begins leaves one direction out
        warnings.filterwarnings("ignore", message=".*linearly independent")
        return pwcca(x, y)


@pytest.fixture(scope="module")
def profile():
    smoke = load_profile("smoke")
    return replace(
        smoke, name="tiny", pretraining=replace(smoke.pretraining, steps=2, seeds=(0, 1))
    )


@pytest.fixture(scope="module")
def measured(profile, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHRINK_RESULTS_DIR", str(tmp_path_factory.mktemp("results")))
        table, runs = measure_two_encoders(profile), encoder_runs(profile)
    texts = load_pairs(profile.pretraining.source, n=profile.pretraining.sentences)["held_out"]
    texts = texts["text"][: profile.diagnostic_sentences]
    words = {
        name: word_states(scratch_encoder(run), texts, max_length=profile.pretraining.max_length)
        for name, run in runs.items()
    }
    return table, words


def test_each_encoder_has_its_contextuality(measured, profile):
    table, words = measured
    name = Trained("mt", 1)
    states = words[name]
    single = table[(table.front == "mt") & (table.front_seed == 1) & (table.back == "")]
    found = single[single.layer == 2].set_index("quantity").value
    x = states.vectors[2]
    average = avg_sim(x, groups=states.sentence).value
    expected = {
        "avg_sim": average,
        "self_sim": self_sim(x, states.word, sentences=states.sentence).value,
        "self_sim_null": average,
        "intra_sim": intra_sim(x, states.sentence).value,
        "intra_sim_null": intra_sim(x, states.sentence).null,
    }
    assert found.to_dict() == pytest.approx(expected)
    assert len(table[table.back == ""]) == 4 * 3 * 5


def test_similarities_are_of_the_sentences_that_maps_were_not_fitted_on(measured):
    table, words = measured
    x, y = matched_layers(words[Trained("mlm", 0)], words[Trained("mt", 1)])
    a, b = x.words[1].double(), y.words[1].double()
    fit = x.sentence % 2 == 0
    held_out = x.sentence[~fit]
    order = np.unique(held_out.numpy(), return_inverse=True)[1]

    def means(rows):
        return np.stack([rows.numpy()[order == s].mean(axis=0) for s in range(order.max() + 1)])

    carried = {
        "none": a[~fit],
        "orthogonal": procrustes(a[fit], b[fit])(a[~fit]),
        "affine": affine(a[fit], b[fit])(a[~fit]),
    }
    keys = {"front": "mlm", "front_seed": 0, "back": "mt", "back_seed": 1, "layer": 1}
    rows = table[np.logical_and.reduce([table[k] == v for k, v in keys.items()])]
    found = rows.set_index(["quantity", "map"]).value
    for name, moved in carried.items():
        expected = cka(moved, b[~fit], debiased=True)
        assert found["cka_debiased", name] == pytest.approx(expected, abs=1e-6)
        assert found["pwcca", name] == pytest.approx(_pwcca(moved, b[~fit]), abs=1e-6)
        assert found["rsa", name] == pytest.approx(rsa(means(moved), means(b[~fit])), abs=1e-4)
