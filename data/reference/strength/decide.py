"""The eight hypotheses of docs/preregistration_strength.md, decided on the tables beside it.

`python data/reference/strength/decide.py` writes ``decided.csv``, the numbers, ``hypotheses.csv``,
the same for people, and ``beside.csv``. It reads the tables alone: pandas, NumPy, SciPy and
statsmodels, nothing of this project.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

HERE = Path(__file__).parent
RUNS = 508  # nobody looks before all of them are on record
TABLES = ("runs", "evaluations", "correct")
LEVEL = 0.05
SHORT, LONG = 3, 10  # epochs
LOSS = 0.02  # of accuracy against none: where arms are compared at equal accuracy
MARGINS = {"accuracy": 0.02, "score": 0.044, "within": 0.044, "silhouette": 0.03}
INGREDIENTS = ("whole_batch", "shuffled_classes", "longest", "shortest")
Tables = Mapping[str, pd.DataFrame]
Seeds = np.ndarray  # positions of the seeds that count


class Mean(NamedTuple):
    """A mean over `n` seeds and its standard error."""

    estimate: float
    error: float
    n: int

    def interval(self, confidence: float = 0.95) -> dict[str, float]:
        """Student's, n − 1 degrees of freedom."""
        half = float(stats.t.ppf((1 + confidence) / 2, df=self.n - 1)) * self.error
        low, high = self.estimate - half, self.estimate + half
        return {"estimate": self.estimate, "low": low, "high": high, "n": self.n}

    def p(self, direction: str = "differs") -> float:
        """Two-sided p of 0, or one-sided of a mean below 0; equal values spread nowhere."""
        if direction == "less":
            if self.error == 0:
                return 0.0 if self.estimate < 0 else 1.0
            return float(stats.t.sf(-self.estimate / self.error, self.n - 1))
        if self.error == 0:  # equal arms differ by nothing
            return float(self.estimate == 0)
        return float(2 * stats.t.sf(abs(self.estimate) / self.error, df=self.n - 1))


def mean_of(values: np.ndarray) -> Mean:
    """Mean of (seeds,), or of (seeds, rows) with errors clustered by both, at least either's.

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
    return Mean(mean, math.sqrt(max(seeds + rows - cells, seeds, rows)), n)


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


@dataclass(frozen=True)
class Cell:
    """The runs of one arm at one weight and length, seeds in order."""

    score: np.ndarray  # (seeds,), centred, of training batches, over the last 30 % of the steps
    correct: np.ndarray  # (seeds, rows), share of the last 30 % of the epochs
    within: np.ndarray  # (seeds,), of the validation rows after the last epoch; so are the next
    silhouette: np.ndarray
    best_score: np.ndarray  # (seeds,), of the validation rows at the epoch of least loss
    best_accuracy: np.ndarray

    @property
    def accuracy(self) -> np.ndarray:
        """(seeds,)."""
        return self.correct.mean(axis=1)


Runs = Mapping[tuple[str, float], Cell]  # by arm and weight; none has weight 0


class Found(NamedTuple):
    """A difference of some seeds, () or (rows,), and whether every sweep passes its target."""

    value: np.ndarray
    passed: bool = True


Statistic = Callable[[Runs, Seeds], Found]


class Hypothesis(NamedTuple):
    """What is said of a difference, and how it is computed from some of the seeds."""

    id: str
    statement: str
    statistic: Statistic
    kind: str  # of `MARGINS`
    epochs: int
    direction: str = "differs"  # or "less": one-sided


def runs_of(tables: Tables, epochs: int) -> Runs:
    """Cells of one length; a seed that an arm lacks is left out of all.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Of `read_tables`.
    epochs : int
        Length of the runs.
    """
    of = {name: _as_keyed(tables[name], epochs) for name in ("runs", "evaluations", "correct")}
    by_arm = of["runs"].groupby(["arm", "weight"]).seed
    seeds = sorted(set.intersection(*by_arm.agg(set)))
    cells = {}
    for key in by_arm.groups:
        runs, evaluations, correct = (
            table[(table.arm == key[0]) & (table.weight == key[1]) & table.seed.isin(seeds)]
            for table in of.values()
        )
        trained = evaluations[evaluations.epoch >= 1].sort_values(["seed", "epoch"])
        last = trained.groupby("seed").last()
        best = trained.loc[trained.groupby("seed").loss.idxmin()].set_index("seed")
        cells[key] = Cell(
            score=runs.set_index("seed").centred_1[seeds].to_numpy(),
            correct=correct.pivot(index="seed", columns="row", values="correct").loc[seeds].values,
            within=last.within_1[seeds].to_numpy(),
            silhouette=last.silhouette[seeds].to_numpy(),
            best_score=best.centred_1[seeds].to_numpy(),
            best_accuracy=best.accuracy[seeds].to_numpy(),
        )
    return cells


def _as_keyed(table: pd.DataFrame, epochs: int) -> pd.DataFrame:
    kept = table[table.epochs == epochs].reset_index(drop=True)
    return kept.assign(weight=kept.weight.where(kept.arm != "none", 0.0))


def _read_off(
    runs: Runs, arm: str, seeds: Seeds, *, by: str, target: float, of: str
) -> tuple[np.ndarray, bool]:
    """Quantity `of` where the mean of `by` along the arm's weights passes the target."""
    points = [runs["none", 0.0], *(runs[key] for key in sorted(runs) if key[0] == arm)]
    place = place_on_sweep([getattr(cell, by)[seeds].mean() for cell in points], target)
    return place.of([getattr(cell, of)[seeds].mean(axis=0) for cell in points]), place.passed


def _at_score(runs: Runs, seeds: Seeds, *, score: float, minus: str) -> Found:
    """Correctness of prominent minus that of another arm where both have the score."""
    ours, theirs = (
        _read_off(runs, arm, seeds, by="score", target=score, of="correct")
        for arm in ("prominent", minus)
    )
    return Found(ours[0] - theirs[0], ours[1] and theirs[1])


def _at_accuracy(runs: Runs, seeds: Seeds, *, of: str) -> Found:
    """A quantity of prominent minus that of all where both have lost `LOSS` of accuracy."""
    target = runs["none", 0.0].accuracy[seeds].mean() - LOSS
    ours, theirs = (
        _read_off(runs, arm, seeds, by="accuracy", target=target, of=of)
        for arm in ("prominent", "all")
    )
    return Found(ours[0] - theirs[0], ours[1] and theirs[1])


def _at_level(
    runs: Runs, seeds: Seeds, *, arm: tuple[str, float], minus: str, of: str = "correct"
) -> Found:
    """A quantity of a cell minus that of another arm where its weights have the cell's score."""
    cell = runs[arm]
    theirs, passed = _read_off(
        runs, minus, seeds, by="score", target=cell.score[seeds].mean(), of=of
    )
    return Found(getattr(cell, of)[seeds].mean(axis=0) - theirs, passed)


def _cells(
    runs: Runs, seeds: Seeds, *, arm: tuple[str, float], minus: tuple[str, float], of: str
) -> Found:
    """A quantity of one cell minus that of another."""
    return Found((getattr(runs[arm], of) - getattr(runs[minus], of))[seeds].mean(axis=0))


NONE, PROMINENT = ("none", 0.0), ("prominent", 1.0)
STRONGEST = ("all", 4.0)
KEEPS = "at the centred score {}, selected bars keep {} accuracy than all bars"
_beside_all = partial(_at_score, minus="all")
_strongest = partial(_cells, arm=STRONGEST, minus=PROMINENT)
HYPOTHESES = [  # in the words and order of the page
    Hypothesis("S1", KEEPS.format(".20", "another"), partial(_beside_all, score=0.2),
               "accuracy", SHORT),
    Hypothesis("S2", KEEPS.format(".15", "another"), partial(_beside_all, score=0.15),
               "accuracy", SHORT),
    Hypothesis("S3", KEEPS.format(".10", "less"), partial(_beside_all, score=0.1),
               "accuracy", SHORT, "less"),
    Hypothesis("S4", "at equal accuracy, selected and all bars leave another score within classes",
               partial(_at_accuracy, of="within"), "within", SHORT),
    Hypothesis("S5", "at equal accuracy, selected and all bars leave another silhouette",
               partial(_at_accuracy, of="silhouette"), "silhouette", SHORT),
    Hypothesis("S6", "over ten epochs, all bars at weight 4 end below the level of selected bars "
               "at 1", partial(_strongest, of="score"), "score", LONG, "less"),
    Hypothesis("S7", "at the level of selected bars at weight 1, all bars keep another accuracy",
               partial(_at_level, arm=PROMINENT, minus="all"), "accuracy", LONG),
    Hypothesis("S8", "at the epoch of least validation loss, all bars at 4 lie below selected bars "
               "at 1", partial(_strongest, of="best_score"), "score", LONG, "less"),
]  # fmt: skip


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
        One row per hypothesis: id, statement, estimate, the simultaneous interval (low, high), n
        (seeds), p (two-sided unless the hypothesis says "less"), holm (adjusted), verdict. That is
        "less" or "more" of a two-sided hypothesis, "supported" or "contradicted" of a one-sided
        one; "equivalent" within the margin, "open", or "not tested" where a sweep of means does
        not pass its target.

    References
    ----------
    Tukey 1958 (the jackknife); Cameron, Gelbach & Miller 2011 (seeds and rows); Holm 1979.
    """
    runs = {epochs: runs_of(tables, epochs) for epochs in (SHORT, LONG)}
    rows = []
    for h in HYPOTHESES:
        mean, passed, _ = _estimated(h.statistic, runs[h.epochs])
        interval = mean.interval(1 - LEVEL / len(HYPOTHESES))
        p = mean.p(h.direction) if passed else np.nan
        rows.append({"id": h.id, "statement": h.statement} | interval | {"p": p})
    table = pd.DataFrame(rows)
    table["holm"] = holm(table.p)
    table["verdict"] = list(map(_verdict, HYPOTHESES, table.itertuples()))
    return table


def _estimated(statistic: Statistic, runs: Runs) -> tuple[Mean, bool, str]:
    """Jackknife over seeds: places on mean sweeps move with the seeds that are averaged."""
    n = len(next(iter(runs.values())).score)
    every = np.arange(n)
    whole = statistic(runs, every)
    left_out = [statistic(runs, np.delete(every, i)).value for i in range(n)]
    clusters = "seeds and rows" if whole.value.ndim else "seeds"
    return mean_of(n * whole.value - (n - 1) * np.array(left_out)), whole.passed, clusters


def holm(p: pd.Series) -> pd.Series:
    """P values adjusted by Holm's method; NaN, of what was not tested, stays and counts as one."""
    return pd.Series(multipletests(p.fillna(1.0), method="holm")[1], p.index).where(p.notna())


def _verdict(hypothesis: Hypothesis, row: tuple) -> str:
    if np.isnan(row.p):
        return "not tested"
    one_sided = hypothesis.direction == "less"
    if row.holm < LEVEL:
        return "supported" if one_sided else ("less" if row.estimate < 0 else "more")
    if one_sided and row.low > 0:
        return "contradicted"
    margin = MARGINS[hypothesis.kind]
    return "equivalent" if -margin < row.low and row.high < margin else "open"


def beside(tables: Tables) -> pd.DataFrame:
    """The planned comparisons that decide nothing, with unadjusted 95 % intervals.

    Returns
    -------
    DataFrame
        Columns epochs, comparison, estimate, low, high, n, p (two-sided), passed, clusters: of
        the standard error, "seeds and rows" where the records have a value per row, else "seeds".
    """
    rows = []
    for epochs, comparisons in ((SHORT, _short_comparisons()), (LONG, _long_comparisons())):
        runs = runs_of(tables, epochs)
        for comparison, statistic in comparisons.items():
            mean, passed, clusters = _estimated(statistic, runs)
            row = {"epochs": epochs, "comparison": comparison, **mean.interval()}
            rows.append(row | {"p": mean.p(), "passed": passed, "clusters": clusters})
    return pd.DataFrame(rows)


def _short_comparisons() -> dict[str, Statistic]:
    found = {}
    # Correctness by row: the page asks for errors clustered by seed and row.
    for name, of in {"accuracy": "correct", "within": "within", "silhouette": "silhouette"}.items():
        found[f"{name}: prominent 1 − none"] = partial(_cells, arm=PROMINENT, minus=NONE, of=of)
    for minus in ("random", "isoscore", "sigreg"):
        at = partial(_at_score, score=0.15, minus=minus)
        found[f"accuracy at the score .15: prominent − {minus}"] = at
    for ingredient in INGREDIENTS:
        arm = (ingredient, 1.0)
        found[f"score: {ingredient} 1 − prominent 1"] = partial(
            _cells, arm=arm, minus=PROMINENT, of="score"
        )
        for of in ("correct", "within", "silhouette"):
            found[f"{of}: {ingredient} 1 − prominent at its score"] = partial(
                _at_level, arm=arm, minus="prominent", of=of
            )
    return found


def _long_comparisons() -> dict[str, Statistic]:
    found = {}
    for arm in (PROMINENT, STRONGEST, ("all", 2.0), ("random", 2.0), ("isoscore", 0.3)):
        for of in ("score", "correct", "within", "silhouette", "best_score", "best_accuracy"):
            name = f"{of}: {arm[0]} {arm[1]:g} − none"
            found[name] = partial(_cells, arm=arm, minus=NONE, of=of)
    for of in ("within", "silhouette"):
        name = f"{of}: prominent 1 − all at its level"
        found[name] = partial(_at_level, arm=PROMINENT, minus="all", of=of)
    found["best_accuracy: all 4 − prominent 1"] = partial(_strongest, of="best_accuracy")
    return found


def as_text(decided: pd.DataFrame) -> pd.DataFrame:
    """The hypotheses for people, of `decide`; no paper compared arms at equal strength."""
    rows = []
    for row in decided.itertuples():
        estimate, low, high = map(signed, (row.estimate, row.low, row.high))
        found = {"hypothesis": f"{row.id} · {row.statement}", "paper": "", "difference": estimate}
        found |= {"simultaneous interval": f"[{low}, {high}]", "seeds": str(row.n)}
        found |= {"p (Holm)": p_as_text(row.holm), "verdict": row.verdict, "note": ""}
        rows.append(found | {"kind of test": "our control"})
    return pd.DataFrame(rows)


def signed(value: float) -> str:
    """With its sign; what three decimals cannot tell from zero has none."""
    text = f"{value:+.3f}"
    return text if float(text) else text[1:]


def p_as_text(p: float) -> str:
    """Three decimals, without the zero before the point; nothing where there is no p."""
    return "" if pd.isna(p) else "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def write(folder: Path = HERE) -> None:
    """Write the three tables into the folder whose records they are decided on."""
    tables = read_tables(folder)
    decided = decide(tables)
    decided.to_csv(folder / "decided.csv", index=False, float_format="%.6g")
    as_text(decided).to_csv(folder / "hypotheses.csv", index=False)
    beside(tables).to_csv(folder / "beside.csv", index=False, float_format="%.6f")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    write(parser.parse_args().folder)
