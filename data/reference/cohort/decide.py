"""The twelve hypotheses of docs/preregistration.md, decided on the tables beside it.

`python data/reference/cohort/decide.py` writes ``decided.csv``, the numbers, and
``hypotheses.csv``, the same for people, with what the paper says from ``claims.csv``. It reads the
tables alone: pandas, NumPy, SciPy and statsmodels, nothing of this project.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

HERE = Path(__file__).parent
RUNS = 372  # nobody looks before all of them are on record
TABLES = ("runs", "steps", "correct")
LEVEL = 0.05
GRID_EPOCHS, LONG_EPOCHS = 3, 10
NEAREST_AT_MOST = 0.25  # of the seeds, whose sweep does not pass the score
SMOOTH = 5  # steps of the mean that tells an onset
FULL_BATCH = 64
MOVIES, PRODUCTS = "sentiment_movies", "sentiment_products"
MARGINS = {"accuracy": 0.02, "matched": 0.02, "score": 0.044, "level": 0.044, "onset": math.inf}
# The row of ``claims.csv`` that a hypothesis asks; the others are controls of this study.
ASKED = {
    "H1": f"stl:lowers-centred-of-none:minilm:{MOVIES}:prominent",
    "H2": f"stl:lowers-centred-of-none:minilm:{PRODUCTS}:prominent",
    "H3": f"stl:metric-kept:minilm:{MOVIES}:prominent",
    "H4": f"stl:metric-kept:minilm:{PRODUCTS}:prominent",
    "H5": f"stl:lowers-centred-of-all:minilm:{MOVIES}:prominent",
    "H6": f"stl:lowers-centred-of-all:minilm:{PRODUCTS}:prominent",
}
Tables = Mapping[str, pd.DataFrame]


class Mean(NamedTuple):
    """A mean over `n` seeds and its standard error."""

    estimate: float
    error: float
    n: int
    of_rows: float = 0.0  # the part of the squared error that more seeds do not reduce

    def interval(self, confidence: float) -> dict[str, float]:
        """Student's, n − 1 degrees of freedom."""
        half = float(stats.t.ppf((1 + confidence) / 2, df=self.n - 1)) * self.error
        low, high = self.estimate - half, self.estimate + half
        return {"estimate": self.estimate, "low": low, "high": high, "n": self.n}


def mean_of(values: np.ndarray) -> Mean:
    """Mean of (seeds,), or of (seeds, rows) with an error clustered by seed and by row.

    A variance by both that is not positive gives way to the larger of those by one (a deviation of
    the page).

    References
    ----------
    Cameron, Gelbach & Miller 2011, *Robust inference with multiway clustering*.
    """
    n, mean = len(values), float(values.mean())
    if values.ndim == 1:
        return Mean(mean, float(values.std(ddof=1)) / math.sqrt(n), n)
    residuals = values - mean
    seeds, rows, cells = (
        float((of**2).sum()) / values.size**2 * len(of) / (len(of) - 1)
        for of in (residuals.sum(axis=1), residuals.sum(axis=0), residuals.ravel())
    )
    both = seeds + rows - cells
    variance = both if both > 0 else max(seeds, rows)
    return Mean(mean, math.sqrt(variance), n, of_rows=max(variance - seeds, 0.0))


class Place(NamedTuple):
    """A point between two of a sweep: `share` of the way from the first to the second."""

    first: int
    second: int
    share: float
    passed: bool  # whether the sweep passes the score

    def of(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """What the point has of a quantity that each point of the sweep has a value of."""
        first, second = values[self.first], values[self.second]
        return first + self.share * (second - first)


def place_on_sweep(scores: Sequence[float], score: float) -> Place:
    """Where a sweep, by weight from 0 up, passes a score: linear between the first such pair.

    A sweep without such a pair gives its point nearest to the score.
    """
    for i, (first, second) in enumerate(pairwise(scores)):
        if min(first, second) <= score <= max(first, second):
            share = (score - first) / (second - first) if first != second else 0.0
            return Place(i, i + 1, float(share), passed=True)
    nearest = int(np.abs(np.asarray(scores) - score).argmin())
    return Place(nearest, nearest, 0.0, passed=bool(scores[nearest] == score))


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


def read_tables(folder: Path = HERE) -> dict[str, pd.DataFrame]:
    """The record tables that decide, by name.

    Raises
    ------
    ValueError
        Not all runs are on record.
    """
    tables = {name: pd.read_parquet(folder / f"{name}.parquet") for name in TABLES}
    if (found := len(tables["runs"])) != RUNS:
        raise ValueError(
            f"{folder}: {found} runs are on record, and nobody looks before all {RUNS}"
        )
    return tables


def decide(tables: Tables) -> pd.DataFrame:
    """Test the hypotheses as the page says.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Of `read_tables`.

    Returns
    -------
    DataFrame
        One row per hypothesis: id, statement, quantity and its margin, estimate, the simultaneous
        interval (low, high), n (seeds), p (one-sided), holm (adjusted), verdict ("supported",
        "contradicted", "equivalent", "open", "not tested"), seeds_needed (of an open one), nearest.

    References
    ----------
    Holm 1979, *A simple sequentially rejective multiple test procedure*. Cameron, Gelbach & Miller
    2011, *Robust inference with multiway clustering*.
    """
    rows = []
    for h in HYPOTHESES:
        values, nearest = differences(h, tables)
        mean = mean_of(values)
        interval = mean.interval(1 - SIMULTANEOUS)
        p = one_sided_p(mean, h.direction, h.bound) if nearest <= NEAREST_AT_MOST else math.nan
        needed = _seeds_needed(h, mean)
        own = {"id": h.id, "statement": h.statement, "quantity": h.quantity, "margin": h.margin}
        own |= interval | {"p": p, "nearest": nearest, "seeds_needed": needed}
        rows.append(own)
    table = pd.DataFrame(rows)
    table["holm"] = holm(table.p)
    table["verdict"] = list(map(_verdict, HYPOTHESES, table.itertuples()))
    table["seeds_needed"] = table.seeds_needed.where(table.verdict == "open")
    names = "id statement quantity margin estimate low high n p holm verdict seeds_needed nearest"
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
        place = place_on_sweep(sweep.loc[seed].to_numpy(), target[seed])
        theirs = place.of([rows.loc[seed].to_numpy() for rows in correct])
        found.append(own.loc[seed].to_numpy() - theirs)
        passed.append(place.passed)
    return Differences(np.array(found), nearest=1 - float(np.mean(passed)))


def as_text(decided: pd.DataFrame, claims: pd.DataFrame) -> pd.DataFrame:
    """The hypotheses for people, with the paper's own difference and the kind of test.

    Parameters
    ----------
    decided : DataFrame
        Of `decide`.
    claims : DataFrame
        ``claims.csv``, which has what `ASKED` names.
    """
    claims, rows = claims.set_index("claim"), []
    for row in decided.itertuples():
        decimals = 1 if row.quantity == "onset" else 3  # of steps
        estimate, low, high = (signed(x, decimals) for x in (row.estimate, row.low, row.high))
        claim = claims.loc[ASKED[row.id]] if row.id in ASKED else None
        known = claim is not None and not math.isnan(claim.published)
        found = {"hypothesis": f"{row.id} · {row.statement}"}
        found |= {"paper": f"{claim.published:+.3f}" if known else "", "difference": estimate}
        found |= {"simultaneous interval": f"[{low}, {high}]", "seeds": str(row.n)}
        found |= {"p (Holm)": p_as_text(row.holm), "verdict": row.verdict, "note": _note(row)}
        found["kind of test"] = "our control" if claim is None else claim.kind.split(",")[0]
        rows.append(found)
    return pd.DataFrame(rows)


def signed(value: float, decimals: int) -> str:
    """With its sign; what these decimals cannot tell from zero has none."""
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]


def p_as_text(p: float) -> str:
    """Three decimals, without the zero before the point; nothing where there is no p."""
    return "" if pd.isna(p) else "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _note(row: tuple) -> str:
    """What would decide an open hypothesis, and how many seeds took their nearest point."""
    notes = []
    if row.verdict == "open":
        needed = f"{row.seeds_needed:.0f} seeds would decide it"
        never = "more seeds alone would not decide it"
        notes.append(needed if math.isfinite(row.seeds_needed) else never)
    if row.nearest:
        notes.append(f"{round(row.nearest * row.n)} of {row.n} took their nearest point")
    return "; ".join(notes)


def write(folder: Path = HERE) -> None:
    """Write both tables into the folder whose records they are decided on."""
    decided = decide(read_tables(folder))
    decided.to_csv(folder / "decided.csv", index=False, float_format="%.6g")
    answer = as_text(decided, pd.read_csv(folder / "claims.csv"))
    answer.to_csv(folder / "hypotheses.csv", index=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    write(parser.parse_args().folder)
