"""The fourteen hypotheses of docs/preregistration_heldout.md, decided on the tables beside it.

`python data/reference/heldout/decide.py` writes ``hypotheses.csv`` and ``beside.csv``. It reads the
tables alone: pandas, NumPy, SciPy and statsmodels, nothing of this project.
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
LEVEL, LAST = 0.05, 3  # LAST: epochs, the last 30 % of ten
PRODUCTS, MRPC, COLA = "sentiment_products", "mrpc", "cola"
COMMON = 0.78  # a validation score that both sweeps are expected to pass
MARGINS = {"score": 0.044, "accuracy": 0.02, "loss": 0.04, "overlap": 0.05, "share": 0.02}
LEAST_SEEDS = {PRODUCTS: 6, MRPC: 4, COLA: 4}  # with fewer whole ones nothing is tested
Key = tuple[str, float]  # arm and weight; that of none is 0
NONE, PROMINENT, ISOSCORE = ("none", 0.0), ("prominent", 1.0), ("isoscore", 0.3)
STRONGEST = {PRODUCTS: ("all", 8.0), MRPC: ("all", 4.0), COLA: ("all", 4.0)}
SWEEP = [NONE, ("all", 4.0), ("all", 6.0), ("all", 8.0)]  # those of the first part of products
FIRST: dict[str, list[Key]] = {
    PRODUCTS: [*SWEEP, PROMINENT, ISOSCORE],
    MRPC: [NONE, PROMINENT, ("all", 4.0)],
    COLA: [NONE, PROMINENT, ("all", 4.0)],
}
Tables = Mapping[str, pd.DataFrame]
Seeds = np.ndarray  # positions of the seeds that count


class Mean(NamedTuple):
    """A mean over `n` seeds and its standard error, clustered by what is said."""

    estimate: float
    error: float
    n: int
    clusters: str = "seeds"

    def interval(self, level: float) -> tuple[float, float]:
        """Student's, n − 1 degrees of freedom."""
        half = float(stats.t.isf(level / 2, self.n - 1)) * self.error
        return self.estimate - half, self.estimate + half

    def p(self, *, greater: bool = False) -> float:
        """Two-sided p of 0, or one-sided of a mean above 0; equal values spread nowhere."""
        if self.error == 0:
            return float(self.estimate == 0 or (greater and self.estimate < 0))
        t = self.estimate / self.error
        return float(stats.t.sf(t, self.n - 1) if greater else 2 * stats.t.sf(abs(t), self.n - 1))


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
    error = math.sqrt(max(seeds + rows - cells, seeds, rows))
    return Mean(mean, error, n, "seeds and rows")


@dataclass(frozen=True)
class Cell:
    """Runs of one arm at one weight on one task, seeds in order; ``_least``: at the least loss."""

    score: np.ndarray  # (seeds,), of the validation rows
    score_least: np.ndarray
    correct: np.ndarray  # (seeds, rows)
    correct_least: np.ndarray
    loss: np.ndarray
    loss_least: np.ndarray
    within: np.ndarray  # (seeds,), as the next one, late
    silhouette: np.ndarray
    train_score: np.ndarray  # (seeds,), of training batches: what the second analysis called level


Runs = Mapping[Key, Cell]
OUTCOMES = ("correct", "correct_least", "loss", "loss_least", "within", "silhouette")


class Found(NamedTuple):
    """A difference of some seeds, () or (rows,), and whether every sweep passes its target."""

    value: np.ndarray
    passed: bool = True


Statistic = Callable[[Runs, Seeds], Found]


def read_tables(folder: Path = HERE) -> dict[str, pd.DataFrame]:
    """The record tables, by name; the weight of ``none`` is 0.

    Raises
    ------
    FileNotFoundError
        A table is not there.
    """
    tables = {}
    for name in ("runs", "evaluations", "rows", "uses", "use_rows"):
        path = folder / f"{name}.parquet"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there: `run.py FOLDER --collect` writes it")
        table = pd.read_parquet(path)
        table = table.astype({c: str for c, t in table.dtypes.items() if t == "category"})
        numbers = {c: "float64" for c, t in table.dtypes.items() if t == "float32"}
        table = table.astype(numbers).round({"weight": 6})
        tables[name] = table.assign(weight=table.weight.where(table.arm != "none", 0.0))
    return tables


def whole_seeds(tables: Tables, task: str, keys: Sequence[Key]) -> list[int]:
    """Seeds of which all the arms are on record."""
    runs = tables["runs"]
    here = runs[runs.task == task]
    sets = [set(here[(here.arm == arm) & (here.weight == w)].seed) for arm, w in keys]
    return sorted(set.intersection(*sets))


def runs_of(
    tables: Tables, task: str, keys: Sequence[Key], *, last: int = LAST, seeds: Sequence[int] = ()
) -> Runs:
    """Cells of the arms, of the whole seeds (or of `seeds`); `last`: epochs of late scores."""
    seeds = list(seeds) or whole_seeds(tables, task, keys)
    return {key: _cell(tables, task, key, seeds, last) for key in keys}


def _cell(tables: Tables, task: str, key: Key, seeds: list[int], last: int) -> Cell:
    def of(name: str) -> pd.DataFrame:
        table = tables[name]
        kept = (table.task == task) & (table.arm == key[0]) & (table.weight == key[1])
        return table[kept & table.seed.isin(seeds)]

    trained = of("evaluations")
    trained = trained[trained.epoch > 0]
    late = (
        trained[trained.epoch > trained.epoch.max() - last].groupby("seed").mean(numeric_only=True)
    )
    least = trained.loc[trained.groupby("seed").loss.idxmin()].set_index("seed")
    rows = of("rows")
    by_row = {
        name: rows.pivot(index="seed", columns="row", values=name).loc[seeds].to_numpy()
        for name in ("correct", "correct_least", "loss", "loss_least")
    }
    return Cell(
        score=late.centred_1[seeds].to_numpy(),
        score_least=least.centred_1[seeds].to_numpy(),
        within=late.within_1[seeds].to_numpy(),
        silhouette=late.silhouette[seeds].to_numpy(),
        train_score=of("runs").set_index("seed").train_centred_1[seeds].to_numpy(),
        **by_row,
    )


def place(scores: Sequence[float], target: float) -> tuple[int, int, float, bool]:
    """First pair of neighbouring points with the target between them, the share of the way, True.

    Without such a pair: the nearest point, and False.
    """
    for i, (first, second) in enumerate(pairwise(scores)):
        if min(first, second) <= target <= max(first, second):
            share = (target - first) / (second - first) if first != second else 0.0
            return i, i + 1, share, True
    nearest = int(np.abs(np.asarray(scores) - target).argmin())
    return nearest, nearest, 0.0, False


def read_off(
    runs: Runs, points: Sequence[Key], seeds: Seeds, *, by: str, target: float, of: str
) -> Found:
    """Quantity `of` where the mean of `by` along the points passes the target."""
    cells = [runs[point] for point in points]
    i, j, share, passed = place([getattr(cell, by)[seeds].mean() for cell in cells], target)
    first, second = (getattr(cells[k], of)[seeds].mean(axis=0) for k in (i, j))
    return Found(first + share * (second - first), passed)


def cells(runs: Runs, seeds: Seeds, *, arm: Key, minus: Key, of: str) -> Found:
    """A quantity of one arm minus that of another."""
    return Found((getattr(runs[arm], of) - getattr(runs[minus], of))[seeds].mean(axis=0))


def at_its_score(
    runs: Runs, seeds: Seeds, *, of: str, by: str = "score", points: Sequence[Key] = SWEEP
) -> Found:
    """Prominent at 1 minus all where the sweep of all has its validation score."""
    own = runs[PROMINENT]
    target = getattr(own, by)[seeds].mean()
    theirs = read_off(runs, points, seeds, by=by, target=target, of=of)
    return Found(getattr(own, of)[seeds].mean(axis=0) - theirs.value, theirs.passed)


def at_common_score(
    runs: Runs, seeds: Seeds, *, of: str, by: str = "score", target: float = COMMON
) -> Found:
    """Prominent (0, 1) minus all where both sweeps have one validation score."""
    ours = read_off(runs, [NONE, PROMINENT], seeds, by=by, target=target, of=of)
    theirs = read_off(runs, SWEEP, seeds, by=by, target=target, of=of)
    return Found(ours.value - theirs.value, ours.passed and theirs.passed)


def jackknife(statistic: Statistic, runs: Runs) -> tuple[Mean, bool]:
    """Places on sweeps of means move with the seeds that are averaged (Tukey 1958)."""
    n = len(next(iter(runs.values())).score)
    every = np.arange(n)
    whole = statistic(runs, every)
    left_out = np.array([statistic(runs, np.delete(every, i)).value for i in range(n)])
    return mean_of(n * whole.value - (n - 1) * left_out), whole.passed


class Strength(NamedTuple):
    """A two-sided hypothesis about a difference, prominent − all."""

    id: str
    statement: str
    task: str
    kind: str  # of `MARGINS`
    statistic: Statistic


def _beyond(task: str) -> Statistic:
    """Score of all at its strongest − score of prominent at 1."""
    return partial(cells, arm=STRONGEST[task], minus=PROMINENT, of="score")


STRENGTH = [  # in the words and order of the page
    Strength("E1", "products: all bars at weight 8 end at another validation score than selected "
             "bars at 1", PRODUCTS, "score", _beyond(PRODUCTS)),
    Strength("E2", "products: at the validation score of selected bars at 1, all bars keep another "
             "accuracy", PRODUCTS, "accuracy", partial(at_its_score, of="correct")),
    Strength("E3", "products: at the validation score .78, selected and all bars keep another "
             "accuracy", PRODUCTS, "accuracy", partial(at_common_score, of="correct")),
    Strength("E4", "products, at the least validation loss: at the score of selected bars at 1, "
             "all bars have another loss", PRODUCTS, "loss",
             partial(at_its_score, of="loss_least", by="score_least")),
    Strength("E5", "MRPC: all bars at weight 4 end at another validation score than selected bars "
             "at 1", MRPC, "score", _beyond(MRPC)),
    Strength("E6", "CoLA: all bars at weight 4 end at another validation score than selected bars "
             "at 1", COLA, "score", _beyond(COLA)),
]  # fmt: skip


class Use(NamedTuple):
    """An arm is better for a use than the plain model, and than this one made round for nothing."""

    id: str
    arm: Key
    use: str
    kind: str  # of `MARGINS`
    controls: tuple[str, ...]  # treatments of the plain model

    @property
    def statement(self) -> str:
        """As the page says it."""
        return f"{_named(self.arm)} is good for: {SAID[self.use]}"


SAID = {
    "one_bit_in": "search with one bit per dimension",
    "neighbours_out": "neighbours of one class in another domain",
    "domain": "a linear probe for the domain",
    "other_domain": "telling texts of another domain",
}
CODERS, ROUND = ("centred", "rotated"), ("whitened", "all_but_top")
USES = [
    Use(f"U{i}", arm, use, "overlap" if use == "one_bit_in" else "share",
        CODERS if use == "one_bit_in" else ROUND)
    for i, (use, arm) in enumerate(((u, a) for u in SAID for a in (PROMINENT, ISOSCORE)), 1)
]  # fmt: skip


def _named(key: Key) -> str:
    return key[0] if key == NONE else f"{key[0]} {key[1]:g}"


def decide(tables: Tables) -> pd.DataFrame:
    """Both families, each with Holm's adjustment.

    Returns
    -------
    DataFrame
        One row per hypothesis: id, statement, arm, control, n (seeds), estimate and its
        simultaneous interval (low, high), for a use also the difference from the hardest control
        (beyond, beyond_low, beyond_high) and the arm's difference of accuracy (accuracy,
        accuracy_low, accuracy_high: 95 %), p, holm, verdict.
    """
    families = (_strengths(tables), _uses(tables))
    return pd.concat(families, ignore_index=True)


def _holm(p: pd.Series) -> pd.Series:
    """Adjusted p; what was not tested counts as one, and stays empty."""
    return pd.Series(multipletests(p.fillna(1.0), method="holm")[1], p.index).where(p.notna())


def _strengths(tables: Tables) -> pd.DataFrame:
    rows = []
    for h in STRENGTH:
        seeds = whole_seeds(tables, h.task, FIRST[h.task])
        row = {"id": h.id, "statement": h.statement, "n": len(seeds), "p": np.nan}
        if len(seeds) >= LEAST_SEEDS[h.task]:
            mean, passed = jackknife(h.statistic, runs_of(tables, h.task, FIRST[h.task]))
            low, high = mean.interval(LEVEL / len(STRENGTH))
            row |= {"estimate": mean.estimate, "low": low, "high": high}
            row["p"] = mean.p() if passed else np.nan
        rows.append(row)
    table = pd.DataFrame(rows).reindex(
        columns=["id", "statement", "n", "estimate", "low", "high", "p"]
    )
    table["holm"] = _holm(table.p)
    table["verdict"] = [
        _two_sided(row, MARGINS[h.kind])
        for row, h in zip(table.itertuples(), STRENGTH, strict=True)
    ]
    return table


def _two_sided(row: tuple, margin: float) -> str:
    if np.isnan(row.p):
        return "not tested"
    if row.holm < LEVEL:
        return "less" if row.estimate < 0 else "more"
    return "equivalent" if -margin < row.low and row.high < margin else "open"


def use_values(tables: Tables, key: Key, treatment: str, use: str, seeds: list[int]) -> np.ndarray:
    """(seeds, rows) of a use, at the end of the runs."""
    rows = tables["use_rows"]
    kept = (rows.arm == key[0]) & (rows.weight == key[1]) & (rows.treatment == treatment)
    wide = rows[kept & (rows.use == use)].pivot(index="seed", columns="row", values="value")
    return wide.loc[seeds].to_numpy()


def _uses(tables: Tables) -> pd.DataFrame:
    seeds = whole_seeds(tables, PRODUCTS, FIRST[PRODUCTS])
    tested = len(seeds) >= LEAST_SEEDS[PRODUCTS]
    rows = []
    for h in USES:
        row = {"id": h.id, "statement": h.statement, "arm": _named(h.arm), "n": len(seeds)}
        row |= {"control": " ".join(h.controls), "p": np.nan}
        rows.append(row | (_use(tables, h, seeds) if tested else {}))
    names = "id statement arm control n estimate low high beyond beyond_low beyond_high accuracy "
    names += "accuracy_low accuracy_high p"
    table = pd.DataFrame(rows).reindex(columns=names.split())
    table["holm"] = _holm(table.p)
    table["verdict"] = [
        _of_use(row, MARGINS[h.kind]) for row, h in zip(table.itertuples(), USES, strict=True)
    ]
    return table


def _use(tables: Tables, h: Use, seeds: list[int]) -> dict[str, float]:
    own = use_values(tables, h.arm, "plain", h.use, seeds)
    gain = mean_of(own - use_values(tables, NONE, "plain", h.use, seeds))
    beyond = [mean_of(own - use_values(tables, NONE, c, h.use, seeds)) for c in h.controls]
    p = max(mean.p(greater=True) for mean in (gain, *beyond))  # all of them have to hold
    hardest = max(beyond, key=lambda mean: mean.p(greater=True))
    runs = runs_of(tables, PRODUCTS, [NONE, h.arm], seeds=seeds)
    accuracy = mean_of(runs[h.arm].correct - runs[NONE].correct)
    row = {"p": p}
    for name, mean, level in (
        ("", gain, LEVEL / len(USES)),
        ("beyond", hardest, LEVEL / len(USES)),
        ("accuracy", accuracy, LEVEL),
    ):
        low, high = mean.interval(level)
        row[name or "estimate"] = mean.estimate
        row |= {f"{name}_low".lstrip("_"): low, f"{name}_high".lstrip("_"): high}
    return row


def _of_use(row: tuple, margin: float) -> str:
    if np.isnan(row.p):
        return "not tested"
    if row.holm < LEVEL:
        return "good for"
    if row.high < 0:
        return "worse"
    if -margin < row.low and row.high < margin:
        return "equivalent"
    return "not beyond the free control" if row.low > 0 else "open"


def beside(tables: Tables) -> pd.DataFrame:
    """What was planned beside the hypotheses: 95 % intervals, no adjustment; it decides nothing.

    Returns
    -------
    DataFrame
        Columns part ("arms", "robust", "uses"), task, comparison, n, estimate, low,
        high, p (two-sided), passed, clusters (of the errors: "seeds and rows" wherever rows have
        values, else "seeds").
    """
    rows = [*_arms(tables), *_robust(tables), *_described(tables)]
    columns = "part task comparison n estimate low high p passed clusters".split()
    return pd.DataFrame(rows, columns=columns)


def _row(part: str, task: str, comparison: str, mean: Mean, passed: bool = True) -> dict:
    low, high = mean.interval(LEVEL)
    named = {"part": part, "task": task, "comparison": comparison, "n": mean.n}
    return named | {
        "estimate": mean.estimate,
        "low": low,
        "high": high,
        "p": mean.p(),
        "passed": passed,
        "clusters": mean.clusters,
    }


def _arms(tables: Tables) -> list[dict]:
    """Every arm against none, and what selected bars have where all bars have their score."""
    rows, runs = [], tables["runs"]
    for task, first in FIRST.items():
        here = runs[runs.task == task]
        for key in sorted(set(zip(here.arm, here.weight, strict=True)) - {NONE}):
            if len(whole_seeds(tables, task, [NONE, key])) >= 2:
                pair = runs_of(tables, task, [NONE, key])
                for of in Cell.__dataclass_fields__:
                    mean, _ = jackknife(partial(cells, arm=key, minus=NONE, of=of), pair)
                    rows.append(_row("arms", task, f"{of}: {_named(key)} − none", mean))
        if len(whole_seeds(tables, task, first)) >= 2:
            of_task = runs_of(tables, task, first)
            for where, statistic in _equal_scores(task).items():
                for of in OUTCOMES:
                    mean, passed = jackknife(partial(statistic, of=of), of_task)
                    name = f"{of} at {where}: prominent − all"
                    rows.append(_row("arms", task, name, mean, passed))
    return rows


def _equal_scores(task: str) -> dict[str, Statistic]:
    points = [key for key in FIRST[task] if key[0] in ("none", "all")]
    found = {
        f"the {by} of prominent 1": partial(at_its_score, by=by, points=points)
        for by in ("score", "score_least")
    }
    if task == PRODUCTS:
        found[f"the score {COMMON}"] = at_common_score
    return found


def _robust(tables: Tables) -> list[dict]:
    """The hypotheses on strength with other windows, per seed, without a seed, in one cluster."""
    rows = []
    for h in STRENGTH:
        seeds = whole_seeds(tables, h.task, FIRST[h.task])
        if len(seeds) < LEAST_SEEDS[h.task]:
            continue
        runs = runs_of(tables, h.task, FIRST[h.task])
        for last in (1, 2, 5):
            mean, passed = jackknife(h.statistic, runs_of(tables, h.task, FIRST[h.task], last=last))
            rows.append(
                _row("robust", h.task, f"{h.id}, scores of the last {last} epochs", mean, passed)
            )
        each = [h.statistic(runs, np.array([i])) for i in range(len(seeds))]
        mean = mean_of(np.array([np.mean(found.value) for found in each]))
        share = np.mean([found.passed for found in each]) == 1
        rows.append(
            _row("robust", h.task, f"{h.id}, read off per seed, rows held fixed", mean, share)
        )
        for i, left in enumerate(seeds):
            mean, passed = jackknife(h.statistic, _without(runs, i))
            rows.append(_row("robust", h.task, f"{h.id}, without seed {left}", mean, passed))
    return rows


def _without(runs: Runs, i: int) -> Runs:
    return {
        key: Cell(**{name: np.delete(getattr(cell, name), i, axis=0) for name in vars(cell)})
        for key, cell in runs.items()
    }


def _described(tables: Tables) -> list[dict]:
    """Every use of every arm and treatment: its difference from the plain model at that moment.

    By seed and row where rows have values: the four uses of the hypotheses, at the end.
    """
    keys, rows = ["moment", "use", "arm", "weight", "treatment"], []
    cells = dict(iter(tables["uses"].assign(row=0).groupby(keys)))
    cells |= dict(iter(tables["use_rows"].groupby(keys)))
    wide = {key: of.pivot(index="seed", columns="row", values="value") for key, of in cells.items()}
    for moment, use, arm, weight, treatment in sorted(wide):
        theirs = wide.get((moment, use, *NONE, "plain"))
        if theirs is None or (arm, treatment) == ("none", "plain"):
            continue
        own = wide[moment, use, arm, weight, treatment]
        if arm.startswith("untrained"):  # one model, whatever the seed
            own = own.iloc[[0] * len(theirs)].set_axis(theirs.index)
        found = (own - theirs).dropna().to_numpy()
        found = found[:, 0] if found.shape[1] == 1 else found
        if len(found) >= 2:
            name = f"{use}, {moment}: {_named((arm, weight))} ({treatment}) − none"
            rows.append(_row("uses", PRODUCTS, name, mean_of(found)))
    return rows


def write(folder: Path = HERE) -> None:
    """Write both tables into the folder whose records they are decided on."""
    tables = read_tables(folder)
    for name, table in (("hypotheses", decide(tables)), ("beside", beside(tables))):
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6f")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    write(parser.parse_args().folder)
