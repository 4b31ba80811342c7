"""Claims on loss change allocation, of models trained here from nothing."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd

from shrink_utils.study.claims.claim import Evidence, judge, leaving_out, quantity
from shrink_utils.study.dynamics.experiment import CELL, allocations
from shrink_utils.study.dynamics.reading import (
    COUNTED,
    closure_errors,
    correlations,
    hurting_steps,
    profiles_of,
    published_steps,
)
from shrink_utils.training.dynamics import shares

ATTENDING = ["key", "query"]


def dynamics_claims(dynamics: pd.DataFrame, stability: pd.DataFrame) -> pd.DataFrame:
    """Vázquez et al. 2022 on dynamics; from `measure_dynamics` and `measure_stability`."""
    tables = {"dynamics": dynamics, "profiles": profile_pairs(dynamics, stability)}
    return judge("dynamics", tables)


def profile_pairs(dynamics: pd.DataFrame, stability: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of the profiles of two runs of different seeds, which begin with other weights.

    Profiles are shares of the trunk's loss change by layer and component; of a translation model,
    of its encoder. Columns ``runs`` ("objectives" of `measure_dynamics`, "texts" of
    `measure_stability`: their numbers of steps differ), and those of `correlations`.
    """
    objectives = {
        (objective, seed): shares(_one_stack(allocations(run)), *CELL, trunk=True)
        for (objective, seed), run in dynamics.groupby(["objective", "seed"])
    }
    by_objective = pd.DataFrame(objectives).T.rename_axis(index=["objective", "seed"])
    pairs = [
        correlations(profiles_of(stability)).assign(runs="texts"),
        correlations(by_objective).assign(runs="objectives"),
    ]
    return pd.concat(pairs, ignore_index=True)


def _one_stack(table: pd.DataFrame) -> pd.DataFrame:
    own = ~table.component.str.startswith("cross ")
    return table[table["stack"].isin(["", "encoder"]) & own]


@quantity
def excess_of_objectives(pairs: pd.DataFrame, difference: dict) -> Evidence:
    """Mean r of other objectives less that of other texts, each less its own baseline, by seed.

    The baseline is pairs of the same kind of run that differ in their seed alone: it carries the
    noise of so many steps. The floor is its spread, the mean of both kinds.
    """

    def statistic(some: pd.DataFrame) -> float:
        mean = some.groupby(["runs", some.differs == "seed"]).r.mean().unstack()
        excess = mean[False] - mean[True]
        return float(excess["objectives"] - excess["texts"])

    baseline = pairs[pairs.differs == "seed"].groupby("runs").r
    return Evidence(leaving_out(pairs, "seed", statistic), float(baseline.std().mean()))


@quantity
def share_of_attention(dynamics: pd.DataFrame, difference: dict) -> Evidence:
    """What keys and queries have of the steps that hurt, less their share if all were alike."""
    objective, gradient = difference["objective"], difference["gradient"]
    found = _by_seed(dynamics, objective, lambda run: hurting_steps(run, gradient).share)
    published = published_steps().set_index(["objective", "component"]).share[objective]
    even = len(ATTENDING) / len(COUNTED)
    return _between_seeds(found[ATTENDING].sum(axis=1) - even, published[ATTENDING].sum() - even)


@quantity
def last_hurting_step(dynamics: pd.DataFrame, difference: dict) -> Evidence:
    """The last step that hurts in masked LM less that of another objective."""
    other, gradient = difference["other"], difference["gradient"]

    def last(objective: str) -> pd.Series:
        found = _by_seed(dynamics, objective, lambda run: hurting_steps(run, gradient)["last"])
        return found.max(axis=1)

    published = published_steps().groupby("objective")["last"].max()
    return _between_seeds(last("mlm") - last(other), published["mlm"] - published[other])


@quantity
def share_of_embeddings(dynamics: pd.DataFrame, difference: dict) -> Evidence:
    """What embeddings take of the loss change."""
    objective = difference["objective"]
    found = _by_seed(dynamics, objective, lambda run: shares(allocations(run), "component"))
    return _between_seeds(found["embedding"] - difference["beyond"])


@quantity
def closure_error(dynamics: pd.DataFrame, difference: dict) -> Evidence:
    """By how much the trapezoid's contributions miss the loss change."""
    found = _by_seed(dynamics, difference["objective"], closure_errors)
    return _between_seeds(found["trapezoid"] - difference["beyond"])


@quantity
def share_of_feed_forward(dynamics: pd.DataFrame, difference: dict) -> Evidence:
    """What W1 and W2 take of the trunk's loss change."""
    found = _trunk_shares(dynamics, difference["objective"], "component")
    return _between_seeds(found[["W1", "W2"]].sum(axis=1) - difference["beyond"])


@quantity
def share_of_last_layer(dynamics: pd.DataFrame, difference: dict) -> Evidence:
    """What the last layer takes of the trunk's loss change, less an even share."""
    found = _trunk_shares(dynamics, difference["objective"], "layer")
    return _between_seeds(found[found.columns.max()] - 1 / len(found.columns))


@quantity
def share_of_busiest_head(dynamics: pd.DataFrame, difference: dict) -> Evidence:
    """The largest share of a head less the mean share of its layer's heads, mean over layers."""

    def numbers(run: pd.DataFrame) -> pd.Series:
        table = allocations(run)
        trunk = table[table.layer > 0].value.sum()
        heads = table[table["head"] >= 0].groupby(["stack", "layer", "head"]).value.sum() / trunk
        layers = heads.groupby(["stack", "layer"])
        return pd.Series({"busiest": (layers.max() - layers.mean()).mean()})

    return _between_seeds(_by_seed(dynamics, difference["objective"], numbers).busiest)


@quantity
def half_time(dynamics: pd.DataFrame, difference: dict) -> Evidence:
    """The share of the training after which half of the loss change is done."""

    def numbers(run: pd.DataFrame) -> pd.Series:
        loss = run[run.quantity == "loss"].set_index("step").value.sort_index()
        done = (loss - loss.iloc[0]) / (loss.iloc[-1] - loss.iloc[0])
        return pd.Series({"half": (done >= 0.5).idxmax() / loss.index.max()})

    return _between_seeds(_by_seed(dynamics, difference["objective"], numbers).half)


def _trunk_shares(dynamics: pd.DataFrame, objective: str, by: str) -> pd.DataFrame:
    return _by_seed(dynamics, objective, lambda run: shares(allocations(run), by, trunk=True))


def _by_seed(
    dynamics: pd.DataFrame, objective: str, numbers: Callable[[pd.DataFrame], pd.Series]
) -> pd.DataFrame:
    """Numbers of every run of an objective, one row per seed."""
    rows = dynamics[dynamics.objective == objective]
    return pd.DataFrame({seed: numbers(record) for seed, record in rows.groupby("seed")}).T


def _between_seeds(values: pd.Series, published: float | None = None) -> Evidence:
    """With the mean distance of two seeds as floor; none for a single seed."""
    distances = [abs(a - b) for a, b in combinations(values, 2)]
    return Evidence(values, float(np.mean(distances)) if distances else None, published)
