"""Claims on models trained here from nothing: two encoders, dynamics, stitching, generalization."""

import math
from collections.abc import Callable, Collection, Iterator
from itertools import combinations, permutations

import numpy as np
import pandas as pd

from shrink_utils.geometry import cka_distance
from shrink_utils.paths import data_dir
from shrink_utils.study.claims.claim import Evidence, judge, quantity, select
from shrink_utils.study.dynamics.experiment import CELL, RUN, allocations
from shrink_utils.study.dynamics.reading import (
    COUNTED,
    closure_errors,
    hurting_steps,
    profiles_of,
    published_steps,
)
from shrink_utils.study.generalization.experiment import crossed, gap, numbers_of, pairs_of
from shrink_utils.study.intervals import pseudo_values
from shrink_utils.study.stitching.experiment import penalty_floors
from shrink_utils.study.stitching.family_structure import (
    affinity,
    block_numbers,
    deviance,
    deviance_floor,
)
from shrink_utils.study.stitching.figures import turned
from shrink_utils.text.heuristics import HELD_OUT
from shrink_utils.training.dynamics import shares

ATTENDING = ["key", "query"]

Statistic = Callable[[pd.DataFrame], float]


def two_encoders_claims(table: pd.DataFrame) -> pd.DataFrame:
    """Vázquez et al. on a masked LM and a translation encoder; from `measure_two_encoders`."""
    tables = {"avg_sim": _avg_sim_by_encoder(table), "pairs": encoder_pairs(table)}
    return judge("two_encoders", tables)


def encoder_pairs(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of two encoders, with their ``relation``.

    It is "mlm" or "mt" for encoders of one objective and different seeds, "between" for a masked LM
    and a translation encoder of different seeds, and "same start" for those of one seed, which
    begin with equal weights.
    """
    rows = table[table.back != ""].copy()
    rows["relation"] = rows.front.where(rows.front == rows.back, "between")
    rows.loc[rows.front_seed == rows.back_seed, "relation"] = "same start"
    return rows


def _avg_sim_by_encoder(table: pd.DataFrame) -> pd.DataFrame:
    """At the embeddings, how much it rises, its largest step, and the last step less the next."""
    rows = table[table.quantity == "avg_sim"]
    wide = rows.pivot(index=["front", "front_seed"], columns="layer", values="value")
    last = wide.columns.max()
    steps = wide.diff(axis=1).drop(columns=0)
    found = {
        "embedding": wide[0],
        "rise": wide[last] - wide[0],
        "largest": steps.max(axis=1),
        "jump": steps[last] - steps.drop(columns=last).max(axis=1),
    }
    return pd.DataFrame(found).reset_index()


@quantity
def objectives_less_seeds(pairs: pd.DataFrame, difference: dict) -> Evidence:
    """Similarity of the two objectives less that of encoders that differ in their seed alone."""

    def statistic(rows: pd.DataFrame) -> float:
        means = rows.groupby("relation").value.mean()
        return float(means["between"] - (means["mlm"] + means["mt"]) / 2)

    plain = pairs[pairs["map"] == "none"]
    return Evidence(_leaving_out(plain, "seed", statistic), _spread_between_seeds(plain))


@quantity
def gained_by_map(pairs: pd.DataFrame, difference: dict) -> Evidence:
    """Similarity of the two objectives under a map less that without one."""

    def statistic(rows: pd.DataFrame) -> float:
        return float(rows[rows.relation == "between"].value.mean())

    keys = ["relation", "front_seed", "back_seed", "layer"]
    wide = pairs.pivot(index=keys, columns="map", values="value")
    gained = (wide[difference["map"]] - wide["none"]).rename("value").reset_index()
    return Evidence(_leaving_out(gained, "seed", statistic), _spread_between_seeds(gained))


def _spread_between_seeds(rows: pd.DataFrame) -> float:
    """Over pairs of encoders of one objective, of the mean over layers."""
    within = rows[rows.relation.isin(["mlm", "mt"])]
    means = within.groupby(["relation", "front_seed", "back_seed"]).value.mean()
    return math.sqrt(means.groupby("relation").var().mean())


def _leaving_out(pairs: pd.DataFrame, unit: str, statistic: Statistic) -> list[float]:
    """One value per model, for what is computed from pairs of models: see `pseudo_values`."""
    front, back = pairs[f"front_{unit}"], pairs[f"back_{unit}"]

    def of_some(some: Collection[int]) -> float:
        return statistic(pairs[front.isin(some) & back.isin(some)])

    return pseudo_values(of_some, sorted(back.unique()))


@quantity
def mean_of_pairs(pairs: pd.DataFrame, difference: dict) -> Evidence:
    """Of a column, where `of` holds less where `minus` holds, by model; either may be left out.

    The floor is the spread of the pairs of `minus`, or of all there are.
    """

    def column(some: pd.DataFrame, name: str) -> pd.Series:
        chosen = select(some, difference[name], difference) if name in difference else some
        return chosen.eval(difference["column"], engine="python")

    def statistic(some: pd.DataFrame) -> float:
        less = column(some, "minus").mean() if "minus" in difference else 0.0
        return column(some, "of").mean() - less

    unit = difference.get("pairs_of", "seed")
    return Evidence(_leaving_out(pairs, unit, statistic), float(column(pairs, "minus").std()))


def dynamics_claims(dynamics: pd.DataFrame, stability: pd.DataFrame) -> pd.DataFrame:
    """Vázquez et al. 2022 on dynamics; from `measure_dynamics` and `measure_stability`."""
    tables = {"dynamics": dynamics, "profiles": profile_pairs(dynamics, stability)}
    return judge("dynamics", tables)


def profile_pairs(dynamics: pd.DataFrame, stability: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of the profiles of two runs of different seeds, which begin with other weights.

    From `measure_dynamics` and `measure_stability`: columns ``differs`` ("objective", "size",
    "source", or "seed" where nothing else does), ``front_seed``, ``back_seed`` and ``r``. Profiles
    are shares of the trunk's loss change by layer and component; of a translation model, of its
    encoder.
    """
    objectives = {
        (objective, seed): shares(_one_stack(allocations(run)), *CELL, trunk=True)
        for (objective, seed), run in dynamics.groupby(["objective", "seed"])
    }
    by_objective = pd.DataFrame(objectives).T
    rows = [*_pairs_of_profiles(profiles_of(stability), RUN)]
    rows += [
        pair
        for pair in _pairs_of_profiles(by_objective, ["objective", "seed"])
        if pair[0] == "objective"
    ]
    return pd.DataFrame(rows, columns=["differs", "front_seed", "back_seed", "r"])


def _one_stack(table: pd.DataFrame) -> pd.DataFrame:
    own = ~table.component.str.startswith("cross ")
    return table[table["stack"].isin(["", "encoder"]) & own]


def _pairs_of_profiles(
    profiles: pd.DataFrame, names: list[str]
) -> Iterator[tuple[str, int, int, float]]:
    """Pairs that differ in their seed and in one thing more at most."""
    for (front, x), (back, y) in permutations(profiles.iterrows(), 2):
        *others, seed = (a != b for a, b in zip(front, back, strict=True))
        if seed and sum(others) < 2:
            what = names[others.index(True)] if any(others) else "seed"
            yield what, front[-1], back[-1], float(np.corrcoef(x, y)[0, 1])


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


def stitching_claims(stitched: pd.DataFrame, family: pd.DataFrame) -> pd.DataFrame:
    """Brown et al. on stitching and sizes; from `measure_stitched` and `measure_family`."""
    alike = affinity(family)
    trained = stitched[(stitched.kind == "trained") & (stitched.relation == "seed")].front_layer
    tables = {
        "stitched": stitched.assign(
            equal=_equal_layers(stitched), at_trained=stitched.front_layer.isin(trained)
        ),
        "family": family,
        "blocks": block_numbers(family),
        "affinity": alike[alike.relation == "members"],
        "seed_pairs": _seed_pairs(family),
    }
    return judge(
        "stitching",
        tables,
        half_the_depth=stitched.front_layer.max() / 2,
        has_seeds=len(tables["seed_pairs"]) > 0,
    )


def _seed_pairs(family: pd.DataFrame) -> pd.DataFrame:
    """CKA of the first and the last layer of two models of one member, in both orders."""
    rows = family[(family.relation == "seeds") & (family.layer > 0)].sort_values("layer")
    ends = rows.groupby(["member", "seed", "other_seed"]).cka.agg(["first", "last"]).reset_index()
    there = ends.rename(columns={"seed": "front_seed", "other_seed": "back_seed"})
    back = ends.rename(columns={"seed": "back_seed", "other_seed": "front_seed"})
    return pd.concat([there, back], ignore_index=True)


def floors_above_untrained(stitched: pd.DataFrame, kind: str) -> float:
    """By how many noise floors stitches of this map beat those to an untrained bottom."""
    rows = stitched[_equal_layers(stitched) & (stitched.kind == kind)]
    untrained, seed = (rows[rows.relation == name].penalty.mean() for name in ("untrained", "seed"))
    return float((untrained - seed) / _penalty_floor(stitched, kind))


@quantity
def asymmetry(rows: pd.DataFrame, difference: dict) -> Evidence:
    """SoLU below GeLU less GeLU below SoLU: each number's pair of models stands in no other pair.

    The floor is the root mean square of the same where neither direction is special.
    """
    found = turned(rows, difference["column"])
    return Evidence(found.mixed, found.floor)


@quantity
def mean_penalty(stitched: pd.DataFrame, difference: dict) -> Evidence:
    """The mean over pairs where `of` holds less that where `minus` holds, by model."""

    def statistic(some: pd.DataFrame) -> float:
        of, minus = (select(some, difference[name], difference) for name in ("of", "minus"))
        return of.penalty.mean() - minus.penalty.mean()

    values = _leaving_out(stitched, "number", statistic)
    return Evidence(values, _penalty_floor(stitched, difference["map"]))


@quantity
def net_asymmetry(stitched: pd.DataFrame, difference: dict) -> Evidence:
    """As `asymmetry`, each route less that of two seeds into the same activation, by model."""

    def statistic(some: pd.DataFrame) -> float:
        mean = some.groupby(["front", "back"]).penalty.mean()
        into_gelu = mean["solu", "gelu"] - mean["gelu", "gelu"]
        return float(into_gelu - (mean["gelu", "solu"] - mean["solu", "solu"]))

    rows = stitched[stitched.relation.isin(["activation", "seed"])]
    values = _leaving_out(rows, "number", statistic)
    return Evidence(values, _penalty_floor(stitched, difference["map"]))


def _equal_layers(table: pd.DataFrame) -> pd.Series:
    """Where a stitch joins equal layers above the embeddings."""
    return (table.front_layer == table.back_layer) & (table.front_layer > 0)


def _penalty_floor(stitched: pd.DataFrame, kind: str) -> float:
    floors = penalty_floors(stitched)
    return float(floors[_equal_layers(floors) & (floors.kind == kind)].floor.mean())


@quantity
def trained_less_untrained(rows: pd.DataFrame, difference: dict) -> Evidence:
    """A number of models, or of pairs of them, by seed; the floor is its spread over seeds."""
    models = [name for name in ("member", "other") if name in rows]
    column = difference["column"]
    wide = rows.pivot_table(index=[*models, "seed"], columns="weights", values=column)
    gained = (wide.trained - wide.untrained).groupby("seed").mean()
    return Evidence(gained, wide.trained.groupby(models).std().mean())


@quantity
def most_deviant(family: pd.DataFrame, difference: dict) -> Evidence:
    """Of each seed, the deviance of the member that deviates most for the *other* seeds.

    Chosen and judged on the same seed, the largest of several numbers would be large by choice. A
    family of one seed leaves nothing else.
    """
    floor = deviance_floor(family)
    wide = deviance(family).pivot(index="seed", columns="member", values="deviance")
    if len(wide) == 1:
        return Evidence(wide.max(axis=1), floor)
    chosen = {seed: wide.drop(index=seed).mean().idxmax() for seed in wide.index}
    return Evidence([wide.loc[seed, member] for seed, member in chosen.items()], floor)


def generalization_claims(table: pd.DataFrame) -> pd.DataFrame:
    """Brown et al. on models that generalize or follow a heuristic; `measure_generalization`."""
    accuracy = table[table.quantity == "accuracy"]
    refuted = accuracy[(accuracy.label == "not_entailment") & (accuracy.data == "overlap")]
    new_words = accuracy[accuracy.data == "new words"].groupby(["group", "number", "label"])
    tables = {
        "generalization": table,
        "refuted": refuted.assign(held_out=refuted.template.isin(HELD_OUT)),
        "new_words": new_words.value.mean().reset_index(),
    }
    last = int(table.layer.max())
    return judge(
        "generalization",
        tables,
        first=1,  # above the embeddings
        middle=last // 2,
        last=last,
        has_held_out=bool(tables["refuted"].held_out.any()),
        has_new_words=len(tables["new_words"]) > 0,
    )


def group_accuracies(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each model: dev, and pairs of overlapping words by heuristic and label.

    Columns data, heuristic, label, group, number, value: means over templates, which have as many
    pairs each.
    """
    rows = table[table.quantity == "accuracy"]
    cell = ["data", "heuristic", "label", "group", "number"]
    return rows.groupby(cell, sort=False).value.mean().reset_index()


def published_accuracies() -> pd.DataFrame:
    """Accuracies of the feather BERTs: columns data, heuristic, label, group, mean, sd, runs."""
    return pd.read_csv(data_dir() / "published" / "feather_berts.csv", keep_default_na=False)


@quantity
def accuracy_gap(rows: pd.DataFrame, difference: dict) -> Evidence:
    """Generalizing less heuristic models, by number; the floor is the spread within a group."""
    by_group = rows.groupby(["number", "group"]).value.mean().unstack()
    floor = math.sqrt(by_group.var().mean())
    return Evidence(by_group["generalizing"] - by_group["heuristic"], floor)


@quantity
def gaps_of_groups(table: pd.DataFrame, difference: dict) -> Evidence:
    """Gaps of layers, each with its weight, from pairs of models."""
    rows = pairs_of(table, difference["measured"], difference["data"])
    weights = [(difference[name], weight) for name, weight in difference["gaps"].items()]

    def statistic(numbers: Collection[int]) -> float:
        return sum(weight * gap(rows, numbers, layer) for layer, weight in weights)

    return Evidence(pseudo_values(statistic, numbers_of(rows)), _spread_in_groups(rows, weights))


@quantity
def distance_between_groups(table: pd.DataFrame, difference: dict) -> Evidence:
    """CKA distance of models of two groups less that of models of one, by number."""
    rows = pairs_of(table, "cka", difference["data"])
    pair = ["relation", "group", "number", "other", "other_number"]
    distances = rows.groupby(pair).value.agg(cka_distance).reset_index().assign(layer=0)
    values = pseudo_values(lambda numbers: -gap(distances, numbers, 0), numbers_of(rows))
    return Evidence(values, _spread_in_groups(distances, [(0, 1)]))


@quantity
def below_less_above_a_stitch(table: pd.DataFrame, difference: dict) -> Evidence:
    """What a generalizing model below a stitch does to the answers, less one above it."""
    rows = pairs_of(table, difference["measured"], difference["data"])
    layer = difference[difference["at"]]
    values = pseudo_values(lambda numbers: crossed(rows, numbers, layer), numbers_of(rows))
    return Evidence(values, _spread_in_groups(rows, [(layer, 1)]))


def _spread_in_groups(rows: pd.DataFrame, weights: list[tuple[int, float]]) -> float:
    """Standard deviation, over pairs of one group, of a weighted sum over layers."""
    within = rows[rows.relation != "between"]
    pair = ["relation", "number", "other_number"]
    wide = within.pivot(index=pair, columns="layer", values="value")
    sums = sum(weight * wide[layer] for layer, weight in weights)
    return math.sqrt(sums.groupby("relation").var().mean())
