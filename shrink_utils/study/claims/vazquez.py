"""Vázquez et al. (V), after Ethayarajh 2019: contextuality, two kinds of encoders, loss changes.

V are *On the differences between BERT and MT encoder spaces* (2021), whose claims on contextuality
are held against a pretrained encoder and encoders trained here, and their work of 2022 on loss
change allocation (COLING).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations, product

import numpy as np
import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.claims.claim import (
    MARGIN,
    Claim,
    by_unit,
    clearest,
    evaluate,
    judged,
    leaving_out,
    named,
)
from shrink_utils.study.dynamics import (
    CELL,
    COUNTED,
    OBJECTIVE_NAMES,
    allocations,
    closure_errors,
    correlations,
    hurting_steps,
    profiles_of,
    published_steps,
)
from shrink_utils.study.statistics import pseudo_values
from shrink_utils.training.dynamics import shares

SMALL = 0.05  # Ethayarajh: the share of a word's variance that a static vector explains
FALLS = "falls from the embeddings to the last layer"
LAYERS_OF_BERT = "{}; Ethayarajh 2019 §4.{} (bert-base-cased)"


@judged
def vazquez_claims(contextuality: pd.DataFrame, corpus: pd.DataFrame) -> Iterator[Claim]:
    """On one pretrained encoder; from two tables that chapter 02 keeps.

    An interval speaks of more sentences or words like these, read by the same encoder, and of no
    other one. The published numbers are those of bert-base-cased.
    """
    last = int(contextuality.layer.max())
    avg_sim = corpus[corpus.quantity == "avg_sim"].set_index("layer").value
    words = corpus[corpus.quantity == "self_sim"]
    words = words.assign(value=words.value - words.layer.map(avg_sim))
    of = dict(list(contextuality.groupby("quantity")))
    bert = _bert()
    yield from _avg_sim(of["avg_sim"], bert["avg_sim"], last - 1)
    yield Claim(
        "v:selfsim-falls",
        f"SelfSim − AvgSim of words {FALLS}",
        "less",
        _rise(words, last),
        published=_rise(bert["self_sim"], 12).item(),
        source=LAYERS_OF_BERT.format("V", "2"),
        unit="words",
    )
    yield from _intra_sim(of["intra_sim"], bert["intra_sim"], last)
    # The variance that a static vector explains, as Ethayarajh defines it, and as the code has it.
    claim = partial(Claim, source="Ethayarajh 2019 abstract, §4.3", unit="words")
    for name, beside, spoken in (
        ("mev", "null", "as defined, beyond as many random rows"),
        ("mev_released", "baseline", "as the released code computes it, beyond random words"),
    ):
        for layer in (1, last):
            small = _at(_less(of[name], beside), layer) - SMALL
            statement = f"a static vector explains < {SMALL} of a word at layer {layer}, {spoken}"
            yield claim(f"v:{name.replace('_', '-')}-small-{layer}", statement, "less", small)


def _intra_sim(rows: pd.DataFrame, bert: pd.DataFrame, last: int) -> Iterator[Claim]:
    """Against AvgSim, as V and Ethayarajh do, and against its length-matched null."""
    theirs = _less(bert, "baseline")
    of_v = {"source": LAYERS_OF_BERT.format("V", "2")}
    control = {"source": "our control of V", "kind": "our control"}
    for column, short, spoken, own in (
        ("baseline", "avgsim", "AvgSim", of_v),
        ("null", "null", "its length-matched null", control),
    ):
        ours, claim = _less(rows, column), partial(Claim, unit="sentences", **own)
        for layer, where, of_bert in ((0, "the embeddings", 0), (last, f"layer {last}", 12)):
            name, statement = f"v:intrasim-above-{short}-{layer}", f"IntraSim exceeds {spoken}"
            published = _at(theirs, of_bert).item() if own is of_v else None
            at = _at(ours, layer)
            yield claim(name, f"{statement} at {where}", "greater", at, published=published)
        published = _rise(theirs, 12).item() if own is of_v else None
        name, statement = f"v:intrasim-falls-{short}", f"IntraSim − {spoken} {FALLS}"
        yield claim(name, statement, "less", _rise(ours, last), published=published)


def _at(rows: pd.DataFrame, layer: int) -> pd.Series:
    return by_unit(rows[rows.layer == layer], "value", "item")


def _rise(rows: pd.DataFrame, layer: int) -> pd.Series:
    """From the embeddings to a layer."""
    return _at(rows, layer) - _at(rows, 0)


def _less(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    return rows.assign(value=rows.value - rows[column])


def _bert() -> dict[str, pd.DataFrame]:
    """Published numbers of bert-base-cased by layer, in the form of the measured table."""
    found = {}
    for name in ("avg_sim", "self_sim", "intra_sim"):
        table = pd.read_csv(data_dir() / "published" / f"{name.replace('_', '')}_layers.csv")
        table["value"] = table["adjusted_self_sim" if name == "self_sim" else name]
        found[name] = table[table.model == "bert-base-cased"].rename(columns={"model": "item"})
    baseline = found["intra_sim"].layer.map(found["avg_sim"].set_index("layer").value)
    return found | {"intra_sim": found["intra_sim"].assign(baseline=baseline)}


def _avg_sim(rows: pd.DataFrame, bert: pd.DataFrame, below: int) -> Iterator[Claim]:
    claim = partial(Claim, source=LAYERS_OF_BERT.format("V, on BERT", "1"), unit="sentences")
    # BERT's own last layer falls (.675 to .477), so the claim holds if either of the last two is
    # higher; the interval allows for two tries.
    layers = rows.layer[rows.layer >= below].unique()
    yield claim(
        "v:avgsim-rises",
        "AvgSim of words rises from the embeddings to the last layer, or to the last but one",
        "greater",
        **clearest((_rise(rows, layer) for layer in layers), "greater"),
        published=_rise(bert, 11).item(),
    )
    yield claim(
        "v:avgsim-gradual",
        "no layer but the last makes half of the rise to the last but one (it is gradual)",
        "less",
        _largest_step_less_half_the_rise(rows, below),
        published=_largest_step_less_half_the_rise(bert, 11).item(),
    )


def _largest_step_less_half_the_rise(rows: pd.DataFrame, below: int) -> pd.Series:
    """From the embeddings to a layer; which step is the largest is read off the same sentences."""
    values = rows.pivot(index="item", columns="layer", values="value")
    steps = values.loc[:, :below].diff(axis=1)
    return steps[steps.mean().idxmax()] - (values[below] - values[0]) / 2


def models_claims(tables: pd.DataFrame) -> pd.DataFrame:
    """The same rows of every further model of the profile; from a table that 02 keeps."""
    found = [evaluate([])]
    for model, rows in tables.groupby("model", sort=False):
        parts = (rows[rows.measured_on == on] for on in ("sample", "corpus"))
        found.append(named(vazquez_claims(*parts), model))
    return pd.concat(found[1:] or found)


# --- 2022: loss change allocation. A floor is the mean distance of two seeds. --------------------

V = "V (COLING 2022)"
ATTENDING = ["key", "query"]
# Of a layer's weights: 8 d² of 12 d², and of 16 d² where a decoder has cross-attention.
FEED_FORWARD = {"mlm": Fraction(8, 12), "clm": Fraction(8, 12), "mt": Fraction(8 + 8, 12 + 16)}
_lca = partial(
    Claim,
    departures="no weight decay, an inverse-root decay of the rate, gradients clipped at norm 1: V "
    "otherwise; at most 2,000 of V's 125,000 updates",
)


OF_RUNS = {  # by name of the row: direction, and what is said of every objective
    # Embeddings, with which these models also predict; whether the contributions add up.
    "embeddings": ("greater", "embeddings take more than half of the loss change"),
    "closure": ("less", "the trapezoid's contributions sum to the loss change within 1 %"),
    # V: the main contributors. They would be that by their number alone.
    "feed-forward": (
        "greater",
        "feed-forward weights take more of the trunk's loss change than "
        "their share of its weights ({share})",
    ),
}
DESCRIBED = {  # the same of what V show in figures, without a number to test
    "hurting-half": "share of the block-steps that hurt, less a half (V: of parameters)",
    "last-layer": "share of the last layer in the trunk's loss change, less an even share",
    "busiest-head": "share of a layer's busiest head in the trunk's loss change, less that of its "
    "mean head",
    "half-time": "share of the training after which half of the loss change is done",
}


@judged
def dynamics_claims(dynamics: pd.DataFrame, stability: pd.DataFrame) -> Iterator[Claim]:
    """On loss change allocation; from the two tables that chapter 10 keeps."""
    runs = {
        objective: dict(list(rows.groupby("seed")))
        for objective, rows in dynamics.groupby("objective")
    }
    yield from _hurting(runs)
    yield from _of_runs(runs, ("embeddings", "closure"), source="our control", kind="our control")
    yield from _profiles(profile_pairs(dynamics, stability))
    yield from _likeness(profiles_by_stack(dynamics))
    yield from _of_runs(runs, ("feed-forward",), source=f"{V}, abstract")
    yield from _of_runs(runs, DESCRIBED, source=f"after {V}")


def _between_seeds(values: list[float]) -> dict:
    """A number per run, with the mean distance of two seeds as floor; none for a single seed."""
    distances = [abs(a - b) for a, b in combinations(values, 2)]
    return {"differences": values, "floor": float(np.mean(distances)) if distances else None}


def _hurting(runs: dict) -> Iterator[Claim]:
    """What keys and queries have of the steps that hurt, less their share if all were alike."""
    claim = partial(_lca, source=f"{V}, table of positive steps")
    even = len(ATTENDING) / len(COUNTED)
    table = published_steps()
    share = table[table.component.isin(ATTENDING)].groupby("objective").share.sum()
    last = table.groupby("objective")["last"].max()
    gradients = {"fixed set": "fixed", "mini-batch": "batch"}
    found = {
        (gradient, objective): [hurting_steps(run, gradient) for run in runs[objective].values()]
        for gradient, objective in product(gradients, OBJECTIVE_NAMES)
    }
    for (gradient, objective), steps in found.items():
        spoken, more = OBJECTIVE_NAMES[objective], "less" if objective == "mt" else "more"
        yield claim(
            f"v:lca-attention-{objective}-{gradients[gradient]}",
            f"{spoken}: keys and queries have {more} than their even third of the steps that hurt "
            f"({gradient} gradients)",
            "less" if objective == "mt" else "greater",
            **_between_seeds([of.share[ATTENDING].sum() - even for of in steps]),
            published=share[objective] - even,
        )
    for gradient, other in product(gradients, ("clm", "mt")):
        both = zip(found[gradient, "mlm"], found[gradient, other], strict=True)
        yield claim(
            f"v:lca-lasting-{other}-{gradients[gradient]}",
            "the last step that hurts comes later, in shares of the training, in masked LM than in "
            f"{OBJECTIVE_NAMES[other]} ({gradient} gradients)",
            # On the fixed set some component hurts until the last step, in every objective.
            "greater" if gradient == "mini-batch" else "described",
            **_between_seeds([x["last"].max() - y["last"].max() for x, y in both]),
            published=last["mlm"] - last[other],
        )


def _of_runs(runs: dict, names: Iterable[str], **options: str) -> Iterator[Claim]:
    """Rows of `OF_RUNS`, one per objective."""
    for name, (objective, spoken) in product(names, OBJECTIVE_NAMES.items()):
        share = FEED_FORWARD[objective]
        found = _between_seeds([_number(run, name, share) for run in runs[objective].values()])
        direction, statement = OF_RUNS.get(name) or ("described", DESCRIBED[name])
        statement = f"{spoken}: {statement.format(share=share)}"
        yield _lca(f"v:lca-{name}-{objective}", statement, direction, **found, **options)


def _number(run: pd.DataFrame, name: str, share: Fraction) -> float:
    """What a row of `OF_RUNS` is about; `share`: of the feed-forward weights."""
    match name:
        case "embeddings":
            return shares(allocations(run), "component")["embedding"] - 0.5
        case "closure":
            return closure_errors(run)["trapezoid"] - 0.01
        case "feed-forward":
            trunk = shares(allocations(run), "component", trunk=True)
            return trunk[["W1", "W2"]].sum() - float(share)
        case "hurting-half":
            return hurting_steps(run, "fixed set").rate.mean() - 0.5
        case "last-layer":
            layers = shares(allocations(run), "layer", trunk=True)
            return layers[layers.index.max()] - 1 / len(layers)
        case "busiest-head":  # less the mean head of its layer, mean over layers
            table = allocations(run)
            heads = table[table["head"] >= 0].groupby(["stack", "layer", "head"]).value.sum()
            layers = (heads / table[table.layer > 0].value.sum()).groupby(["stack", "layer"])
            return (layers.max() - layers.mean()).mean()
        case "half-time":
            loss = run[run.quantity == "loss"].set_index("step").value.sort_index()
            done = (loss - loss.iloc[0]) / (loss.iloc[-1] - loss.iloc[0])
            return (done >= 0.5).idxmax() / loss.index.max()


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
                found[name, seed] = shares(table[own], *CELL, trunk=True)
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
            yield _lca(
                f"v:lca-{name}-like-{like}",
                f"the profile of the translation model's {name} correlates more with that of "
                f"{OBJECTIVE_NAMES[like]} than with that of {OBJECTIVE_NAMES[unlike]}",
                "greater",
                pseudo_values(partial(closer, half, like, unlike), list(ours[half].index)),
                source=V,
            )


def profile_pairs(dynamics: pd.DataFrame, stability: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of the profiles of two runs of different seeds, which begin with other weights.

    Profiles are those of `profiles_by_stack`; of a translation model, of its encoder. Columns
    ``runs`` ("objectives" or "texts", whose numbers of steps differ), and those of `correlations`.
    """
    ours = profiles_by_stack(dynamics)
    ours = ours[ours.index.get_level_values("objective") != "decoder"]
    of = {"texts": profiles_of(stability), "objectives": ours}
    pairs = [correlations(profiles).assign(runs=runs) for runs, profiles in of.items()]
    return pd.concat(pairs, ignore_index=True)


def _profiles(pairs: pd.DataFrame) -> Iterator[Claim]:
    """V's abstract: data size and distribution do not matter, the objective does.

    Pairs of runs that differ in seed and data, against pairs that differ in their seed alone: equal
    seeds begin with equal weights, so no pair has one seed. The interval leaves out seeds, and so
    holds the error of both means.
    """
    texts = pairs[pairs.runs == "texts"]
    for differs, spoken in (("size", "data sizes"), ("source", "domains")):

        def less_seeds(some: pd.DataFrame, differs: str = differs) -> float:
            return some.r[some.differs == differs].mean() - some.r[some.differs == "seed"].mean()

        yield _lca(
            f"v:lca-stable-{differs}",
            f"profiles of different {spoken} correlate as closely (by {MARGIN}) as those of equal "
            "data, between seeds",
            "no_worse",
            leaving_out(texts, "seed", less_seeds),
            source=V,
            floor=float(texts.r[texts.differs == "seed"].std()),
        )
    baseline = pairs[pairs.differs == "seed"].groupby("runs").r
    yield _lca(
        "v:lca-objective-over-data",
        "another objective lowers the correlation of profiles more than other data do, each "
        "against its own pairs of seeds",
        "less",
        leaving_out(pairs, "seed", _excess_of_objectives),
        source=f"{V}, abstract",
        floor=float(baseline.std().mean()),
    )


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
