"""Figures of chapter 12 hold the numbers of the tables that they are given."""

from __future__ import annotations

import numpy as np
import pandas as pd

from shrink_utils.study.language import figures


def test_the_median_and_its_bounds_are_order_statistics():
    assert figures._median(pd.Series(range(1, 41))) == (14, 20.5, 27)
    assert figures._median(pd.Series([3.0, 1.0, np.inf])) == (1, 3, np.inf)


def test_divergences_are_shares_of_both_layers_nulls():
    table = pd.DataFrame(
        {
            "pair": ["null", "null", "itself"],
            "measure": "rtd",
            "layer": [0, 1, 0],
            "other": [0, 1, 1],
            "value": [10.0, 30.0, 5.0],
        }
    )
    assert figures.shares_of_null(table).value.tolist() == [1, 1, 0.25]
