"""Figures of the chapters hold the numbers of the tables that they are given."""

from __future__ import annotations

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.contextuality.figures import (
    like_gpt2,
)


def test_gpt2_meets_its_own_criteria_and_bert_does_not():
    published = pd.read_csv(data_dir() / "published" / "avgsim_layers.csv")
    table = like_gpt2(published.rename(columns={"avg_sim": "AvgSim"}))
    assert table.loc["gpt2", ["always_high", "jumps_last"]].all()
    assert not table.loc["bert-base-cased", ["always_high", "jumps_last"]].any()
