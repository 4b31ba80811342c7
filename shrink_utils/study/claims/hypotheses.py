"""The twelve hypotheses of docs/preregistration.md, decided on the runs on record."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from shrink_utils.study.ablation import place_on_sweep
from shrink_utils.study.statistics import Mean, mean_of

REGISTERED = "95c919f7ac4ba0390f06ecdc7c40afb7e2731224"  # the page's commit before the first run
LEVEL = 0.05
GRID_EPOCHS, LONG_EPOCHS = 3, 10
NEAREST_AT_MOST = 0.25  # of the seeds, whose sweep does not pass the score
SMOOTH = 5  # steps of the mean that tells an onset
FULL_BATCH = 64
MOVIES, PRODUCTS = "sentiment_movies", "sentiment_products"
MARGINS = {"accuracy": 0.02, "matched": 0.02, "score": 0.044, "level": 0.044, "onset": math.inf}
Tables = Mapping[str, pd.DataFrame]


class Hypothesis(NamedTuple):
    """What a mean difference of two arms is said to be; its margin is that of its quantity."""

    id: str
    statement: str
    quantity: str  # one of `MARGINS`
    task: str
    minus: str  # the arm that prominent bars are compared with
    direction: str  # "less" or "greater" than 0, or "no_worse" than minus the margin

    @property
    def margin(self) -> float:
        """The difference that counts as none; infinity of the onset, which has none."""
        return MARGINS[self.quantity]

    @property
    def bound(self) -> float:
        """What the mean is held against."""
        return -self.margin if self.direction == "no_worse" else 0.0


HYPOTHESES = [  # in the words and order of the page; of prominent bars
    Hypothesis("H1", "the regularizer lowers the centred score on movies",
               "score", MOVIES, "none", "less"),
    Hypothesis("H2", "the regularizer lowers the centred score on products",
               "score", PRODUCTS, "none", "less"),
    Hypothesis("H3", "accuracy on movies does not suffer beyond .02",
               "accuracy", MOVIES, "none", "no_worse"),
    Hypothesis("H4", "accuracy on products does not suffer beyond .02",
               "accuracy", PRODUCTS, "none", "no_worse"),
    Hypothesis("H5", "selected bars lower the centred score more than all bars, on movies",
               "score", MOVIES, "all", "less"),
    Hypothesis("H6", "selected bars lower the centred score more than all bars, on products",
               "score", PRODUCTS, "all", "less"),
    Hypothesis("H7", "at matched score, prominent bars keep more accuracy than random bars",
               "matched", PRODUCTS, "random", "greater"),
    Hypothesis("H8", "at matched score, bars cost no more accuracy than IsoScore★",
               "matched", PRODUCTS, "isoscore", "no_worse"),
    Hypothesis("H9", "at matched score, bars cost no more accuracy than spectral entropy",
               "matched", PRODUCTS, "spectral", "no_worse"),
    Hypothesis("H10", "at matched score, bars cost no more accuracy than the average cosine",
               "matched", PRODUCTS, "cosine", "no_worse"),
    Hypothesis("H11", "the regularizer lowers the level that ten epochs reach",
               "level", PRODUCTS, "none", "less"),
    Hypothesis("H12", "the regularizer delays the rise",
               "onset", PRODUCTS, "none", "greater"),
]  # fmt: skip
SIMULTANEOUS = LEVEL / len(HYPOTHESES)
BY_ID = {h.id: h for h in HYPOTHESES}


class Differences(NamedTuple):
    """Paired differences of a hypothesis: (seeds,), or (seeds, rows) of correctness."""

    values: np.ndarray
    nearest: float = 0.0  # share of the seeds whose sweep does not pass the score


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
    rows = []
    for h in HYPOTHESES:
        values, nearest = differences(h, tables)
        mean = mean_of(values, least=False)
        interval = mean.interval(1 - SIMULTANEOUS)
        p = one_sided_p(mean, h.direction, h.bound) if nearest <= NEAREST_AT_MOST else math.nan
        needed = _seeds_needed(h, mean)
        own = {"id": h.id, "statement": h.statement, "p": p, "nearest": nearest}
        rows.append(own | interval._asdict() | {"seeds_needed": needed})
    table = pd.DataFrame(rows)
    table["holm"] = holm(table.p)
    table["verdict"] = list(map(_verdict, HYPOTHESES, table.itertuples()))
    table["seeds_needed"] = table.seeds_needed.where(table.verdict == "open")
    names = "id statement estimate low high n p holm verdict seeds_needed nearest"
    return table[names.split()]


def one_sided_p(mean: Mean, direction: str, bound: float = 0.0) -> float:
    """P value of a mean beyond a bound: below it, if the direction is "less"."""
    beyond = mean.estimate - bound
    beyond = -beyond if direction == "less" else beyond
    if mean.error == 0:  # equal differences
        return 0.0 if beyond > 0 else 1.0
    return float(stats.t.sf(beyond / mean.error, mean.n - 1))


def holm(p: pd.Series) -> pd.Series:
    """P values adjusted by Holm's method; NaN, of what was not tested, stays and counts as one."""
    from statsmodels.stats.multitest import multipletests  # a second to import

    return pd.Series(multipletests(p.fillna(1.0), method="holm")[1], p.index).where(p.notna())


def _verdict(hypothesis: Hypothesis, row: tuple) -> str:
    bound, margin = hypothesis.bound, hypothesis.margin
    if math.isnan(row.p):
        return "not tested"
    if row.holm < LEVEL:
        return "supported"
    if row.low > bound if hypothesis.direction == "less" else row.high < bound:
        return "contradicted"
    return "equivalent" if -margin < row.low and row.high < margin < math.inf else "open"


def _seeds_needed(hypothesis: Hypothesis, mean: Mean) -> float:
    """Seeds whose interval, of the observed mean and spread, would not reach the bound.

    More seeds do not reduce what the rows add to the variance. Beyond 10,000 seeds: infinity.
    """
    of_seeds = (mean.error**2 - mean.of_rows) * mean.n
    n = np.arange(3, 10_001)
    error = np.sqrt(of_seeds / n + mean.of_rows)
    half = stats.t.isf(SIMULTANEOUS / 2, n - 1) * error
    enough = half < abs(mean.estimate - hypothesis.bound)
    return float(n[enough.argmax()]) if enough.any() else math.inf


def differences(hypothesis: Hypothesis, tables: Tables) -> Differences:
    """The paired differences that a hypothesis is about, seeds in order."""
    task, of, minus = hypothesis.task, "prominent", hypothesis.minus
    match hypothesis.quantity:
        case "score":
            wide = scores(tables, task, GRID_EPOCHS)
        case "level":
            wide = scores(tables, task, LONG_EPOCHS)
        case "onset":
            wide = onsets(tables, task)
        case "accuracy":
            wide = {arm: _correct(tables, task, arm, 1.0) for arm in (of, minus)}
        case "matched":
            return _matched(tables, task, of, minus)
    return Differences((wide[of] - wide[minus]).dropna().to_numpy())


def scores(tables: Tables, task: str, epochs: int, *, weight: float = 1.0) -> pd.DataFrame:
    """The centred scores of the arms, (seeds, arms)."""
    runs = tables["runs"]
    kept = (runs.task == task) & (runs.epochs == epochs) & (runs.weight == weight)
    return runs[kept].pivot(index="seed", columns="arm", values="centred_1")


def onsets(tables: Tables, task: str) -> pd.DataFrame:
    """Steps at which long runs reach half the level of ``none``, (seeds, arms)."""
    steps = tables["steps"]
    kept = (steps.task == task) & (steps.epochs == LONG_EPOCHS) & (steps.rows == FULL_BATCH)
    half = scores(tables, task, LONG_EPOCHS)["none"] / 2
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
    kept = (correct.task == task) & (correct.arm == arm) & (correct.epochs == GRID_EPOCHS)
    kept &= correct.weight == weight
    return correct[kept].pivot(index="seed", columns="row", values="correct")


def _matched(tables: Tables, task: str, of: str, minus: str) -> Differences:
    """Correctness less that of another arm where its sweep has the same centred score."""
    runs = tables["runs"]
    here = runs[(runs.task == task) & (runs.epochs == GRID_EPOCHS)]
    here = here.pivot(index="seed", columns=["arm", "weight"], values="centred_1")
    points = [("none", 1.0), *((minus, weight) for weight in sorted(here[minus]))]
    sweep, target = here[points].dropna(), here[of, 1.0]
    correct = [_correct(tables, task, arm, weight) for arm, weight in points]
    own, found, passed = _correct(tables, task, of, 1.0), [], []
    for seed in target.index.intersection(sweep.index):
        place = place_on_sweep(sweep.loc[seed], target[seed])
        theirs = place.of([rows.loc[seed].to_numpy() for rows in correct])
        found.append(own.loc[seed].to_numpy() - theirs)
        passed.append(place.passed)
    return Differences(np.array(found), nearest=1 - float(np.mean(passed)))
