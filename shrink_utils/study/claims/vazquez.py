"""Vázquez et al. (V), after Ethayarajh 2019: contextuality and loss changes.

V are *On the differences between BERT and MT encoder spaces* (2021), whose claims on contextuality
are held against pretrained encoders, and their work of 2022 on loss change allocation (COLING).
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations

import numpy as np
import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.claims.claim import (
    Claim,
    claim,
    evaluated,
    jackknife_over_models,
    most_favourable,
    with_model_name,
)
from shrink_utils.study.loss_changes import (
    BLOCK,
    COUNTED,
    OBJECTIVE_NAMES,
    allocations,
    closure_errors,
    correlations,
    profiles_of,
)
from shrink_utils.study.statistics import pseudo_values
from shrink_utils.training.dynamics import shares

STATIC_SHARE = 0.05  # Ethayarajh: the share of a word's variance that a static vector explains


@evaluated
def vazquez_claims(contextuality: pd.DataFrame, corpus: pd.DataFrame) -> Iterator[Claim]:
    """On one pretrained encoder; from two tables that chapter 02 keeps.

    An interval speaks of more sentences or words like these, read by the same encoder, and of no
    other one. The published numbers are those of bert-base-cased.
    """
    last = int(contextuality.layer.max())
    avg_sim = corpus[corpus.quantity == "avg_sim"].set_index("layer").value
    words = corpus[corpus.quantity == "self_sim"]
    words = _by_layer(words.assign(avg_sim=words.layer.map(avg_sim)), "avg_sim")
    of = dict(list(contextuality.groupby("quantity")))
    bert = _bert()
    yield from _avg_sim(_by_layer(of["avg_sim"]), bert["avg_sim"], last)
    published = bert["self_sim"][12] - bert["self_sim"][0]
    yield claim("v:selfsim-falls", words[last] - words[0], published=published)
    static = _by_layer(corpus[corpus.quantity == "self_sim"])
    published = bert["self_sim"][0] + bert["avg_sim"][0] - 1
    yield claim("v:embeddings-static", static[0] - 1, published=published)
    yield from _intra_sim(of["intra_sim"], bert["intra_sim"] - bert["avg_sim"], last)
    # The variance that a static vector explains, as Ethayarajh defines it, and as the code has it.
    for name, quantity, beside in (
        ("v:mev-small-{layer}", "mev", "null"),
        ("v:mev-released-small-{layer}", "mev_released", "baseline"),
    ):
        for layer in (1, last):
            small = _by_layer(of[quantity], beside)[layer] - STATIC_SHARE
            yield claim(name, small, layer=layer, static=STATIC_SHARE)


def _by_layer(rows: pd.DataFrame, less: str | None = None) -> pd.DataFrame:
    """Values, less those of another column: (items, layers)."""
    values = rows.assign(value=rows.value - rows[less]) if less else rows
    return values.pivot(index="item", columns="layer", values="value")


def _bert() -> dict[str, pd.Series]:
    """Published numbers of bert-base-cased, by layer."""
    found = {}
    for name in ("avg_sim", "self_sim", "intra_sim"):
        table = pd.read_csv(data_dir() / "published" / f"{name.replace('_', '')}_layers.csv")
        of_bert = table[table.model == "bert-base-cased"].set_index("layer")
        found[name] = of_bert["adjusted_self_sim" if name == "self_sim" else name]
    return found


def _avg_sim(values: pd.DataFrame, bert: pd.Series, last: int) -> Iterator[Claim]:
    # BERT's own last layer falls (.675 to .477), so the claim holds if either of the last two is
    # higher; the interval allows for two tries.
    rises = most_favourable((values[layer] - values[0] for layer in (last - 1, last)), "greater")
    yield claim("v:avgsim-rises", **rises, published=bert[11] - bert[0])
    yield claim(
        "v:avgsim-gradual",
        _largest_step_less_half_the_rise(values, last - 1),
        published=_largest_step_less_half_the_rise(bert.to_frame().T, 11).item(),
    )


def _largest_step_less_half_the_rise(values: pd.DataFrame, below: int) -> pd.Series:
    """From the embeddings to a layer; which step is the largest is read off the same sentences."""
    steps = values.loc[:, :below].diff(axis=1)
    return steps[steps.mean().idxmax()] - (values[below] - values[0]) / 2


def _intra_sim(rows: pd.DataFrame, bert: pd.Series, last: int) -> Iterator[Claim]:
    """Against AvgSim, as V and Ethayarajh do, and against its length-matched null."""
    for column, short, published in (
        ("baseline", "avgsim", bert),
        ("null", "null", bert * math.nan),
    ):
        ours, above = _by_layer(rows, column), f"v:intrasim-above-{short}-{{layer}}"
        yield claim(above, ours[0], layer=0, where="the embeddings", published=published[0])
        words = {"layer": last, "where": f"layer {last}"}
        yield claim(above, ours[last], **words, published=published[12])
        falls = {"differences": ours[last] - ours[0], "published": published[12] - published[0]}
        yield claim(f"v:intrasim-falls-{short}", **falls)


def models_claims(tables: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The same rows of every further model of the profile; from a table that 02 keeps."""
    for model, rows in tables.groupby("model", sort=False):
        parts = (rows[rows.measured_on == on] for on in ("sample", "corpus"))
        yield with_model_name(vazquez_claims(*parts), model)


# --- 2022: loss change allocation. A floor is the mean distance of two seeds. --------------------

# Of a layer's weights: 8 d² of 12 d², and of 16 d² where a decoder has cross-attention.
FEED_FORWARD = {"mlm": Fraction(8, 12), "clm": Fraction(8, 12), "mt": Fraction(8 + 8, 12 + 16)}
_lca = partial(
    claim,
    departures="no weight decay, an inverse-root decay of the rate, gradients clipped at norm 1: V "
    "otherwise; at most 2,000 of V's 125,000 updates",
)


@evaluated
def dynamics_claims(dynamics: pd.DataFrame, stability: pd.DataFrame) -> Iterator[Claim]:
    """On loss change allocation; from the two tables that chapter 10 keeps."""
    by_stack = profiles_by_stack(dynamics)
    encoders = by_stack[by_stack.index.get_level_values("objective") != "decoder"]
    of = {"texts": profiles_of(stability), "objectives": encoders}  # numbers of steps differ
    pairs = [correlations(profiles).assign(runs=runs) for runs, profiles in of.items()]
    yield from _profiles(pd.concat(pairs, ignore_index=True))
    yield from _likeness(by_stack)
    runs = dynamics.groupby("objective")
    tables = {o: [allocations(run) for _, run in rows.groupby("seed")] for o, rows in runs}
    for objective, spoken in OBJECTIVE_NAMES.items():
        # Feed-forward weights would be the main contributors by their number alone.
        share = FEED_FORWARD[objective]
        found = (shares(table, "component", trunk=True) for table in tables[objective])
        beyond = [of[["W1", "W2"]].sum() - float(share) for of in found]
        words = {"objective": objective, "spoken": spoken, "share": share}
        yield _lca("v:lca-feed-forward-{objective}", **_with_seed_floor(beyond), **words)
    for objective, spoken in OBJECTIVE_NAMES.items():
        hurting = _with_seed_floor([_hurting(table) - 0.5 for table in tables[objective]])
        words = {"objective": objective, "spoken": spoken}
        yield _lca("v:lca-hurting-half-{objective}", **hurting, **words)
    yield from _closures(runs)
    yield from _by_depth(tables)


def _closures(runs: Iterable[tuple[str, pd.DataFrame]]) -> Iterator[Claim]:
    """The parts sum to the change, by V's rule and by one of second order."""
    for objective, rows in runs:
        errors = pd.DataFrame([closure_errors(run) for _, run in rows.groupby("seed")])
        words = {"objective": objective, "spoken": OBJECTIVE_NAMES[objective]}
        for rule in ("euler", "trapezoid"):
            yield _lca(f"v:lca-closure-{rule}-{{objective}}", -errors[rule], **words)


def _by_depth(tables: Mapping[str, list[pd.DataFrame]]) -> Iterator[Claim]:
    """Shares of the trunk's loss change in the last layer, less those in the first."""
    trunks = {name: [run[run.layer > 0] for run in runs] for name, runs in tables.items()}
    incremental = _with_seed_floor([_rise(trunk, trunk) for trunk in trunks["clm"]])
    yield _lca("v:lca-incremental-clm", **incremental)
    for stack in sorted(set(trunks["mt"][0]["stack"])):
        wide = [
            run[(run["stack"] == stack) & run.component.isin(["W1", "W2"])] for run in trunks["mt"]
        ]
        rises = _with_seed_floor([_rise(*pair) for pair in zip(wide, trunks["mt"], strict=True)])
        yield _lca("v:lca-peaks-upper-{stack}", **rises, stack=stack or "trunk")


def _rise(part: pd.DataFrame, trunk: pd.DataFrame) -> float:
    """What the part's last layer has of the trunk's loss change, less what its first has."""
    layers = part.groupby("layer").value.sum()
    return float((layers.iloc[-1] - layers.iloc[0]) / trunk.value.sum())


def _with_seed_floor(values: list[float]) -> dict:
    """A number per run, with the mean distance of two seeds as floor; none for a single seed."""
    distances = [abs(a - b) for a, b in combinations(values, 2)]
    return {"differences": values, "floor": float(np.mean(distances)) if distances else math.nan}


def _hurting(table: pd.DataFrame) -> float:
    """Share of the steps of blocks, a component of a layer each, that raised the loss."""
    table = table[table.counted & table.component.isin(COUNTED)]
    return (table.groupby(["step", "stack", *BLOCK]).value.sum() > 0).mean()


def profiles_by_stack(dynamics: pd.DataFrame) -> pd.DataFrame:
    """Shares of the trunk's loss change by layer and component, without cross-attention.

    A row per run of chapter 10, named by objective and seed; of a translation model, "mt"
    is its encoder, and "decoder" a row of its own.
    """
    found = {}
    for (objective, seed), run in dynamics.groupby(["objective", "seed"]):
        table = allocations(run)
        table = table[~table.component.str.startswith("cross ")]
        for name, stacks in {objective: ["", "encoder"], "decoder": ["decoder"]}.items():
            if (own := table["stack"].isin(stacks)).any():
                found[name, seed] = shares(table[own], *BLOCK, trunk=True)
    return pd.DataFrame(found).T.rename_axis(index=["objective", "seed"])


def _likeness(profiles: pd.DataFrame) -> Iterator[Claim]:
    """Which language model each half of a translation model is like, in pairs of two seeds."""
    ours = {objective: rows.droplevel(0) for objective, rows in profiles.groupby("objective")}

    def mean_r(half: str, other: str, seeds: Collection[int]) -> float:
        pairs = permutations(seeds, 2)
        return np.mean([ours[half].loc[i].corr(ours[other].loc[j]) for i, j in pairs])

    def closer(half: str, like: str, unlike: str, seeds: Collection[int]) -> float:
        return float(mean_r(half, like, seeds) - mean_r(half, unlike, seeds))

    for name, half, like, unlike in (
        ("encoder", "mt", "mlm", "clm"),
        ("decoder", "decoder", "clm", "mlm"),
    ):
        if half in ours and len(ours[half]) > 2:  # leaving a seed out leaves a pair
            nearer = pseudo_values(partial(closer, half, like, unlike), list(ours[half].index))
            yield _lca(f"v:lca-{name}-like-{like}", nearer)


def _profiles(pairs: pd.DataFrame) -> Iterator[Claim]:
    """V's abstract: data size and distribution do not matter, the objective does.

    Pairs of runs that differ in seed and data, against pairs that differ in their seed alone: equal
    seeds begin with equal weights, so no pair has one seed. The interval leaves out seeds, and so
    holds the error of both means.
    """
    texts = pairs[pairs.runs == "texts"]
    for differs in ("size", "source"):

        def less_seeds(some: pd.DataFrame, differs: str = differs) -> float:
            return some.r[some.differs == differs].mean() - some.r[some.differs == "seed"].mean()

        less = jackknife_over_models(texts, "seed", less_seeds)
        floor = float(texts.r[texts.differs == "seed"].std())
        yield _lca(f"v:lca-stable-{differs}", less, floor=floor)
    baseline = pairs[pairs.differs == "seed"].groupby("runs").r
    excess = jackknife_over_models(pairs, "seed", _excess_of_objectives)
    yield _lca("v:lca-objective-over-data", excess, floor=float(baseline.std().mean()))


def _excess_of_objectives(pairs: pd.DataFrame) -> float:
    """Mean r of other objectives less that of other texts, each less its own baseline.

    Trainings on parts of the data have fewer steps, so their profiles are noisier. Each kind is
    therefore held against its own pairs that differ in their seed alone. To read both after equally
    many steps would not be better: the warm-up is a share of the steps, and objectives differ in
    noise anyway. What is left: noise also shrinks an excess, about by the factor of its baseline.
    """
    mean = pairs.groupby(["runs", pairs.differs == "seed"]).r.mean().unstack()
    excess = mean[False] - mean[True]
    return float(excess["objectives"] - excess["texts"])
