"""The four hypotheses of docs/preregistration_base.md, decided on the tables here.

`python data/reference/base/decide.py [FOLDER]` writes ``hypotheses.csv`` and ``beside.csv``. It
reads the tables alone: pandas, NumPy, SciPy and statsmodels, nothing of this project.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

HERE = Path(__file__).resolve().parent
LEVEL, LATE, LEAST_SEEDS, DRAWS = 0.05, (8, 9, 10), 6, 4000
SEEDS = range(600, 608)
MACHINE = ["processor", "capability", "device", "torch", "precision"]
Key = tuple[str, float]
NONE, SELECTED = ("none", 0.0), ("prominent", 1.0)
EQUAL, ALL = ("all", 1.0), ("all", 4.0)
CONDITIONS = [NONE, SELECTED, EQUAL, ALL]
MARGINS = {"M1": 0.08, "M2": 0.08, "M3": 0.02, "M4": 0.02}
STATEMENTS = {
    "M1": "selected bars at 1 end with another PC1 share than none",
    "M2": "at equal weight, selected bars end with another PC1 share than all bars",
    "M3": "selected bars at 1 end with another accuracy than none",
    "M4": "at the PC1 share of all bars at 4, selected bars keep another accuracy",
}
COLUMNS = "id statement n margin estimate low high boot_low boot_high by p holm verdict".split()


class Mean(NamedTuple):
    """An estimate, its standard error, and the number of seeds."""

    estimate: float
    error: float
    n: int

    def interval(self, level: float) -> tuple[float, float]:
        """Student's t with n − 1 degrees of freedom."""
        half = float(stats.t.isf(level / 2, self.n - 1)) * self.error
        return self.estimate - half, self.estimate + half

    @property
    def p(self) -> float:
        """Two-sided."""
        if self.error == 0:
            return float(self.estimate == 0)
        return float(2 * stats.t.sf(abs(self.estimate / self.error), self.n - 1))


def mean_of(values: np.ndarray) -> Mean:
    """Mean of (seeds,), or of (seeds, rows) with errors clustered by both, at least either's.

    Each sum of squares has the factor n / (n − 1) of its own number of clusters.

    References
    ----------
    Cameron, Gelbach & Miller 2011, *Robust inference with multiway clustering*.
    """
    n, mean = len(values), float(values.mean())
    if values.ndim == 1:
        return Mean(mean, float(values.std(ddof=1)) / math.sqrt(n), n)
    left = values - mean
    by_seed, by_row, by_cell = (
        float((sums**2).sum()) / values.size**2 * sums.size / (sums.size - 1)
        for sums in (left.sum(axis=1), left.sum(axis=0), left.ravel())
    )
    return Mean(mean, math.sqrt(max(by_seed + by_row - by_cell, by_seed, by_row)), n)


class Runs(NamedTuple):
    """What the hypotheses are about, by condition; seeds in order."""

    share: Mapping[Key, np.ndarray]  # (seeds,), late PC1 share of the validation rows
    correct: Mapping[Key, np.ndarray]  # (seeds, rows), late, as the next one
    loss: Mapping[Key, np.ndarray]


def read_tables(folder: Path = HERE) -> dict[str, pd.DataFrame]:
    """The tables by name; the weight of ``none`` is 0."""
    tables = {}
    for name in ("runs", "evaluations", "rows"):
        table = pd.read_parquet(folder / f"{name}.parquet")
        table = table.astype({c: str for c, t in table.dtypes.items() if t == "category"})
        numbers = {c: "float64" for c, t in table.dtypes.items() if t == "float32"}
        table = table.astype(numbers).round({"weight": 6})
        tables[name] = table.assign(weight=table.weight.where(table.arm != "none", 0.0))
    return tables


def _of(table: pd.DataFrame, key: Key) -> pd.DataFrame:
    return table[(table.arm == key[0]) & (table.weight == key[1])]


def whole_seeds(runs: pd.DataFrame, keys: Sequence[Key] = CONDITIONS) -> list[int]:
    """Seeds of the page of which every condition is on record, all of one kind of machine."""
    alike = runs.groupby("seed")[MACHINE].nunique().max(axis=1) == 1
    there = set.intersection(*(set(_of(runs, key).seed) for key in keys))
    return sorted(there & {*alike.index[alike]} & {*SEEDS})


def runs_of(tables: Mapping[str, pd.DataFrame], seeds: list[int]) -> Runs:
    """Late quantities of every condition. Raises ValueError where one is lacking or no number."""
    late = tables["evaluations"]
    late = late.assign(epoch=late.epoch.round()).query("epoch in @LATE")
    share, by_row = {}, {"correct": {}, "loss": {}}
    for key in CONDITIONS:
        of_key = _of(late, key).pivot(index="seed", columns="epoch", values="centred_1")
        share[key] = of_key.loc[seeds].to_numpy().mean(axis=1)
        rows = _of(tables["rows"], key)
        for name, found in by_row.items():
            wide = rows.pivot(index="seed", columns="row", values=name)
            found[key] = wide.loc[seeds].to_numpy()
        values = [share[key], *(found[key] for found in by_row.values())]
        if of_key.shape[1] != len(LATE) or not all(np.isfinite(of).all() for of in values):
            raise ValueError(f"{key}: a late value is lacking or no number")
    return Runs(share, **by_row)


def at_matched_isotropy(runs: Runs, of: str, seeds: np.ndarray) -> np.ndarray | None:
    """(rows,): selected bars, between none and weight 1, minus all bars at 4, at their PC1 share.

    None where the mean shares of `none` and of selected bars do not enclose that of all bars.
    """
    values = getattr(runs, of)
    first, last, target = (runs.share[key][seeds].mean() for key in (NONE, SELECTED, ALL))
    if not min(first, last) <= target <= max(first, last) or first == last:
        return None
    part = (target - first) / (last - first)
    none, selected, every = (values[key][seeds].mean(axis=0) for key in (NONE, SELECTED, ALL))
    return none + part * (selected - none) - every


def jackknife(statistic: Callable[[np.ndarray], np.ndarray | None], n: int) -> Mean:
    """Mean of the pseudo-values (seeds, rows) of a statistic of some seeds (Tukey 1958)."""
    every = np.arange(n)
    whole = statistic(every)
    left_out = [statistic(np.delete(every, i)) for i in range(n)]
    if any(found is None for found in left_out):
        return Mean(float(whole.mean()), math.nan, n)
    return mean_of(n * whole - (n - 1) * np.array(left_out))


def bootstrap(runs: Runs, of: str, n: int, level: float) -> tuple[float, float, float]:
    """Percentile interval and two-sided p of draws of seeds and, independently, of rows.

    Draws that do not reach the target are left out; if that is more than one in twenty, there is
    no interval.

    References
    ----------
    Owen 2007, *The pigeonhole bootstrap*.
    """
    rng = np.random.default_rng(0)
    n_rows = getattr(runs, of)[SELECTED].shape[1]
    found = []
    for _ in range(DRAWS):
        value = at_matched_isotropy(runs, of, rng.integers(n, size=n))
        if value is not None:
            found.append(value[rng.integers(n_rows, size=n_rows)].mean())
    if len(found) < 0.95 * DRAWS:
        return math.nan, math.nan, math.nan
    low, high = np.quantile(found, [level / 2, 1 - level / 2])
    below = (np.sum(np.array(found) <= 0) + 1) / (len(found) + 1)
    above = (np.sum(np.array(found) >= 0) + 1) / (len(found) + 1)
    return float(low), float(high), float(min(1.0, 2 * min(below, above)))


def plain_row(values: np.ndarray, level: float) -> dict[str, object]:
    """A paired difference, (seeds,) or (seeds, rows)."""
    mean = mean_of(values)
    low, high = mean.interval(level)
    return {"estimate": mean.estimate, "low": low, "high": high, "by": "t", "p": mean.p}


def matched_row(runs: Runs, of: str, n: int, level: float) -> dict[str, object]:
    """At matched isotropy: the jackknife decides, beside an end of the line the bootstrap."""
    whole = at_matched_isotropy(runs, of, np.arange(n))
    if whole is None:
        return {}
    mean = jackknife(lambda seeds: at_matched_isotropy(runs, of, seeds), n)
    boot_low, boot_high, boot_p = bootstrap(runs, of, n, level)
    row = {"estimate": float(whole.mean()), "boot_low": boot_low, "boot_high": boot_high}
    gaps = [mean_of(runs.share[ALL] - runs.share[key]) for key in (NONE, SELECTED)]
    at_an_end = any(abs(gap.estimate) <= 2 * gap.error for gap in gaps)
    if at_an_end or math.isnan(mean.error):
        by = {"by": "bootstrap", "low": boot_low, "high": boot_high, "p": boot_p}
        return {} if math.isnan(boot_p) else row | by
    low, high = mean.interval(level)
    return row | {"by": "jackknife", "low": low, "high": high, "p": mean.p}


def decide(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The family, with Holm's adjustment and simultaneous intervals.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. What is not tested has a verdict and no number.
    """
    seeds = whole_seeds(tables["runs"])
    n, level = len(seeds), LEVEL / len(STATEMENTS)
    rows = {name: {"id": name, "n": n} for name in STATEMENTS}
    if n >= LEAST_SEEDS:
        runs = runs_of(tables, seeds)
        rows["M1"] |= plain_row(runs.share[SELECTED] - runs.share[NONE], level)
        rows["M2"] |= plain_row(runs.share[SELECTED] - runs.share[EQUAL], level)
        rows["M3"] |= plain_row(runs.correct[SELECTED] - runs.correct[NONE], level)
        rows["M4"] |= matched_row(runs, "correct", n, level)
    table = pd.DataFrame(list(rows.values())).reindex(columns=COLUMNS)
    table["statement"] = table.id.map(STATEMENTS)
    table["margin"] = table.id.map(MARGINS)
    p = table.p.astype(float)
    table["holm"] = pd.Series(multipletests(p.fillna(1.0), method="holm")[1]).where(p.notna())
    table["verdict"] = [_verdict(row) for row in table.itertuples()]
    return table


def _verdict(row: tuple) -> str:
    if pd.isna(row.p):
        return "not tested"
    if row.holm < LEVEL:
        return "less" if row.estimate < 0 else "more"
    if -row.margin < row.low and row.high < row.margin:
        return "equivalent"
    return "not decided"


def beside(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Planned, and decides nothing: 95 % intervals, not adjusted, `clusters` says of what.

    Returns
    -------
    DataFrame
        Columns comparison, n, estimate, low, high, p, clusters.
    """
    found: list[dict] = []
    seeds = whole_seeds(tables["runs"])
    pairs = [(key, NONE) for key in CONDITIONS[1:]] + [(SELECTED, EQUAL), (SELECTED, ALL)]
    if len(seeds) >= LEAST_SEEDS:
        runs = runs_of(tables, seeds)
        of_run = tables["runs"].set_index("seed")
        train = {key: _of(of_run, key).train_share[seeds].to_numpy() for key in CONDITIONS}
        quantities = {"PC1 share": runs.share, "accuracy": runs.correct, "loss": runs.loss}
        for first, second in pairs:
            names = [f"{arm} {weight:g}" if weight else arm for arm, weight in (first, second)]
            for quantity, of in (quantities | {"PC1 share in training batches": train}).items():
                values = of[first] - of[second]
                row = plain_row(values, LEVEL)
                named = {"comparison": f"{quantity}: {names[0]} − {names[1]}", "n": len(seeds)}
                numbers = {k: row[k] for k in ("estimate", "low", "high", "p")}
                clusters = "seeds" if values.ndim == 1 else "seeds and rows"
                found.append(named | numbers | {"clusters": clusters})
    return pd.DataFrame(found)


def write(folder: Path = HERE) -> None:
    """Write both tables into the folder whose records they are decided on."""
    tables = read_tables(folder)
    for name, table in (("hypotheses", decide(tables)), ("beside", beside(tables))):
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6f")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    write(parser.parse_args().folder)
