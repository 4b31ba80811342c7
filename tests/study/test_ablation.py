"""The frontier of made-up runs."""

import pytest

from shrink_utils.study.ablation import place_on_sweep


def _read(scores, values, score):
    place = place_on_sweep(scores, score)
    return float(place.of(values)), place.passed


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0.5, 0.75), (0.2, 0.5), (0.4, 0.7), (0.6, 0.8), (0.7, 0.8), (0.05, 0.4)],
)
def test_a_metric_is_interpolated_on_the_score_or_that_of_the_nearest_point(score, expected):
    found, passed = _read([0.6, 0.4, 0.1], [0.80, 0.70, 0.40], score)
    assert found == pytest.approx(expected) and passed == (0.1 <= score <= 0.6)


def test_a_sweep_that_turns_back_is_read_where_it_first_passes():
    assert _read([0.6, 0.2, 0.6], [0.8, 0.4, 0.0], 0.4)[0] == pytest.approx(0.6)
