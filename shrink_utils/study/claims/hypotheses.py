"""The hypotheses of docs/preregistration.md, decided on the runs on record."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from shrink_utils.study.ablation import place_on_sweep
from shrink_utils.study.statistics import two_way_variance

PLAN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SMOOTH = 5  # steps of the mean that tells an onset
FULL_BATCH = 64
WIDE_AT_MOST = 3  # hypotheses, or seeds are added
Tables = Mapping[str, pd.DataFrame]


class Differences(NamedTuple):
    """Paired differences of a hypothesis: (seeds,), or (seeds, rows) of correctness."""

    values: np.ndarray
    nearest: float = 0.0  # share of the seeds whose sweep does not pass the score


class Mean(NamedTuple):
    """A mean difference, its standard error and degrees of freedom."""

    estimate: float
    error: float
    freedom: int
    of_rows: float = 0.0  # part of the squared error that more seeds do not reduce


def decide(tables: Tables) -> pd.DataFrame:
    """Test the hypotheses as the page says.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Of `records.recorded`: ``runs``, ``steps`` and ``correct`` are read.

    Returns
    -------
    DataFrame
        One row per hypothesis: id, statement, estimate, the simultaneous interval (low, high), n
        (seeds), p (one-sided), holm (adjusted), verdict ("supported", "contradicted",
        "equivalent", "open", "not tested"), seeds_needed (of an open one), nearest.

    References
    ----------
    Holm 1979, *A simple sequentially rejective multiple test procedure*. Cameron, Gelbach & Miller
    2011, *Robust inference with multiway clustering*.
    """
    rows = [_tested(hypothesis, tables) for hypothesis in PLAN["hypothesis"]]
    table = pd.DataFrame(rows)
    table["holm"] = holm(table.p)
    margins = [margin_of(hypothesis) for hypothesis in PLAN["hypothesis"]]
    table["verdict"] = [
        _verdict(row, h["direction"], margin)
        for row, h, margin in zip(table.itertuples(), PLAN["hypothesis"], margins, strict=True)
    ]
    table["seeds_needed"] = [
        _seeds_needed(row, h, margin) if row.verdict == "open" else math.nan
        for row, h, margin in zip(table.itertuples(), PLAN["hypothesis"], margins, strict=True)
    ]
    names = "id statement estimate low high n p holm verdict seeds_needed nearest"
    return table[names.split()]


def too_wide(spreads: pd.DataFrame) -> str:
    """What the widths of `blinded_spreads` mean for the number of seeds."""
    wide = spreads.id[(spreads.width > 2 * spreads.margin) & ~spreads.id.isin(["H11", "H12"])]
    decision = "ten seeds are added" if len(wide) > WIDE_AT_MOST else "twenty seeds stay"
    return f"{len(wide)} of H1 to H10 are wider than two margins: {decision}"


def blinded_spreads(tables: Tables) -> pd.DataFrame:
    """Standard deviations of the paired differences of seeds, without their means and signs.

    Returns
    -------
    DataFrame
        Columns id, n, sd, ``width`` (of the simultaneous interval that twenty seeds would give) and
        ``margin``. Seeds are added where more than three of H1 to H10 are wider than two margins.
    """
    rows = []
    for hypothesis in PLAN["hypothesis"]:
        values = differences(hypothesis, tables).values
        by_seed = values.mean(axis=1) if values.ndim == 2 else values
        sd, margin = float(by_seed.std(ddof=1)), margin_of(hypothesis)
        width = 2 * stats.t.isf(_simultaneous() / 2, 19) * sd / math.sqrt(20)
        rows.append({"id": hypothesis["id"], "n": len(by_seed), "sd": sd, "width": width})
        rows[-1]["margin"] = margin
    return pd.DataFrame(rows)


def holm(p: pd.Series) -> pd.Series:
    """P values adjusted by Holm's method; NaN, of what was not tested, stays and counts as one."""
    from statsmodels.stats.multitest import multipletests  # a second to import

    return pd.Series(multipletests(p.fillna(1.0), method="holm")[1], p.index).where(p.notna())


def margin_of(hypothesis: dict) -> float:
    """The margin of its quantity; infinity of the onset, which has none."""
    kind = {"matched": "accuracy", "level": "score"}.get(q := hypothesis["quantity"], q)
    return PLAN["margins"].get(kind, math.inf)


def differences(hypothesis: dict, tables: Tables) -> Differences:
    """The paired differences that a hypothesis is about, seeds in order."""
    task, of, minus = (hypothesis[name] for name in ("task", "of", "minus"))
    match hypothesis["quantity"]:
        case "score":
            score = scores(tables, task, PLAN["grid_epochs"])
            return Differences((score[of] - score[minus]).dropna().to_numpy())
        case "level":
            score = scores(tables, task, PLAN["long_epochs"])
            return Differences((score[of] - score[minus]).dropna().to_numpy())
        case "onset":
            onset = onsets(tables, task)
            return Differences((onset[of] - onset[minus]).dropna().to_numpy())
        case "accuracy":
            one, other = (_correct(tables, task, arm, 1.0) for arm in (of, minus))
            return Differences((one - other).dropna().to_numpy())
        case "matched":
            return _matched(tables, task, of, minus)
        case other:
            raise ValueError(
                f"quantity: {other!r} is none of score, level, onset, accuracy, matched"
            )


def scores(tables: Tables, task: str, epochs: int, *, weight: float = 1.0) -> pd.DataFrame:
    """The centred scores of the arms, (seeds, arms)."""
    runs = tables["runs"]
    kept = (runs.task == task) & (runs.epochs == epochs) & (runs.weight == weight)
    return runs[kept].pivot(index="seed", columns="arm", values="centred_1")


def onsets(tables: Tables, task: str) -> pd.DataFrame:
    """Steps at which long runs reach half the level of ``none``, (seeds, arms)."""
    steps = tables["steps"]
    kept = (steps.task == task) & (steps.epochs == PLAN["long_epochs"]) & (steps.rows == FULL_BATCH)
    half = scores(tables, task, PLAN["long_epochs"])["none"] / 2
    found = {
        (seed, arm): onset(run.sort_values("step").set_index("step").centred_1, half[seed])
        for (seed, arm), run in steps[kept].groupby(["seed", "arm"])
        if seed in half.index
    }
    return pd.Series(found).unstack()


def onset(score: pd.Series, bound: float) -> int:
    """The first step whose mean with the four before reaches the bound; else the last step."""
    reached = score.rolling(SMOOTH).mean() >= bound
    return int(reached.idxmax() if reached.any() else score.index[-1])


def _correct(tables: Tables, task: str, arm: str, weight: float) -> pd.DataFrame:
    """Correctness of the validation rows, (seeds, rows)."""
    correct = tables["correct"]
    kept = (correct.task == task) & (correct.arm == arm) & (correct.epochs == PLAN["grid_epochs"])
    kept &= correct.weight == weight
    return correct[kept].pivot(index="seed", columns="row", values="correct")


def _matched(tables: Tables, task: str, of: str, minus: str) -> Differences:
    """Correctness less that of another arm where its sweep has the same centred score."""
    runs = tables["runs"]
    here = runs[(runs.task == task) & (runs.epochs == PLAN["grid_epochs"])]
    target = scores(tables, task, PLAN["grid_epochs"])[of]
    weights = sorted(here[here.arm == minus].weight.unique())
    points = [("none", 1.0)] + [(minus, weight) for weight in weights]
    sweep = [
        here[(here.arm == a) & (here.weight == w)].set_index("seed").centred_1 for a, w in points
    ]
    correct = [_correct(tables, task, arm, weight) for arm, weight in points]
    own, found, passed = _correct(tables, task, of, 1.0), [], []
    for seed in target.index.intersection(pd.concat(sweep, axis=1).dropna().index):
        place = place_on_sweep([score[seed] for score in sweep], target[seed])
        theirs = place.of([rows.loc[seed].to_numpy() for rows in correct])
        found.append(own.loc[seed].to_numpy() - theirs)
        passed.append(place.passed)
    return Differences(np.array(found), nearest=1 - float(np.mean(passed)))


def mean_of(values: np.ndarray) -> Mean:
    """Mean of differences, clustered by seed and, where they have rows, by row too."""
    n, mean = len(values), float(values.mean())
    if values.ndim == 1:
        return Mean(mean, float(values.std(ddof=1)) / math.sqrt(n), n - 1)
    found = two_way_variance(values)
    variance = found.both if found.both > 0 else max(found)  # see the page's deviations
    return Mean(mean, math.sqrt(variance), n - 1, of_rows=max(variance - found.seeds, 0.0))


def _simultaneous() -> float:
    return PLAN["level"] / len(PLAN["hypothesis"])


def _tested(hypothesis: dict, tables: Tables) -> dict:
    found = differences(hypothesis, tables)
    mean = mean_of(found.values)
    half = stats.t.isf(_simultaneous() / 2, mean.freedom) * mean.error
    tested = found.nearest <= PLAN["nearest_at_most"]
    return {
        **{name: hypothesis[name] for name in ("id", "statement")},
        "estimate": mean.estimate,
        "low": mean.estimate - half,
        "high": mean.estimate + half,
        "n": len(found.values),
        "p": _p(mean, hypothesis) if tested else math.nan,
        "nearest": found.nearest,
        "error": mean.error,
        "of_rows": mean.of_rows,
    }


def _bound(direction: str, margin: float) -> float:
    return -margin if direction == "no_worse" else 0.0


def _p(mean: Mean, hypothesis: dict) -> float:
    """One-sided p value of a mean beyond the hypothesis's bound."""
    beyond = mean.estimate - _bound(hypothesis["direction"], margin_of(hypothesis))
    if hypothesis["direction"] == "less":
        beyond = -beyond
    if mean.error == 0:  # equal differences
        return 0.0 if beyond > 0 else 1.0
    return float(stats.t.sf(beyond / mean.error, mean.freedom))


def _verdict(row: tuple, direction: str, margin: float) -> str:
    if math.isnan(row.p):
        return "not tested"
    if row.holm < PLAN["level"]:
        return "supported"
    bound = _bound(direction, margin)
    if row.low > bound if direction == "less" else row.high < bound:
        return "contradicted"
    return "equivalent" if -margin < row.low and row.high < margin < math.inf else "open"


def _seeds_needed(row: tuple, hypothesis: dict, margin: float) -> float:
    """Seeds whose interval, of the observed mean and spread, would not reach the bound.

    More seeds do not reduce what the rows add to the variance. Beyond 10,000 seeds: infinity.
    """
    way = abs(row.estimate - _bound(hypothesis["direction"], margin))
    of_seeds = (row.error**2 - row.of_rows) * row.n
    for n in range(3, 10_001):
        error = math.sqrt(of_seeds / n + row.of_rows)
        if stats.t.isf(_simultaneous() / 2, n - 1) * error < way:
            return float(n)
    return math.inf
