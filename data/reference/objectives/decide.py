"""The twelve hypotheses of docs/preregistration_objectives.md, decided on the tables beside it.

`python data/reference/objectives/decide.py` writes ``hypotheses.csv`` and ``beside.csv``. It reads
the tables alone: pandas, NumPy and SciPy, nothing of this project.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

HERE = Path(__file__).parent
LEVEL, LEAST_SEEDS = 0.05, 3
PAPER = "euler"  # whose signs are counted; sums are the trapezoid's
QUERY_KEY, OTHERS = ("query", "key"), ("value", "out", "W1", "W2")
SIZES, TWIN = ("s1", "s2", "s3", "s4", "s5"), "s4"
UPPER = (3, 4)  # of four layers
Tables = Mapping[str, pd.DataFrame]
BySeed = pd.Series  # index seed


def read_tables(folder: Path = HERE) -> dict[str, pd.DataFrame]:
    """The tables that are there, by name; those of trainings that do not count are left out.

    A training counts if its held-out loss is below that of word frequencies and, for translation,
    below that of a copy. What compares models that do not count is left out with them.

    Raises
    ------
    FileNotFoundError
        Nothing is on record.
    """
    tables = {}
    for path in sorted(folder.glob("*.parquet")):
        table = pd.read_parquet(path)
        table = table.astype({c: str for c, t in table.dtypes.items() if t == "category"})
        numbers = {c: "float64" for c, t in table.dtypes.items() if t == "float32"}
        tables[path.stem] = table.astype(numbers)
    if "runs" not in tables:
        raise FileNotFoundError(f"{folder}: no runs.parquet: `run.py FOLDER --collect` writes it")
    bad = failed(tables)
    for name, table in tables.items():
        if name != "losses":
            tables[name] = table[~table.block.map(lambda block: _spoilt(block, bad))]
    return tables


def failed(tables: Tables) -> set[str]:
    """Blocks whose model learnt less than word frequencies or a copy."""
    if "losses" not in tables:
        return set()
    wide = tables["losses"].pivot(index="block", columns="what", values="loss")
    floors = wide.reindex(columns=["unigram", "copy"]).min(axis=1)
    return set(wide.index[wide.trained >= floors])


def _spoilt(block: str, bad: set[str]) -> bool:
    """Whether a block is, or compares, a training that does not count."""
    kind, _, rest = block.partition("-")
    if kind == "spaces":
        return bool(bad & {f"mlm-{rest}", f"mt-{rest}"})
    if kind == "family" and "-" not in rest:
        return any(name.startswith("family-") and name.endswith(f"-{rest}") for name in bad)
    if kind == "stitch" and "-" not in rest:
        return any(name.startswith(f"stitch-{rest}-") for name in bad)
    return block in bad


def hurting(tables: Tables, objective: str, components: Sequence[str], *, last=False) -> BySeed:
    """Share of the counted block-steps of these components that hurt, by the paper's rule."""
    of = tables["places"]
    of = of[(of.part == "objectives") & (of.objective == objective) & (of.rule == PAPER)]
    of = of[(of.layer > 0) & of.component.str.removeprefix("cross ").isin(components)]
    if last:
        of = of[of.window == of.window.max()]
    sums = of.groupby("seed")[["hurts", "steps"]].sum()
    return sums.hurts / sums.steps


def queries_of_masked(tables: Tables) -> BySeed:
    """V1."""
    return hurting(tables, "mlm", QUERY_KEY) - hurting(tables, "mlm", OTHERS)


def values_of_translation(tables: Tables) -> BySeed:
    """V2."""
    return hurting(tables, "mt", ("value", "out", "W2")) - hurting(tables, "mt", QUERY_KEY)


def causal_is_done(tables: Tables) -> BySeed:
    """V3."""
    every = (*QUERY_KEY, *OTHERS)
    clm, mlm, mt = (hurting(tables, name, every, last=True) for name in ("clm", "mlm", "mt"))
    return clm - (mlm + mt) / 2


def upper_feed_forward(tables: Tables) -> BySeed:
    """V4."""
    of = tables["places"]
    of = of[(of.part == "objectives") & (of.objective == "mt") & (of.rule == "trapezoid")]
    of = of[of.layer > 0]
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
    """S1."""
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
    """Mean CKA of a member with the four sizes that are not its twin, over all pairs of layers.

    Embeddings are left out; a size counts once, however deep it is.
    """
    of = both_ways(tables)
    rest = [size for size in SIZES if size != TWIN]
    of = of[(of.a == member) & of.b.isin(rest) & (of.layer_a > 0) & (of.layer_b > 0)]
    return of.groupby(["seed", "b"]).cka.mean().groupby("seed").mean()


def faded(tables: Tables) -> BySeed:
    """B1."""
    of = both_ways(tables)
    of = of[of.a.isin(SIZES) & of.b.isin(SIZES) & (of.a < of.b)]
    tops = of.groupby("a").layer_a.transform("max"), of.groupby("b").layer_b.transform("max")
    first = of[(of.layer_a == 1) & (of.layer_b == 1)].groupby("seed").cka.mean()
    last = of[(of.layer_a == tops[0]) & (of.layer_b == tops[1])].groupby("seed").cka.mean()
    return first - last


def asymmetry(tables: Tables) -> BySeed:
    """B4."""
    of = tables["stitches"]
    of = of[(of.relation == "activation") & (of.kind == "trained")]
    seed = of.back.str.rpartition("-")[2].astype(int).rename("seed")
    below = of.front.str.startswith("solu")
    cells = of.assign(seed=seed).groupby(["seed", "depth", below]).penalty.mean().unstack()
    return (cells[True] - cells[False]).groupby("seed").mean()


def elongated_growth(tables: Tables) -> BySeed:
    """R1."""
    of = tables["finetuned"]
    of = of[(of.quantity == "elongated") & (of.vectors == "words") & (of.arm == "none")]
    wide = of.pivot(index=["seed", "task"], columns="when", values="value")
    both = (wide["after"] - wide["before"]).unstack()
    return both.dropna().mean(axis=1)


@dataclass(frozen=True)
class Question:
    """One hypothesis: a value per seed, and the sign that the paper gives it."""

    id: str
    statement: str
    statistic: Callable[[Tables], BySeed]
    expected: int
    margin: float


QUESTIONS = [
    Question("V1", "masked LM: queries and keys hurt more often than the rest",
             queries_of_masked, 1, 0.02),
    Question("V2", "translation: values, out and W2 hurt more often than queries and keys",
             values_of_translation, 1, 0.02),
    Question("V3", "in the last window the causal LM's blocks hurt least often",
             causal_is_done, -1, 0.02),
    Question("V4", "translation: feed-forward blocks do more in the upper layers",
             upper_feed_forward, 1, 0.02),
    Question("S1", "the translation encoder's AvgSim jumps at the last layer", last_jump, 1, 0.05),
    Question("S2", "it is more anisotropic at the embeddings than the masked LM",
             at_embeddings, 1, 0.05),
    Question("S3", "aligned, a masked LM serves the decoder better than an untrained one",
             aligned_gain, -1, 0.1),
    Question("B1", "sizes: first layers are more alike than last layers", faded, 1, 0.05),
    Question("B2", "a small head dimension makes a member odd",
             lambda t: likeness(t, "narrow") - likeness(t, TWIN), -1, 0.02),
    Question("B3", "another seed alone makes a member odd",
             lambda t: likeness(t, "shifted") - likeness(t, TWIN), -1, 0.02),
    Question("B4", "SoLU below GeLU costs more than GeLU below SoLU", asymmetry, 1, 0.02),
    Question("R1", "fine-tuning adds elongated directions", elongated_growth, 1, 2.0),
]  # fmt: skip


def interval(values: np.ndarray, level: float) -> tuple[float, float]:
    """Student's, seeds − 1 degrees of freedom; NaN for one seed."""
    if len(values) < 2:
        return math.nan, math.nan
    half = stats.t.isf(level / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return values.mean() - half, values.mean() + half


def p_of(values: np.ndarray) -> float:
    """Two-sided p of a mean of 0; equal values spread nowhere."""
    if values.std(ddof=1) == 0:
        return float(values.mean() == 0)
    return float(stats.ttest_1samp(values, 0).pvalue)


def holm(p: np.ndarray) -> np.ndarray:
    """Adjusted p; what was not tested counts as one, and stays NaN."""
    filled = np.where(np.isnan(p), 1.0, p)
    order = np.argsort(filled, kind="stable")
    steps = np.maximum.accumulate(filled[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1.0)
    return np.where(np.isnan(p), np.nan, adjusted)


def decide(tables: Tables) -> pd.DataFrame:
    """One row per hypothesis.

    Returns
    -------
    DataFrame
        id, statement, expected (the paper's sign), margin, n (seeds), estimate, its 95 % interval
        (low, high) and simultaneous one (all_low, all_high), p, holm, verdict.
    """
    rows = []
    for q in QUESTIONS:
        values = _values(tables, q)
        row = {"id": q.id, "statement": q.statement, "expected": q.expected, "margin": q.margin}
        row |= {"n": len(values), "p": math.nan}
        if len(values) >= LEAST_SEEDS:
            row |= {"estimate": values.mean(), "p": p_of(values)}
            row |= dict(zip(("low", "high"), interval(values, LEVEL), strict=True))
            wide = interval(values, LEVEL / len(QUESTIONS))
            row |= dict(zip(("all_low", "all_high"), wide, strict=True))
        rows.append(row)
    columns = "id statement expected margin n estimate low high all_low all_high p".split()
    table = pd.DataFrame(rows).reindex(columns=columns)
    table["holm"] = holm(table.p.to_numpy())
    table["verdict"] = [_verdict(row) for row in table.itertuples()]
    return table


def _values(tables: Tables, question: Question) -> np.ndarray:
    """The statistic by seed; empty where its tables are not there."""
    try:
        return question.statistic(tables).dropna().to_numpy(dtype=float)
    except KeyError:  # a table, an objective or a member that is not on record
        return np.array([])


def _verdict(row: tuple) -> str:
    if np.isnan(row.p):
        return "not tested"
    if row.holm < LEVEL:
        return "as the paper" if row.estimate * row.expected > 0 else "opposite"
    inside = -row.margin < row.all_low and row.all_high < row.margin
    return "equivalent" if inside else "open"


def beside(tables: Tables) -> pd.DataFrame:
    """What was planned beside the hypotheses: mean and 95 % interval over seeds; decides nothing.

    Returns
    -------
    DataFrame
        Columns part, quantity, n, estimate, low, high.
    """
    rows: list[dict] = []
    for name, keys, value in DESCRIBED:
        if name in tables and len(tables[name]):
            rows += _described(name, tables[name], keys, value)
    for extra in (_shares, _hurts, _members, _stability):
        try:
            rows += extra(tables)
        except KeyError:  # not on record yet
            continue
    columns = ["part", "quantity", "n", "estimate", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


DESCRIBED = (
    ("losses", ["part", "objective", "member", "source", "what"], "loss"),
    ("closure", ["part", "objective", "source", "window", "rule"], "missed share"),
    ("layers", ["objective", "state", "measure", "layer"], "value"),
    ("layers", ["objective", "state", "measure", "layer"], "null"),
    ("alike", ["measure", "state", "layer"], "value"),
    ("alike", ["measure", "state", "layer"], "null"),
    ("aligned", ["encoder", "map"], "loss"),
    ("aligned", ["encoder", "map"], "agreement"),
    ("family", ["a", "layer_a", "b", "layer_b"], "cka"),
    ("stitches", ["depth", "relation", "below", "above", "kind", "layer"], "penalty"),
    ("finetuned", ["task", "arm", "quantity", "vectors", "layer", "when"], "value"),
    ("removals", ["task", "arm", "when", "treatment", "removed", "skipped"], "value"),
)


def _described(name: str, table: pd.DataFrame, keys: Sequence[str], value: str) -> list[dict]:
    """Rows of one table, by its keys: the spread is that of the seeds."""
    if name == "closure":
        table = table.assign(**{value: (table.parts - table.change).abs() / table.change.abs()})
    if name == "stitches":
        seed = table.back.str.rpartition("-")[2]
        below, above = (table[c].str.extract(r"(gelu|solu)")[0] for c in ("front", "back"))
        table = table.assign(seed=seed, below=below, above=above)
    here = [key for key in keys if key in table]
    table = table.assign(**{key: table[key].fillna("").astype(str) for key in here})
    found = []
    for key, of in table.groupby(here):
        said = " · ".join(part for part in key if part)
        found.append(_row(name, f"{value}: {said}", of.groupby("seed")[value].mean()))
    return found


def _row(part: str, quantity: str, by_seed: pd.Series) -> dict:
    values = by_seed.dropna().to_numpy(dtype=float)
    mean = float(values.mean()) if len(values) else math.nan
    low, high = interval(values, LEVEL)
    found = {"part": part, "quantity": quantity, "n": len(values)}
    return found | {"estimate": mean, "low": low, "high": high}


def _shares(tables: Tables) -> list[dict]:
    """Shares of the trunk's loss change, and of heads within it; all windows together."""
    found = []
    for name, last in (("places", "component"), ("heads", "head")):
        of = tables[name]
        of = of[(of.part == "objectives") & (of.layer > 0)]
        trunk = tables["places"].query("part == 'objectives' and layer > 0")
        run = ["objective", "rule", "seed"]
        whole = trunk.groupby(run).value.sum()
        sums = of.groupby([*run, "stack", "layer", last]).value.sum()
        shares = (sums / whole).rename("share").reset_index()
        for key, rows in shares.groupby(["objective", "rule", "stack", "layer", last]):
            said = " · ".join(str(part) for part in key if part != "")
            found.append(_row("shares", f"{name}: {said}", rows.set_index("seed").share))
    return found


def _hurts(tables: Tables) -> list[dict]:
    """The paper's table: how often a component hurt, when last, and by how much at most."""
    of = tables["places"]
    of = of[(of.part == "objectives") & (of.layer >= 0) & (of.steps > 0)]
    of = of.assign(component=of.component.str.removeprefix("cross "))
    found = []
    for key, rows in of.groupby(["objective", "rule", "component"]):
        by = rows.groupby("seed")
        said = " · ".join(key)
        share = by.hurts.sum() / by.steps.sum()
        for what, values in (
            ("share", share),
            ("last", by["last"].max()),
            ("largest", by.largest.max()),
        ):
            found.append(_row("hurts", f"{what}: {said}", values))
    return found


def _members(tables: Tables) -> list[dict]:
    """Likeness of every member to the other sizes, and of neighbouring layers inside it."""
    found, of = [], both_ways(tables)
    for member in (*SIZES, "narrow", "shifted"):
        found.append(_row("members", f"likeness: {member}", likeness(tables, member)))
        own = of[(of.a == member) & (of.b == member) & (of.layer_a > 0)]
        for what, rows in (
            ("neighbouring layers", own[own.layer_b - own.layer_a == 1]),
            ("all layers", own[own.layer_b > own.layer_a]),
        ):
            found.append(_row("members", f"{what}: {member}", rows.groupby("seed").cka.mean()))
    return found


DIFFERENCES = {
    "seed alone": [(s, s) for s in ("testament", "half", "gramps", "german", "finnish")],
    "seed and size": [("testament", "half")],
    "seed and language": [("german", "finnish")],
    "seed, domain and size": [("testament", "gramps")],
    "seed, domain, language and size": list(product(["testament"], ["german", "finnish"])),
}


def _stability(tables: Tables) -> list[dict]:
    """Pearson's r of profiles, the trunk's shares by layer and component, of other seeds."""
    of = tables["places"]
    of = of[(of.part == "stability") & (of.rule == "trapezoid") & (of.layer > 0)]
    profiles = of.pivot_table(
        index=["source", "seed"], columns=["layer", "component"], values="value"
    )
    found = []
    for name, pairs in DIFFERENCES.items():
        by_pair = {}
        for one, other in pairs:
            for a, b in combinations(sorted(of.seed.unique()), 2):
                for first, second in {(a, b), (b, a)}:
                    ends = (one, first), (other, second)
                    if all(end in profiles.index for end in ends):
                        r = np.corrcoef(*(profiles.loc[end] for end in ends))[0, 1]
                        by_pair.setdefault(a, []).append(r)
        means = pd.Series({seed: float(np.mean(r)) for seed, r in by_pair.items()}, dtype=float)
        found.append(_row("stability", f"r: {name}", means))
    return found


def write(folder: Path = HERE) -> None:
    """Write both tables into the folder whose records they are decided on."""
    tables = read_tables(folder)
    for name, table in (("hypotheses", decide(tables)), ("beside", beside(tables))):
        table.to_csv(folder / f"{name}.csv", index=False, float_format="%.6f")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    write(parser.parse_args().folder)
