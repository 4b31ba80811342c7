"""Vázquez et al. (V), after Ethayarajh 2019: contextuality, two kinds of encoders, loss changes.

V are *On the differences between BERT and MT encoder spaces* (2021), whose claims on contextuality
are held against a pretrained encoder and encoders trained here, and their work of 2022 on loss
change allocation (COLING).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations

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
from shrink_utils.study.dynamics.experiment import CELL, allocations
from shrink_utils.study.dynamics.reading import (
    COUNTED,
    OBJECTIVE_NAMES,
    closure_errors,
    correlations,
    hurting_steps,
    profiles_of,
    published_steps,
)
from shrink_utils.study.statistics import pseudo_values
from shrink_utils.training.dynamics import shares

SMALL = 0.05  # Ethayarajh: the share of a word's variance that a static vector explains


@judged
def vazquez_claims(contextuality: pd.DataFrame, corpus: pd.DataFrame) -> Iterator[Claim]:
    """On one pretrained encoder; from `measure_contextuality` and `measure_corpus`.

    An interval speaks of more sentences or words like these, read by the same encoder, and of no
    other one. The published numbers are those of bert-base-cased.
    """
    last = int(contextuality.layer.max())
    avg_sim = corpus[corpus.quantity == "avg_sim"].set_index("layer").value
    words = corpus[corpus.quantity == "self_sim"]
    words = words.assign(value=words.value - words.layer.map(avg_sim))
    bert = _bert()
    yield from _avg_sim(contextuality[contextuality.quantity == "avg_sim"], bert, last - 1)
    yield Claim(
        "v:selfsim-falls",
        "SelfSim − AvgSim of words falls from the embeddings to the last layer",
        "less",
        _at(words, last) - _at(words, 0),
        published=_number(bert["self_sim"], 12, 0),
        source="V; Ethayarajh 2019 §4.2 (bert-base-cased)",
        unit="words",
    )
    intra_sim = contextuality[contextuality.quantity == "intra_sim"]
    yield from _intra_sim(intra_sim, bert["intra_sim"], last)
    claim = partial(Claim, source="Ethayarajh 2019 abstract, §4.3", unit="words")
    # As Ethayarajh defines it, and as the released code computes it.
    for name, quantity, beside, spoken in (
        ("mev", "mev", "null", "as defined, beyond as many random rows"),
        (
            *("mev-released", "mev_released", "baseline"),
            "as the released code computes it, beyond random words",
        ),
    ):
        rows = _less(contextuality[contextuality.quantity == quantity], beside)
        for layer in (1, last):
            statement = f"a static vector explains < {SMALL} of a word at layer {layer}, {spoken}"
            yield claim(f"v:{name}-small-{layer}", statement, "less", _at(rows, layer) - SMALL)


def _at(rows: pd.DataFrame, layer: int) -> pd.Series:
    return by_unit(rows[rows.layer == layer], "value", "item")


def _less(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    return rows.assign(value=rows.value - rows[column])


def _number(rows: pd.DataFrame, layer: int, minus: int | None = None) -> float:
    found = _at(rows, layer) if minus is None else _at(rows, layer) - _at(rows, minus)
    return found.item()


def _bert() -> dict[str, pd.DataFrame]:
    """Published numbers of bert-base-cased by layer, in the form of the measured table."""
    found = {}
    for name in ("avg_sim", "self_sim", "intra_sim"):
        table = pd.read_csv(data_dir() / "published" / f"{name.replace('_', '')}_layers.csv")
        table["value"] = table["adjusted_self_sim" if name == "self_sim" else name]
        found[name] = table[table.model == "bert-base-cased"].rename(columns={"model": "item"})
    avg_sim = found["avg_sim"].set_index("layer").value
    intra_sim = found["intra_sim"]
    return found | {"intra_sim": intra_sim.assign(baseline=intra_sim.layer.map(avg_sim))}


def _avg_sim(rows: pd.DataFrame, bert: dict[str, pd.DataFrame], below: int) -> Iterator[Claim]:
    source = "V, on BERT; Ethayarajh 2019 §4.1 (bert-base-cased)"
    claim = partial(Claim, source=source, unit="sentences")
    # BERT's own last layer falls (.675 to .477), so the claim holds if either of the last two is
    # higher; the interval allows for two tries.
    layers = rows.layer[rows.layer >= below].unique()
    yield claim(
        "v:avgsim-rises",
        "AvgSim of words rises from the embeddings to the last layer, or to the last but one",
        "greater",
        **clearest((_at(rows, layer) - _at(rows, 0) for layer in layers), "greater"),
        published=_number(bert["avg_sim"], 11, 0),
    )
    yield claim(
        "v:avgsim-gradual",
        "no layer but the last makes half of the rise to the last but one (it is gradual)",
        "less",
        _largest_step_less_half_the_rise(rows, below),
        published=_largest_step_less_half_the_rise(bert["avg_sim"], 11).item(),
    )


def _largest_step_less_half_the_rise(rows: pd.DataFrame, below: int) -> pd.Series:
    """From the embeddings to a layer; which step is the largest is read off the same sentences."""
    values = rows.pivot(index="item", columns="layer", values="value")
    steps = values.loc[:, :below].diff(axis=1)
    return steps[steps.mean().idxmax()] - (values[below] - values[0]) / 2


def _intra_sim(rows: pd.DataFrame, bert: pd.DataFrame, last: int) -> Iterator[Claim]:
    """Against AvgSim, as V and Ethayarajh do, and against its length-matched null."""
    ours, theirs = _less(rows, "baseline"), _less(bert, "baseline")
    source = "V; Ethayarajh 2019 §4.2 (bert-base-cased)"
    claim = partial(Claim, source=source, unit="sentences")
    for layer, where, of_bert in ((0, "the embeddings", 0), (last, f"layer {last}", 12)):
        published = _number(theirs, of_bert)
        statement = f"IntraSim exceeds AvgSim at {where}"
        name = f"v:intrasim-above-avgsim-{layer}"
        yield claim(name, statement, "greater", _at(ours, layer), published=published)
    statement = "IntraSim − AvgSim falls from the embeddings to the last layer"
    fall, published = _at(ours, last) - _at(ours, 0), _number(theirs, 12, 0)
    yield claim("v:intrasim-falls-avgsim", statement, "less", fall, published=published)
    ours = _less(rows, "null")
    claim = partial(Claim, source="our control of V", kind="our control", unit="sentences")
    for layer, where in ((0, "the embeddings"), (last, f"layer {last}")):
        statement = f"IntraSim exceeds its length-matched null at {where}"
        yield claim(f"v:intrasim-above-null-{layer}", statement, "greater", _at(ours, layer))
    statement = "IntraSim − its length-matched null falls from the embeddings to the last layer"
    yield claim("v:intrasim-falls-null", statement, "less", _at(ours, last) - _at(ours, 0))


def models_claims(tables: pd.DataFrame) -> pd.DataFrame:
    """The same rows of every further model of the profile; from `measure_models`."""
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


@judged
def dynamics_claims(dynamics: pd.DataFrame, stability: pd.DataFrame) -> Iterator[Claim]:
    """On loss change allocation; from `measure_dynamics` and `measure_stability`."""
    runs = {
        objective: dict(list(rows.groupby("seed")))
        for objective, rows in dynamics.groupby("objective")
    }
    yield from _hurting(runs)
    yield from _controls(runs)
    yield from _profiles(profile_pairs(dynamics, stability))
    yield from _likeness(profiles_by_stack(dynamics))
    yield from _described(runs)


def _by_seed(runs: dict[int, pd.DataFrame], numbers: Callable) -> pd.DataFrame:
    """Numbers of every run of an objective, one row per seed."""
    return pd.DataFrame({seed: numbers(run) for seed, run in runs.items()}).T


def _between_seeds(values: pd.Series) -> dict:
    """The differences, with the mean distance of two seeds as floor; none for a single seed."""
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
    for gradient, short in gradients.items():
        for objective, spoken in OBJECTIVE_NAMES.items():
            more = "less" if objective == "mt" else "more"
            found = _by_seed(runs[objective], lambda run, g=gradient: hurting_steps(run, g).share)
            yield claim(
                f"v:lca-attention-{objective}-{short}",
                f"{spoken}: keys and queries have {more} than their even third of the steps that "
                f"hurt ({gradient} gradients)",
                "less" if objective == "mt" else "greater",
                **_between_seeds(found[ATTENDING].sum(axis=1) - even),
                published=share[objective] - even,
            )
    for gradient, short in gradients.items():
        found = {
            objective: _by_seed(of, lambda run, g=gradient: hurting_steps(run, g)["last"])
            for objective, of in runs.items()
        }
        for other in ("clm", "mt"):
            later = found["mlm"].max(axis=1) - found[other].max(axis=1)
            yield claim(
                f"v:lca-lasting-{other}-{short}",
                "the last step that hurts comes later, in shares of the training, in masked LM "
                f"than in {OBJECTIVE_NAMES[other]} ({gradient} gradients)",
                # On the fixed set some component hurts until the last step, in every objective.
                "greater" if short == "batch" else "described",
                **_between_seeds(later),
                published=last["mlm"] - last[other],
            )


def _controls(runs: dict) -> Iterator[Claim]:
    """Embeddings, with which these models also predict; and whether the contributions add up."""
    claim = partial(_lca, source="our control", kind="our control")
    for objective, spoken in OBJECTIVE_NAMES.items():
        found = _by_seed(runs[objective], lambda run: shares(allocations(run), "component"))
        statement = f"{spoken}: embeddings take more than half of the loss change"
        evidence = _between_seeds(found["embedding"] - 0.5)
        yield claim(f"v:lca-embeddings-{objective}", statement, "greater", **evidence)
    for objective, spoken in OBJECTIVE_NAMES.items():
        found = _by_seed(runs[objective], closure_errors)
        statement = f"{spoken}: the trapezoid's contributions sum to the loss change within 1 %"
        evidence = _between_seeds(found["trapezoid"] - 0.01)
        yield claim(f"v:lca-closure-{objective}", statement, "less", **evidence)


def profiles_by_stack(dynamics: pd.DataFrame) -> pd.DataFrame:
    """Shares of the trunk's loss change by layer and component, without cross-attention.

    A row per run of `measure_dynamics`, named by objective and seed; of a translation model, "mt"
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
    for name, half, like, unlike in (
        ("encoder", "mt", "mlm", "clm"),
        ("decoder", "decoder", "clm", "mlm"),
    ):
        if half in ours and len(ours[half]) > 2:  # leaving a seed out leaves a pair

            def closer(
                seeds: Collection[int], half: str = half, like: str = like, unlike: str = unlike
            ) -> float:
                pairs = list(permutations(seeds, 2))
                of_like, of_unlike = (
                    np.mean([ours[half].loc[i].corr(ours[other].loc[j]) for i, j in pairs])
                    for other in (like, unlike)
                )
                return float(of_like - of_unlike)

            yield _lca(
                f"v:lca-{name}-like-{like}",
                f"the profile of the translation model's {name} correlates more with that of "
                f"{OBJECTIVE_NAMES[like]} than with that of {OBJECTIVE_NAMES[unlike]}",
                "greater",
                pseudo_values(closer, list(ours[half].index)),
                source=V,
            )


def profile_pairs(dynamics: pd.DataFrame, stability: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of the profiles of two runs of different seeds, which begin with other weights.

    Profiles are those of `profiles_by_stack`; of a translation model, of its encoder. Columns
    ``runs`` ("objectives" of `measure_dynamics`, "texts" of `measure_stability`: their numbers of
    steps differ), and those of `correlations`.
    """
    profiles = profiles_by_stack(dynamics)
    by_objective = profiles[profiles.index.get_level_values("objective") != "decoder"]
    pairs = [
        correlations(profiles_of(stability)).assign(runs="texts"),
        correlations(by_objective).assign(runs="objectives"),
    ]
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


def _described(runs: dict) -> Iterator[Claim]:
    """Feed-forward weights; and what V show in figures, without a number to test."""
    trunk = {
        by: {
            objective: _by_seed(of, lambda run, by=by: shares(allocations(run), by, trunk=True))
            for objective, of in runs.items()
        }
        for by in ("component", "layer")
    }
    # V: the main contributors. They would be that by their number alone.
    for objective, spoken in OBJECTIVE_NAMES.items():
        share = trunk["component"][objective][["W1", "W2"]].sum(axis=1)
        statement = f"{spoken}: feed-forward weights take more of the trunk's loss change than "
        statement += f"their share of its weights ({FEED_FORWARD[objective]})"
        name = f"v:lca-feed-forward-{objective}"
        evidence = _between_seeds(share - float(FEED_FORWARD[objective]))
        yield _lca(name, statement, "greater", **evidence, source=f"{V}, abstract")
    claim = partial(_lca, source=f"after {V}")
    for objective, spoken in OBJECTIVE_NAMES.items():
        rates = _by_seed(runs[objective], lambda run: hurting_steps(run, "fixed set").rate)
        statement = f"{spoken}: share of the block-steps that hurt, less a half (V: of parameters)"
        evidence = _between_seeds(rates.mean(axis=1) - 0.5)
        yield claim(f"v:lca-hurting-half-{objective}", statement, "described", **evidence)
    for objective, spoken in OBJECTIVE_NAMES.items():
        layers = trunk["layer"][objective]
        statement = (
            f"{spoken}: share of the last layer in the trunk's loss change, less an even share"
        )
        evidence = _between_seeds(layers[layers.columns.max()] - 1 / len(layers.columns))
        yield claim(f"v:lca-last-layer-{objective}", statement, "described", **evidence)
    for objective, spoken in OBJECTIVE_NAMES.items():
        statement = f"{spoken}: share of a layer's busiest head in the trunk's loss change, less"
        evidence = _between_seeds(
            pd.Series({s: _busiest(run) for s, run in runs[objective].items()})
        )
        name = f"v:lca-busiest-head-{objective}"
        yield claim(name, f"{statement} that of its mean head", "described", **evidence)
    for objective, spoken in OBJECTIVE_NAMES.items():
        statement = f"{spoken}: share of the training after which half of the loss change is done"
        evidence = _between_seeds(pd.Series({s: _half_time(r) for s, r in runs[objective].items()}))
        yield claim(f"v:lca-half-time-{objective}", statement, "described", **evidence)


def _busiest(run: pd.DataFrame) -> float:
    """The largest share of a head less the mean share of its layer's heads, mean over layers."""
    table = allocations(run)
    trunk = table[table.layer > 0].value.sum()
    heads = table[table["head"] >= 0].groupby(["stack", "layer", "head"]).value.sum() / trunk
    layers = heads.groupby(["stack", "layer"])
    return (layers.max() - layers.mean()).mean()


def _half_time(run: pd.DataFrame) -> float:
    loss = run[run.quantity == "loss"].set_index("step").value.sort_index()
    done = (loss - loss.iloc[0]) / (loss.iloc[-1] - loss.iloc[0])
    return (done >= 0.5).idxmax() / loss.index.max()
