"""Claims on topology, on made-up sweeps in which the truth is known."""

from __future__ import annotations

import pandas as pd
import pytest

from shrink_utils.study.claims.stl import MARGIN
from shrink_utils.study.claims.topology import OTHERS, topology_claims
from shrink_utils.study.finetuned.frontier import frontier_table, metric_at, sweep_of
from shrink_utils.study.intervals import paired_interval
from shrink_utils.training import ARMS

WEIGHTS = (0.5, 1.0, 2.0)
SHIFT = {0: -0.004, 1: 0.001, 2: 0.003}  # of a seed, the same in every arm


def _frontier(slopes, *, scores, seeds=SHIFT, noise=0.0):
    """Metric 0.8 − slope · (score of none − score) of every arm; scores by weight."""
    rows = []
    for seed in seeds:
        for arm, slope in {"none": 0.0, **slopes}.items():
            for weight, score in zip(
                (1.0,) if arm == "none" else WEIGHTS,
                (0.6,) if arm == "none" else scores[arm],
                strict=True,
            ):
                wobble = noise * SHIFT[seed] * (1 + weight) * (1 if arm == "prominent" else -1)
                rows.append(
                    {
                        "model": "minilm",
                        "task": "sentiment_movies",
                        "arm": arm,
                        "weight": weight,
                        "seed": seed,
                        "centred_1": score + SHIFT[seed] + wobble,
                        "raw_1": 0.5,
                        "metric": "accuracy",
                        "value": 0.8 - slope * (0.6 - score) + SHIFT[seed],
                    }
                )
    return frontier_table(pd.DataFrame(rows))


def _row(table, name, other):
    return table.set_index("claim").loc[f"topology:{name}:minilm:sentiment_movies:{other}"]


STRONG, WEAK = (0.5, 0.4, 0.3), (0.58, 0.55, 0.5)


@pytest.fixture
def table():
    """Prominent bars cost less at equal anisotropy than random ones, and more than cosine."""
    return topology_claims(
        _frontier(
            {"prominent": 0.2, "random": 0.5, "cosine": 0.0},
            scores={"prominent": STRONG, "random": STRONG, "cosine": WEAK},
            noise=0.5,
        )
    )


def test_every_other_arm_has_three_claims(table):
    assert len(table) == 2 * 3 and table.claim.is_unique
    assert set(table.source) == {"ours"} and set(table.arm) == {"prominent"}
    assert table.claim.str.startswith("topology:").all()
    assert set(table.unit) == {"seeds"} and set(table.n) == {3}


def test_a_weaker_penalty_lowers_the_score_less(table):
    row = _row(table, "lowers-more", "cosine")
    assert row.estimate == pytest.approx(0.4 - 0.55) and row.verdict == "replicated"


def test_equally_strong_bars_do_not_decide(table):
    row = _row(table, "lowers-more", "random")
    assert row.estimate == pytest.approx(0.0, abs=1e-12) and row.verdict == "inconclusive"


def test_the_metric_at_equal_weight_may_lose_the_margin():
    table = topology_claims(
        _frontier(
            {"prominent": 0.2, "random": 0.5, "all": 0.0},
            scores={"prominent": STRONG, "random": STRONG, "all": STRONG},
        )
    )
    better, worse = (_row(table, "metric-no-worse", other) for other in ("random", "all"))
    assert better.estimate == pytest.approx(0.3 * 0.2) and better.verdict == "replicated"
    assert worse.estimate == pytest.approx(-0.2 * 0.2) and worse.verdict == "not replicated"
    assert worse.estimate < -MARGIN and f"(by {MARGIN})" in worse.statement


def test_matched_arms_are_compared_at_the_score_that_prominent_bars_reach():
    """At its own weights `all` is milder: 0.4 lies between its last two scores."""
    table = topology_claims(
        _frontier(
            {"prominent": 0.2, "all": 0.5}, scores={"prominent": STRONG, "all": (0.55, 0.45, 0.3)}
        )
    )
    row = _row(table, "matched", "all")
    assert row.estimate == pytest.approx(0.3 * (0.6 - 0.4)) and row.verdict == "replicated"
    assert "nearest" not in row.statement


def test_arms_are_matched_seed_by_seed():
    frontier = _frontier(
        {"prominent": 0.2, "random": 0.5},
        scores={"prominent": STRONG, "random": STRONG},
        noise=5.0,
    )
    row = _row(topology_claims(frontier), "matched", "random")
    differences = []
    for _, rows in frontier.groupby("seed"):
        ours = rows[(rows.arm == "prominent") & (rows.weight == 1.0)].iloc[0]
        differences.append(ours.value - metric_at(sweep_of(rows, "random"), ours.centred_1).value)
    assert len({round(d, 6) for d in differences}) == 3
    assert (row.estimate, row.low) == pytest.approx(paired_interval(differences)[:2])


def test_a_false_claim_is_not_replicated():
    """Where random bars cost nothing, prominent ones are not what helps."""
    table = topology_claims(
        _frontier({"prominent": 0.2, "random": 0.0}, scores={"prominent": STRONG, "random": STRONG})
    )
    row = _row(table, "matched", "random")
    assert row.estimate == pytest.approx(-0.2 * 0.2) and row.verdict == "not replicated"


def test_an_arm_that_never_comes_so_low_is_taken_at_its_nearest_point(table):
    row = _row(table, "matched", "cosine")
    assert "(none does in 3 of 3 seeds: the nearest is taken)" in row.statement
    assert row.estimate == pytest.approx(-0.2 * 0.2)  # cosine costs nothing anywhere


def test_an_arm_that_was_not_run_at_the_weight_is_matched_all_the_same():
    frontier = _frontier(
        {"prominent": 0.2, "random": 0.5}, scores={"prominent": STRONG, "random": STRONG}
    )
    without = frontier[(frontier.arm != "random") | (frontier.weight != 1.0)]
    table = topology_claims(without)
    assert table.claim.str.split(":").str[1].tolist() == ["matched"]
    assert table.estimate[0] == pytest.approx(0.3 * 0.2)


def test_another_weight_can_be_asked_for():
    frontier = _frontier(
        {"prominent": 0.2, "cosine": 0.0}, scores={"prominent": STRONG, "cosine": WEAK}
    )
    row = _row(topology_claims(frontier, weight=2.0), "lowers-more", "cosine")
    assert row.estimate == pytest.approx(0.3 - 0.5) and "at weight 2 each" in row.statement


def test_pairs_are_matched_by_seed_and_not_by_order():
    frontier = _frontier(
        {"prominent": 0.2, "random": 0.5},
        scores={"prominent": STRONG, "random": STRONG},
        noise=0.5,
    )
    again = topology_claims(frontier.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(again, topology_claims(frontier), rtol=1e-9)


def test_a_missing_seed_is_an_error():
    frontier = _frontier(
        {"prominent": 0.2, "random": 0.5}, scores={"prominent": STRONG, "random": STRONG}
    )
    lacking = frontier[(frontier.arm != "random") | (frontier.seed != 1)]
    with pytest.raises(ValueError, match=r"random lacks the seeds \[1\] of prominent on minilm"):
        topology_claims(lacking)


def test_without_a_sweep_or_prominent_bars_there_are_no_claims():
    frontier = _frontier({"random": 0.5}, scores={"random": STRONG})
    for table in (topology_claims(frontier), topology_claims(frontier.iloc[:0])):
        assert table.empty and "verdict" in table


def test_all_the_arms_that_it_names_exist():
    assert set(OTHERS) < set(ARMS)
