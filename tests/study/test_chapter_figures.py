"""Figures of the chapters hold the numbers of the tables that they are given."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from shrink_utils.paths import data_dir
from shrink_utils.study import load_profile
from shrink_utils.study.contextuality.figures import (
    like_gpt2,
)
from shrink_utils.study.diagnose import recorded_layers
from shrink_utils.study.similarity.figures import NAMES

RNG = np.random.default_rng(0)


@pytest.fixture
def table():
    """Two seeds of arm none, three layers, all pairs, every measure."""
    rows = list(product(("finetuned", "null", "low", "high"), (0, 1), NAMES, range(3), range(3)))
    table = pd.DataFrame(rows, columns=["pair", "seed", "measure", "layer", "other"])
    return table.assign(arm="none", value=RNG.uniform(size=len(rows)))


def test_gpt2_meets_its_own_criteria_and_bert_does_not():
    published = pd.read_csv(data_dir() / "published" / "avgsim_layers.csv")
    table = like_gpt2(published.rename(columns={"avg_sim": "AvgSim"}))
    assert table.loc["gpt2", ["always_high", "jumps_last"]].all()
    assert not table.loc["bert-base-cased", ["always_high", "jumps_last"]].any()


def test_what_chapter_02_says_of_the_record_holds():
    layers = pd.read_csv(recorded_layers(load_profile("models")))
    assert set(layers.model) == {"minilm", "mpnet", "gemma"}
    curves = {model: rows.sort_values("layer").AvgSim for model, rows in layers.groupby("model")}
    gemma = curves.pop("gemma").to_numpy()
    assert (gemma[1:-1] > 0.5).all() and max(gemma[0], gemma[-1]) < 0.5
    for curve in curves.values():  # a low cone that grows, and opens at the last layer
        assert curve.max() < 0.3 and curve.iloc[-1] < curve.iloc[-2] / 2
        assert curve.idxmax() == curve.index[-2]
