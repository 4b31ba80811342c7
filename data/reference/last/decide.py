"""The seven hypotheses of docs/preregistration_last.md, parts 1 and 2, decided on the tables here.

`python data/reference/last/decide.py [FOLDER]` writes ``hypotheses.csv`` and ``beside.csv``. It
reads the tables alone: pandas, NumPy, SciPy and statsmodels, nothing of this project.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

HERE = Path(__file__).resolve().parent
LEVEL, LATE, LEAST_SEEDS, DRAWS = 0.05, (8, 9, 10), 12, 4000
Key = tuple[str, float]
NONE, SELECTED, ISOSCORE = ("none", 0.0), ("prominent", 1.0), ("isoscore", 0.3)
SWEEP = [NONE, ("all", 4.0), ("all", 8.0), ("all", 32.0)]  # of all bars, by weight
CONDITIONS = [*SWEEP, SELECTED, ISOSCORE]
ROTATED, WHITENED, PLAIN = "centred_rotated", "whitened_rotated", "plain"
MARGINS = {"N1": 0.044, "N2": 0.02, "N3": 0.06, "W1": 0.03, "W2": 0.06, "W3": 0.06, "W4": 0.06}
STATEMENTS = {
    "N1": "all bars at weight 32 end with another PC1 share than selected bars at 1",
    "N2": "at the PC1 share of selected bars at 1, all bars keep another accuracy",
    "N3": "at the PC1 share of selected bars at 1, all bars have another late loss",
    "W1": "whitened, at the end: selected bars at 1 find another share of verses than none",
    "W2": "whitened, at the least loss: selected bars at 1 find another share of verses than none",
    "W3": "whitened, at the least loss: IsoScore* at .3 finds another share of verses than none",
    "W4": "plain, at the least loss: selected bars at 1 find another share of verses than none",
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
    """What hypotheses N are about, by condition; seeds in order."""

    share: Mapping[Key, np.ndarray]  # (seeds,), late PC1 share of the validation rows
    correct: Mapping[Key, np.ndarray]  # (seeds, rows), late, as the next one
    loss: Mapping[Key, np.ndarray]


def read_tables(folder: Path = HERE) -> dict[str, pd.DataFrame]:
    """The tables by name; the weight of ``none`` is 0."""
    tables = {}
    for name in ("runs", "evaluations", "rows", "uses", "verses"):
        table = pd.read_parquet(folder / f"{name}.parquet")
        table = table.astype({c: str for c, t in table.dtypes.items() if t == "category"})
        numbers = {c: "float64" for c, t in table.dtypes.items() if t == "float32"}
        table = table.astype(numbers).round({"weight": 6})
        tables[name] = table.assign(weight=table.weight.where(table.arm != "none", 0.0))
    return tables


def whole_seeds(runs: pd.DataFrame, keys: Sequence[Key] = CONDITIONS) -> list[int]:
    """Seeds of which every condition is on record."""
    sets = [set(runs[(runs.arm == arm) & (runs.weight == w)].seed) for arm, w in keys]
    return sorted(set.intersection(*sets))


def _of(table: pd.DataFrame, key: Key) -> pd.DataFrame:
    return table[(table.arm == key[0]) & (table.weight == key[1])]


def runs_of(tables: Mapping[str, pd.DataFrame], seeds: list[int]) -> Runs:
    """Late quantities of every condition."""
    late = tables["evaluations"]
    late = late[late.epoch.round().isin(LATE)]
    share, by_row = {}, {"correct": {}, "loss": {}}
    for key in CONDITIONS:
        share[key] = _of(late, key).groupby("seed").centred_1.mean()[seeds].to_numpy()
        rows = _of(tables["rows"], key)
        for name, found in by_row.items():
            wide = rows.pivot(index="seed", columns="row", values=name)
            found[key] = wide.loc[seeds].to_numpy()
    return Runs(share, **by_row)


def place(shares: Sequence[float], target: float) -> tuple[int, int, float] | None:
    """First pair of neighbouring points that enclose the target, and how far between them."""
    for i, (first, second) in enumerate(pairwise(shares)):
        if min(first, second) <= target <= max(first, second):
            return i, i + 1, (target - first) / (second - first) if first != second else 0.0
    return None


def at_matched_isotropy(runs: Runs, of: str, seeds: np.ndarray) -> np.ndarray | None:
    """(rows,): selected bars at 1 minus all bars where the sweep has their PC1 share; or None."""
    values = getattr(runs, of)
    found = place([runs.share[k][seeds].mean() for k in SWEEP], runs.share[SELECTED][seeds].mean())
    if found is None:
        return None
    first, second = (values[SWEEP[i]][seeds].mean(axis=0) for i in found[:2])
    return values[SELECTED][seeds].mean(axis=0) - (first + found[2] * (second - first))


def jackknife(statistic: Callable[[np.ndarray], np.ndarray], n: int) -> Mean:
    """Mean of the pseudo-values (seeds, rows) of a statistic of some seeds (Tukey 1958)."""
    every = np.arange(n)
    whole = statistic(every)
    left_out = [statistic(np.delete(every, i)) for i in range(n)]
    if any(found is None for found in left_out):
        return Mean(float(whole.mean()), math.nan, n)
    return mean_of(n * whole - (n - 1) * np.array(left_out))


def bootstrap(runs: Runs, of: str, n: int, level: float) -> tuple[float, float, float]:
    """Percentile interval and two-sided p of draws of seeds and, independently, of rows.

    Draws whose sweep does not reach the target are left out; if that is more than one in twenty,
    there is no interval.

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


def beside_a_knot(runs: Runs) -> bool:
    """Whether selected bars' mean share lies within two errors of a knot of the sweep."""
    gaps = [mean_of(runs.share[SELECTED] - runs.share[key]) for key in SWEEP]
    return any(abs(gap.estimate) <= 2 * gap.error for gap in gaps)


def matched_row(runs: Runs, of: str, n: int, level: float) -> dict[str, object]:
    """A hypothesis at matched isotropy: the jackknife decides, beside a knot the bootstrap."""
    whole = at_matched_isotropy(runs, of, np.arange(n))
    if whole is None:
        return {}
    mean = jackknife(lambda seeds: at_matched_isotropy(runs, of, seeds), n)
    boot_low, boot_high, boot_p = bootstrap(runs, of, n, level)
    row = {"estimate": float(whole.mean()), "boot_low": boot_low, "boot_high": boot_high}
    if beside_a_knot(runs) or math.isnan(mean.error):
        by = {"by": "bootstrap", "low": boot_low, "high": boot_high, "p": boot_p}
        return {} if math.isnan(boot_p) else row | by
    low, high = mean.interval(level)
    return row | {"by": "jackknife", "low": low, "high": high, "p": mean.p}


def verse_hits(
    tables: Mapping[str, pd.DataFrame],
    key: Key,
    *,
    moment: str,
    treatment: str,
    seeds: list[int],
    use: str = "verses_one_bit",
) -> np.ndarray:
    """(seeds, verses): the chance that the right verse is among the ten nearest."""
    rows = _of(tables["verses"], key)
    rows = rows[(rows.moment == moment) & (rows.treatment == treatment) & (rows.use == use)]
    return rows.pivot(index="seed", columns="row", values="hit").loc[seeds].to_numpy()


USES = {  # condition, moment, treatment of both sides
    "W1": (SELECTED, "end", WHITENED),
    "W2": (SELECTED, "least", WHITENED),
    "W3": (ISOSCORE, "least", WHITENED),
    "W4": (SELECTED, "least", PLAIN),
}


def plain_row(values: np.ndarray, level: float) -> dict[str, object]:
    """A paired difference, (seeds,) or (seeds, rows)."""
    mean = mean_of(values)
    low, high = mean.interval(level)
    return {"estimate": mean.estimate, "low": low, "high": high, "by": "t", "p": mean.p}


def decide(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Both families, each with Holm's adjustment and simultaneous intervals.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. What is not tested has a verdict and no number.
    """
    seeds = whole_seeds(tables["runs"])
    n = len(seeds)
    rows = {name: {"id": name, "n": n} for name in STATEMENTS}
    if n >= LEAST_SEEDS:
        runs, level = runs_of(tables, seeds), LEVEL / 3
        rows["N1"] |= plain_row(runs.share[SWEEP[-1]] - runs.share[SELECTED], level)
        rows["N2"] |= matched_row(runs, "correct", n, level)
        rows["N3"] |= matched_row(runs, "loss", n, level)
        for name, (key, moment, treatment) in USES.items():
            how = {"moment": moment, "treatment": treatment, "seeds": seeds}
            difference = verse_hits(tables, key, **how) - verse_hits(tables, NONE, **how)
            rows[name] |= plain_row(difference, LEVEL / 4)
    table = pd.DataFrame(list(rows.values())).reindex(columns=COLUMNS)
    table["statement"] = table.id.map(STATEMENTS)
    table["margin"] = table.id.map(MARGINS)
    for letter in "NW":
        family = table.id.str.startswith(letter)
        p = table.p[family].astype(float)
        adjusted = multipletests(p.fillna(1.0), method="holm")[1]
        table.loc[family, "holm"] = pd.Series(adjusted, p.index).where(p.notna())
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
        Columns part, comparison, n, estimate, low, high, p, clusters.
    """
    found: list[dict] = []
    seeds = whole_seeds(tables["runs"])

    def add(part: str, comparison: str, values: np.ndarray) -> None:
        row = plain_row(values, LEVEL)
        clusters = "seeds" if values.ndim == 1 else "seeds and rows"
        named = {"part": part, "comparison": comparison, "n": len(values), "clusters": clusters}
        found.append(named | {k: row[k] for k in ("estimate", "low", "high", "p")})

    if len(seeds) >= 2:
        runs = runs_of(tables, seeds)
        of_run = tables["runs"].set_index("seed")
        for key in CONDITIONS[1:]:
            name = f"{key[0]} {key[1]:g} − none"
            add("late", f"PC1 share: {name}", runs.share[key] - runs.share[NONE])
            add("late", f"accuracy: {name}", runs.correct[key] - runs.correct[NONE])
            add("late", f"loss: {name}", runs.loss[key] - runs.loss[NONE])
            for of in ("share_least", "train_share"):
                own, none = (_of(of_run, k)[of][seeds].to_numpy() for k in (key, NONE))
                add("least" if of == "share_least" else "late", f"{of}: {name}", own - none)
            for of in ("correct_least", "loss_least"):
                own, none = (_least(tables, k, of, seeds) for k in (key, NONE))
                add("least", f"{of}: {name}", own - none)
        for key in (("all", 4.0), ("all", 8.0), ("all", 32.0)):
            name = f"prominent 1 − all {key[1]:g}"
            add("late", f"PC1 share: {name}", runs.share[SELECTED] - runs.share[key])
        found += _uses(tables, seeds)
    return pd.DataFrame(found)


def _least(tables: Mapping[str, pd.DataFrame], key: Key, of: str, seeds: list[int]) -> np.ndarray:
    """(seeds, rows) at the least loss, of the half of the rows that did not choose it."""
    rows = _of(tables["rows"], key)
    return rows[~rows.chooses].pivot(index="seed", columns="row", values=of).loc[seeds].to_numpy()


def _uses(tables: Mapping[str, pd.DataFrame], seeds: list[int]) -> list[dict]:
    """Every use of every condition and treatment, minus plain none at the same moment."""
    uses, found = tables["uses"], []
    keys = ["moment", "use", "arm", "weight", "treatment"]
    plain = uses[(uses.arm == "none") & (uses.treatment == PLAIN)]
    for (moment, use, arm, weight, treatment), of in uses.groupby(keys):
        if (arm, treatment) == ("none", PLAIN):
            continue
        if use.startswith("verses"):
            how = {"moment": moment, "use": use, "seeds": seeds}
            own = verse_hits(tables, (arm, weight), treatment=treatment, **how)
            values = own - verse_hits(tables, NONE, treatment=PLAIN, **how)
        else:
            theirs = plain[(plain.moment == moment) & (plain.use == use)].set_index("seed").value
            values = (of.set_index("seed").value - theirs).reindex(seeds).dropna().to_numpy()
        if len(values) >= 2:
            name = f"{use}, {moment}: {arm} {weight:g} ({treatment}) − none (plain)"
            row = plain_row(values, LEVEL)
            clusters = "seeds" if values.ndim == 1 else "seeds and rows"
            named = {"part": "uses", "comparison": name, "n": len(values), "clusters": clusters}
            found.append(named | {k: row[k] for k in ("estimate", "low", "high", "p")})
    return found


def write(folder: Path = HERE, target: Path | None = None) -> None:
    """Write both tables into `target`, by default the folder whose records they are decided on."""
    tables = read_tables(folder)
    for name, table in (("hypotheses", decide(tables)), ("beside", beside(tables))):
        table.to_csv((target or folder) / f"{name}.csv", index=False, float_format="%.6f")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    write(parser.parse_args().folder)
