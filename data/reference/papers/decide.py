"""The fifteen hypotheses of docs/preregistration_papers.md, decided on the tables here.

`python data/reference/papers/decide.py [FOLDER]` writes ``hypotheses.csv`` and ``beside.csv``. It
reads the tables alone: pandas, NumPy, SciPy and statsmodels, nothing of this project.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

HERE = Path(__file__).resolve().parent
LEVEL, LEAST_SEEDS = 0.05, 6
QUERY_KEY, OTHERS = ("query", "key"), ("value", "out", "W1", "W2")
EVERY = (*QUERY_KEY, *OTHERS)
SIZES, TWIN = ("s1", "s2", "s3", "s4", "s5"), "s4"
UPPER = (3, 4)  # of four layers
COLUMNS = "id repeats statement expected margin n estimate low high p holm verdict".split()
Tables = Mapping[str, pd.DataFrame]
BySeed = pd.Series  # index seed


def read_tables(folder: Path = HERE) -> dict[str, pd.DataFrame]:
    """The tables by name; blocks of trainings that do not count, and what compares them, left out.

    A training counts if its held-out loss is below that of word frequencies and, for translation,
    below that of a copy.
    """
    tables = {}
    for path in sorted(folder.glob("*.parquet")):
        table = pd.read_parquet(path)
        table = table.astype({c: str for c, t in table.dtypes.items() if t == "category"})
        numbers = {c: "float64" for c, t in table.dtypes.items() if t == "float32"}
        tables[path.stem] = table.astype(numbers)
    wide = tables["losses"].pivot(index="block", columns="what", values="loss")
    floors = wide.reindex(columns=["unigram", "copy"]).min(axis=1)
    bad = {*wide.index[~(wide.trained < floors)]}
    if bad:  # a seed whose trainings do not all count is left out: seeds are paired
        of = tables["trainings"]
        seeds = {*of.data_seed[of.block.isin(bad)]}
        runs = tables["runs"].block.str.extract(r"(\d+)$")[0]
        for name, table in tables.items():
            if "seed" in table:
                tables[name] = table[~table.seed.isin(seeds)]
        tables["runs"] = tables["runs"][~runs.isin([str(seed) for seed in seeds])]
        of_stitch = tables["stitches"].back.str.rpartition("-")[2].astype(int)
        tables["stitches"] = tables["stitches"][~of_stitch.isin(seeds)]
    return tables


def hurting(
    tables: Tables,
    objective: str,
    components: Sequence[str],
    rule: str,
    *,
    last: bool = False,
    by_window: bool = False,
) -> BySeed:
    """Share of the counted block-steps of these components that hurt.

    Windows are pooled by their steps; `by_window` gives each the same weight.
    """
    of = tables["places"]
    of = of[(of.part == "objectives") & (of.objective == objective) & (of.rule == rule)]
    of = of[(of.layer > 0) & of.component.str.removeprefix("cross ").isin(components)]
    if last:
        of = of[of.window == of.window.max()]
    sums = of.groupby(["seed", "window"])[["hurts", "steps"]].sum()
    if by_window:
        return (sums.hurts / sums.steps).groupby("seed").mean()
    sums = sums.groupby("seed").sum()
    return sums.hurts / sums.steps


def masked_queries(tables: Tables, rule: str, **how: bool) -> BySeed:
    """V1."""
    return hurting(tables, "mlm", QUERY_KEY, rule, **how) - hurting(
        tables, "mlm", OTHERS, rule, **how
    )


def translation_values(tables: Tables, rule: str, **how: bool) -> BySeed:
    """V2."""
    return hurting(tables, "mt", ("value", "out", "W2"), rule, **how) - hurting(
        tables, "mt", QUERY_KEY, rule, **how
    )


def causal_is_done(tables: Tables, rule: str) -> BySeed:
    """V3."""
    clm, mlm, mt = (hurting(tables, name, EVERY, rule, last=True) for name in ("clm", "mlm", "mt"))
    return clm - (mlm + mt) / 2


def upper_feed_forward(tables: Tables, *, components: Sequence[str] = ()) -> BySeed:
    """V4: the trunk is all that is followed of the layers from 1 on, or `components` alone."""
    of = tables["places"]
    of = of[(of.part == "objectives") & (of.objective == "mt") & (of.rule == "trapezoid")]
    of = of[of.layer > 0]
    if components:
        of = of[of.component.str.removeprefix("cross ").isin(components)]
    whole = of.groupby(["seed", "stack"]).value.sum()
    of = of[of.component.isin(("W1", "W2"))]
    signs = np.where(of.layer.isin(UPPER), 1, -1)
    return ((of.value * signs).groupby([of.seed, of["stack"]]).sum() / whole).groupby("seed").mean()


def avg_sims(tables: Tables, objective: str) -> pd.DataFrame:
    """AvgSim by seed and layer of a trained encoder."""
    of = tables["layers"]
    of = of[(of.measure == "avg_sim") & (of.state == "trained") & (of.objective == objective)]
    return of.pivot(index="seed", columns="layer", values="value")


def last_jump(tables: Tables) -> BySeed:
    """S1: layer 0 are the embeddings."""
    found = avg_sims(tables, "mt")
    top = found.columns.max()
    return found[top] - found[top - 1] - (found[top - 1] - found[0]) / (top - 1)


def at_embeddings(tables: Tables) -> BySeed:
    """S2."""
    return avg_sims(tables, "mt")[0] - avg_sims(tables, "mlm")[0]


def aligned_gain(tables: Tables) -> BySeed:
    """S3."""
    of = tables["aligned"]
    wide = of[of["map"] == "affine"].pivot(index="seed", columns="encoder", values="loss")
    return wide["mlm"] - wide["untrained"]


def both_ways(tables: Tables) -> pd.DataFrame:
    """The family's CKA with every pair of layers once in each order."""
    of = tables["family"]
    names = {"a": "b", "b": "a", "layer_a": "layer_b", "layer_b": "layer_a"}
    other = of[(of.a != of.b) | (of.layer_a != of.layer_b)].rename(columns=names)
    return pd.concat([of, other], ignore_index=True)


def likeness(tables: Tables, member: str) -> BySeed:
    """Mean CKA of a member with the four sizes that are neither its twin nor itself.

    Over all pairs of layers but the embeddings; a size counts once, however deep it is.
    """
    of = both_ways(tables)
    rest = [size for size in SIZES if size not in (TWIN, member)]
    of = of[(of.a == member) & of.b.isin(rest) & (of.layer_a > 0) & (of.layer_b > 0)]
    return of.groupby(["seed", "b"]).cka.mean().groupby("seed").mean()


def faded(tables: Tables, *, first: int = 1) -> BySeed:
    """B1: the first layer is the one above the embeddings, which are layer 0."""
    of = both_ways(tables)
    of = of[of.a.isin(SIZES) & of.b.isin(SIZES) & (of.a < of.b)]
    tops = of.groupby("a").layer_a.transform("max"), of.groupby("b").layer_b.transform("max")
    below = of[(of.layer_a == first) & (of.layer_b == first)].groupby("seed").cka.mean()
    return below - of[(of.layer_a == tops[0]) & (of.layer_b == tops[1])].groupby("seed").cka.mean()


def asymmetry(tables: Tables, value: str = "penalty") -> BySeed:
    """B4."""
    of = tables["stitches"]
    of = of[(of.relation == "activation") & (of.kind == "trained")]
    seed = of.back.str.rpartition("-")[2].astype(int).rename("seed")
    below = of.front.str.startswith("solu")
    cells = of.assign(seed=seed).groupby(["seed", "depth", below])[value].mean().unstack()
    return (cells[True] - cells[False]).groupby("seed").mean()


def elongated_growth(tables: Tables, *, when: str = "after") -> BySeed:
    """R1."""
    of = tables["finetuned"]
    of = of[(of.quantity == "elongated") & (of.vectors == "words") & (of.arm == "none")]
    wide = of.pivot(index=["seed", "task"], columns="when", values="value")
    both = (wide[when] - wide["before"]).unstack()
    return both.dropna().mean(axis=1)


class Question(NamedTuple):
    """One hypothesis: a value per seed, and the sign that the paper gives it."""

    id: str
    repeats: str
    statement: str
    statistic: Callable[[Tables], BySeed]
    expected: int
    margin: float


TRAPEZOID = ", by the trapezoid"
MASKED = "masked LM: queries and keys hurt more often than value, out, W1 and W2"
TRANSLATION = "translation: value, out and W2 hurt more often than queries and keys"
CAUSAL = "in the last window the causal LM's six components hurt less often than the mean of both"
QUESTIONS = [
    Question("P1", "V1", MASKED, partial(masked_queries, rule="euler"), 1, 0.03),
    Question("P2", "V2", TRANSLATION, partial(translation_values, rule="euler"), 1, 0.02),
    Question("P3", "V3", CAUSAL, partial(causal_is_done, rule="euler"), -1, 0.06),
    Question("P4", "V1", MASKED + TRAPEZOID, partial(masked_queries, rule="trapezoid"), 1, 0.03),
    Question("P5", "V2", TRANSLATION + TRAPEZOID,
             partial(translation_values, rule="trapezoid"), 1, 0.02),
    Question("P6", "V3", CAUSAL + TRAPEZOID, partial(causal_is_done, rule="trapezoid"), -1, 0.06),
    Question("P7", "V4", "translation: W1 and W2 of layers 3 and 4 do more than those of 1 and 2",
             upper_feed_forward, 1, 0.16),
    Question("P8", "S1", "translation encoder: AvgSim rises more at the last layer than before",
             last_jump, 1, 0.05),
    Question("P9", "S2", "AvgSim of layer 0: translation above masked LM",
             at_embeddings, 1, 0.05),
    Question("P10", "S3", "loss under an affine map: masked LM below untrained",
             aligned_gain, -1, 0.12),
    Question("P11", "B1", "CKA over pairs of sizes: first layers above last layers",
             faded, 1, 0.05),
    Question("P12", "B2", "likeness: narrow below s4",
             lambda t: likeness(t, "narrow") - likeness(t, TWIN), -1, 0.02),
    Question("P13", "B3", "likeness: shifted below s4",
             lambda t: likeness(t, "shifted") - likeness(t, TWIN), -1, 0.02),
    Question("P14", "B4", "penalty of trained maps: SoLU below GeLU above GeLU below SoLU",
             asymmetry, 1, 0.02),
    Question("P15", "R1", "elongated directions of words, last layer: after above before",
             elongated_growth, 1, 2.0),
]  # fmt: skip
BESIDE: dict[str, Callable[[Tables], BySeed]] = {
    "P1, windows weighted equally": partial(masked_queries, rule="euler", by_window=True),
    "P2, windows weighted equally": partial(translation_values, rule="euler", by_window=True),
    "P4, windows weighted equally": partial(masked_queries, rule="trapezoid", by_window=True),
    "P5, windows weighted equally": partial(translation_values, rule="trapezoid", by_window=True),
    "P7, of the six components alone": partial(upper_feed_forward, components=EVERY),
    "P11, embeddings as the first layer": partial(faded, first=0),
    "P14, of losses": partial(asymmetry, value="loss"),
    "P15, by the mean eigenvalue before": partial(elongated_growth, when="after, mean before"),
}


def interval(values: np.ndarray, level: float) -> tuple[float, float]:
    """Student's t with (seeds − 1) degrees of freedom."""
    half = stats.t.isf(level / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def p_of(values: np.ndarray) -> float:
    """Two-sided p of a mean of 0; equal values spread nowhere."""
    if values.std(ddof=1) == 0:
        return float(values.mean() == 0)
    return float(stats.ttest_1samp(values, 0).pvalue)


def decide(tables: Tables) -> pd.DataFrame:
    """One row per hypothesis; its interval is the simultaneous one.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. What is not tested has a verdict and no number.
    """
    rows, n = [], tables["places"].seed.nunique()
    for of in QUESTIONS:
        row = {name: getattr(of, name) for name in COLUMNS[:5]} | {"n": n}
        if n >= LEAST_SEEDS:
            values = of.statistic(tables).dropna().to_numpy(dtype=float)
            if len(values) < n:
                raise ValueError(f"{of.id}: {len(values)} seeds of {n} have a value")
            low, high = interval(values, LEVEL / len(QUESTIONS))
            row |= {"estimate": values.mean(), "low": low, "high": high, "p": p_of(values)}
        rows.append(row)
    table = pd.DataFrame(rows).reindex(columns=COLUMNS)
    p = table.p.astype(float)
    adjusted = multipletests(p.fillna(1.0), method="holm")[1]
    table["holm"] = pd.Series(adjusted, table.index).where(p.notna())
    table["verdict"] = [_verdict(row) for row in table.itertuples()]
    return table


def _verdict(row: tuple) -> str:
    if pd.isna(row.p):
        return "not tested"
    if row.holm < LEVEL:
        return "as the paper" if row.estimate * row.expected > 0 else "opposite"
    if -row.margin < row.low and row.high < row.margin:
        return "equivalent"
    return "not decided"


def beside(tables: Tables) -> pd.DataFrame:
    """Other readings of the same quantities, with 95 % intervals; they decide nothing."""
    rows, n = [], tables["places"].seed.nunique()
    for name, statistic in BESIDE.items() if n >= LEAST_SEEDS else ():
        values = statistic(tables).to_numpy(dtype=float)
        low, high = interval(values, LEVEL)
        row = {"comparison": name, "n": n, "estimate": values.mean(), "low": low, "high": high}
        rows.append(row)
    return pd.DataFrame(rows)


def write(folder: Path = HERE, target: Path | None = None) -> None:
    """Write both tables into `target`, by default the folder whose records they are decided on."""
    tables = read_tables(folder)
    for name, table in (("hypotheses", decide(tables)), ("beside", beside(tables))):
        table.to_csv((target or folder) / f"{name}.csv", index=False, float_format="%.6f")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    write(parser.parse_args().folder)
