"""Vázquez et al. (V), after Ethayarajh 2019: contextuality and loss changes.

V are *On the differences between BERT and MT encoder spaces* (2021), whose claims on contextuality
are held against pretrained encoders, and their work of 2022 on loss change allocation (COLING).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations

import numpy as np
import pandas as pd

from shrink_utils.sources import data_dir
from shrink_utils.study.claims.claim import (
    _as_table,
    _jackknife_over_models,
    _most_favourable,
    _with_model_name,
    claim,
)
from shrink_utils.training.dynamics import shares

STATIC_SHARE = 0.05  # Ethayarajh: the share of a word's variance that a static vector explains


@_as_table
def _vazquez_claims(contextuality: pd.DataFrame, corpus: pd.DataFrame) -> Iterator[dict]:
    """On one pretrained encoder; from two tables that chapter 02 keeps.

    An interval speaks of more sentences or words like these, read by the same encoder, and of no
    other one. The published numbers are those of bert-base-cased.
    """
    last = int(contextuality.layer.max())
    avg_sim = corpus[corpus.quantity == "avg_sim"].set_index("layer").value
    words = corpus[corpus.quantity == "self_sim"]
    words = _by_layer(words.assign(avg_sim=words.layer.map(avg_sim)), "avg_sim")
    of = dict(list(contextuality.groupby("quantity")))
    bert = {}  # bert-base-cased, as published, by layer
    for name in ("avg_sim", "self_sim", "intra_sim"):
        table = pd.read_csv(data_dir() / "published" / f"{name.replace('_', '')}_layers.csv")
        table = table[table.model == "bert-base-cased"].set_index("layer")
        bert[name] = table["adjusted_self_sim" if name == "self_sim" else name]
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


def _avg_sim(values: pd.DataFrame, bert: pd.Series, last: int) -> Iterator[dict]:
    # BERT's own last layer falls (.675 to .477), so the claim holds if either of the last two is
    # higher; the interval allows for two tries.
    rises = _most_favourable((values[layer] - values[0] for layer in (last - 1, last)), "greater")
    yield claim("v:avgsim-rises", **rises, published=bert[11] - bert[0])
    ours = _largest_step_less_half_the_rise(values, last - 1)
    theirs = _largest_step_less_half_the_rise(bert.to_frame().T, 11).item()
    yield claim("v:avgsim-gradual", ours, published=theirs)


def _largest_step_less_half_the_rise(values: pd.DataFrame, below: int) -> pd.Series:
    """From the embeddings to a layer; which step is the largest is read off the same sentences."""
    steps = values.loc[:, :below].diff(axis=1)
    return steps[steps.mean().idxmax()] - (values[below] - values[0]) / 2


def _intra_sim(rows: pd.DataFrame, bert: pd.Series, last: int) -> Iterator[dict]:
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


def _models_claims(tables: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The same rows of every further model of the profile; from a table that 02 keeps."""
    for model, rows in tables.groupby("model", sort=False):
        parts = (rows[rows.measured_on == on] for on in ("sample", "corpus"))
        yield _with_model_name(_vazquez_claims(*parts), model)


# --- 2022: loss change allocation. A floor is the mean distance of two seeds. --------------------

# Of a layer's weights: 8 d² of 12 d², and of 16 d² where a decoder has cross-attention.
FEED_FORWARD = {"mlm": Fraction(8, 12), "clm": Fraction(8, 12), "mt": Fraction(8 + 8, 12 + 16)}
# What profiles of two trainings differ in beside their seed.
COUPLES = (("mlm", "clm"), ("mlm", "mt"), ("clm", "mt"))
TEXTS = {
    "size": ("testament", "half"),
    "language": ("german", "finnish"),
    "domain": ("testament", "gramps"),  # and size
}
_lca = partial(
    claim,
    departures="no weight decay, an inverse-root decay of the rate, gradients clipped at norm 1: V "
    "otherwise; 5,000 of V's 125,000 updates, of which 1,100 are followed",
)


@_as_table
def dynamics_claims(tables: Mapping[str, pd.DataFrame]) -> Iterator[dict]:
    """On loss change allocation; from the tables of `read_objectives`.

    They stand beside the hypotheses that docs/preregistration_objectives.md fixes.
    """
    places = tables["places"]
    yield from _profiles(correlations(profiles_of(places)))
    of = places[places.part == "objectives"]
    runs = {
        objective: [run for _, run in rows.groupby("seed")]
        for objective, rows in of[of.rule == "trapezoid"].groupby("objective")
    }
    for objective, found in runs.items():
        # Feed-forward weights would be the main contributors by their number alone.
        share = FEED_FORWARD[objective]
        parts = (shares(run, "component", trunk=True) for run in found)
        beyond = _with_seed_floor([part[["W1", "W2"]].sum() - float(share) for part in parts])
        yield _lca("v:lca-feed-forward-{objective}", **beyond, share=share, **_spoken(objective))
    # Of the steps of blocks, a component of a layer each, the share that raised the loss.
    counted = of.component.str.removeprefix("cross ").isin(COUNTED) & (of.rule == "euler")
    steps = of[counted].groupby(["objective", "seed"])[["hurts", "steps"]].sum()
    for objective, hurting in (steps.hurts / steps.steps - 0.5).groupby("objective"):
        found = _with_seed_floor([*hurting])
        yield _lca("v:lca-hurting-half-{objective}", **found, **_spoken(objective))
    # The parts sum to the change of all steps followed, by V's rule and by the trapezoid.
    closure = tables["closure"]
    sums = closure[closure.part == "objectives"].groupby(["objective", "rule", "seed"])
    sums = sums[["parts", "change"]].sum()
    missed = (sums.parts - sums.change).abs() / sums.change.abs()
    for (objective, rule), errors in missed.groupby(["objective", "rule"]):
        yield _lca(f"v:lca-closure-{rule}-{{objective}}", -errors, **_spoken(objective))
    yield from _by_depth(runs)


def _spoken(objective: str) -> dict[str, str]:
    return {"objective": objective, "spoken": OBJECTIVE_NAMES[objective]}


def _by_depth(runs: Mapping[str, list[pd.DataFrame]]) -> Iterator[dict]:
    """Shares of the trunk's loss change in the last layer, less those in the first."""
    trunks = {name: [run[run.layer > 0] for run in of] for name, of in runs.items()}
    incremental = _with_seed_floor([_rise(trunk, trunk) for trunk in trunks["clm"]])
    yield _lca("v:lca-incremental-clm", **incremental)
    feed_forward = [trunk[trunk.component.isin(["W1", "W2"])] for trunk in trunks["mt"]]
    for stack in sorted(set(trunks["mt"][0]["stack"])):
        wide = [run[run["stack"] == stack] for run in feed_forward]
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


def _profiles(pairs: pd.DataFrame) -> Iterator[dict]:
    """What a profile depends on, and which language model each half of a translation model is like.

    V's abstract: data size and distribution do not matter, the objective does. Trainings that
    differ in seed and text are held against pairs of the same training that differ in their seed
    alone, as shorter ones are noisier. Equal seeds begin with equal weights, so no pair has one
    seed. The interval leaves out seeds, and so holds the error of all means.
    """
    floor = float(pairs.r[pairs.run == pairs.other].std())
    excesses = {f"v:lca-stable-{of}": partial(_excess, [texts]) for of, texts in TEXTS.items()}
    # Of other objectives less that of other texts; noise also shrinks an excess, by its factor.
    excesses["v:lca-objective-over-data"] = lambda some: (
        _excess(COUPLES, some) - _excess([*TEXTS.values()], some)
    )
    for name, excess in excesses.items():
        yield _lca(name, _jackknife_over_models(pairs, "seed", excess), floor=floor)
    for half, run, like, unlike in (
        ("encoder", "mt", "mlm", "clm"),
        ("decoder", "decoder", "clm", "mlm"),
    ):

        def closer(some: pd.DataFrame, run=run, like=like, unlike=unlike) -> float:
            return _mean_r(some, run, like) - _mean_r(some, run, unlike)

        nearer = _jackknife_over_models(pairs, "seed", closer)
        yield _lca(f"v:lca-{half}-like-{like}", nearer)


def _mean_r(pairs: pd.DataFrame, run: str, other: str) -> float:
    return float(pairs.r[(pairs.run == run) & (pairs.other == other)].mean())


def _excess(couples: Sequence[tuple[str, str]], pairs: pd.DataFrame) -> float:
    """Mean r of trainings that differ, less that of each with itself from another seed."""
    of = [
        _mean_r(pairs, a, b) - (_mean_r(pairs, a, a) + _mean_r(pairs, b, b)) / 2 for a, b in couples
    ]
    return float(np.mean(of))


# --- what chapter 10 and the claims read off records of loss changes ------------------------------

BLOCK = ["layer", "component"]
OBJECTIVE_NAMES = {"mlm": "masked LM", "clm": "causal LM", "mt": "translation"}
COUNTED = ("key", "query", "value", "out", "W1", "W2")  # of Vázquez et al. 2022


def profiles_of(places: pd.DataFrame) -> pd.DataFrame:
    """Shares of the trunk's loss change by layer and component in the first updates followed.

    Of all trainings these are as many; cross-attention is left out. `places` is the table of that
    name of `read_objectives`. A row of sum 1 per training, whose index has its ``run`` and its
    ``seed``: a run is an objective, of translation the encoder, whose "decoder" is a run of its
    own; where the text is what varies, a run is its source.
    """
    of = places[(places.rule == "trapezoid") & (places["window"] == 0)]
    of = of[~of.component.str.startswith("cross ")]
    named = of.objective.where(of.part == "objectives", of.source)
    of = of.assign(run=named.where(of["stack"] != "decoder", "decoder"))
    runs = {run: shares(rows, *BLOCK, trunk=True) for run, rows in of.groupby(["run", "seed"])}
    return pd.DataFrame(runs).T.rename_axis(index=["run", "seed"])


def correlations(profiles: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of profiles that begin from different seeds.

    Runs of one seed begin with equal weights: what they share is no effect of their data.

    Parameters
    ----------
    profiles : DataFrame
        Of `profiles_of`.

    Returns
    -------
    DataFrame
        Both orders of every pair: ``run``, ``other``, ``front_seed``, ``back_seed`` and ``r``.
    """
    rows = [
        (run, other, i, j, float(np.corrcoef(x, y)[0, 1]))
        for ((run, i), x), ((other, j), y) in permutations(profiles.iterrows(), 2)
        if i != j
    ]
    return pd.DataFrame(rows, columns=["run", "other", "front_seed", "back_seed", "r"])
