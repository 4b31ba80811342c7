"""The forest plot shows what the table holds."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

from shrink_utils.study.claims.claim import Claim, evaluate
from shrink_utils.study.claims.forest import VERDICT_STYLE, forest


@pytest.fixture
def claims():
    def claim(name, arm="", published=None):
        return Claim(
            id=name,
            source="X",
            statement=f"says {name}",
            direction="less",
            arm=arm,
            published=published,
        )

    differences = {"a": [-3.0, -3.1, -2.9], "b": [-1.0, 1.0], "c": [2.0, 2.1, 2.2]}
    claimed = [claim("a", published=-2.5), claim("b", arm="all"), claim("c")]
    return evaluate(claimed, lambda c: differences[c.id])


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_every_claim_is_a_line_from_top_to_bottom_with_its_verdicts_symbol(claims):
    ax = forest(claims, xlabel="difference").axes[0]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["says c", "says b · all", "says a"]
    points = [line for line in ax.lines if len(line.get_xdata()) == 1 and line.get_marker() != "|"]
    assert [line.get_marker() for line in points] == ["X", "s", "o"]
    assert [float(line.get_xdata()[0]) for line in points] == pytest.approx([2.1, 0.0, -3.0])


def test_intervals_run_from_low_to_high(claims):
    ax = forest(claims, xlabel="difference").axes[0]
    drawn = [tuple(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2][:3]
    assert drawn == [(row.low, row.high) for row in claims[::-1].itertuples()]


def test_the_papers_number_is_drawn_where_there_is_one_and_explained(claims):
    fig = forest(claims, xlabel="difference")
    bars = [
        line for line in fig.axes[0].lines if line.get_marker() == "|" and len(line.get_xdata())
    ]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in bars] == [(-2.5, 2)]
    assert "the paper, or its mean" in {t.get_text() for t in fig.legends[0].get_texts()}
    without = forest(claims.iloc[1:], xlabel="difference")
    assert {t.get_text() for t in without.legends[0].get_texts()} == set(VERDICT_STYLE)


def test_no_claims_are_refused(claims):
    with pytest.raises(ValueError, match="claims: empty"):
        forest(claims.iloc[:0], xlabel="difference")
