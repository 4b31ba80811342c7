"""Figures are closed after each test."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from shrink_utils.study.figures import use_house_style


@pytest.fixture(autouse=True)
def _figures():
    use_house_style()
    yield
    plt.close("all")
