"""Claims on models trained here from nothing: two encoders, stitching, generalization."""

import math
from collections.abc import Collection

import pandas as pd

from shrink_utils.geometry import cka_distance
from shrink_utils.paths import data_dir
from shrink_utils.study.claims.claim import Evidence, judge, leaving_out, quantity, select
from shrink_utils.study.generalization.experiment import crossed, gap, numbers_of, pairs_of
from shrink_utils.study.statistics import pseudo_values
from shrink_utils.study.stitching.experiment import penalty_floors
from shrink_utils.study.stitching.family_structure import (
    affinity,
    block_numbers,
    deviance,
    deviance_floor,
)
from shrink_utils.study.stitching.figures import turned
from shrink_utils.text.heuristics import HELD_OUT


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
    return Evidence(leaving_out(plain, "seed", statistic), _spread_between_seeds(plain))


@quantity
def gained_by_map(pairs: pd.DataFrame, difference: dict) -> Evidence:
    """Similarity of the two objectives under a map less that without one."""

    def statistic(rows: pd.DataFrame) -> float:
        return float(rows[rows.relation == "between"].value.mean())

    keys = ["relation", "front_seed", "back_seed", "layer"]
    wide = pairs.pivot(index=keys, columns="map", values="value")
    gained = (wide[difference["map"]] - wide["none"]).rename("value").reset_index()
    return Evidence(leaving_out(gained, "seed", statistic), _spread_between_seeds(gained))


def _spread_between_seeds(rows: pd.DataFrame) -> float:
    """Over pairs of encoders of one objective, of the mean over layers."""
    within = rows[rows.relation.isin(["mlm", "mt"])]
    means = within.groupby(["relation", "front_seed", "back_seed"]).value.mean()
    return math.sqrt(means.groupby("relation").var().mean())


def stitching_claims(
    stitched: pd.DataFrame, activations: pd.DataFrame, family: pd.DataFrame
) -> pd.DataFrame:
    """Brown et al. on stitching, activations and sizes, from the tables of these names."""
    alike = affinity(family)
    trained = stitched[(stitched.kind == "trained") & (stitched.relation == "seed")].front_layer
    tables = {
        "stitched": stitched.assign(
            equal=_equal_layers(stitched), at_trained=stitched.front_layer.isin(trained)
        ),
        "activations": activations,
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

    values = leaving_out(stitched, "number", statistic)
    return Evidence(values, _penalty_floor(stitched, difference["map"]))


@quantity
def net_asymmetry(stitched: pd.DataFrame, difference: dict) -> Evidence:
    """As `asymmetry`, each route less that of two seeds into the same activation, by model."""

    def statistic(some: pd.DataFrame) -> float:
        mean = some.groupby(["front", "back"]).penalty.mean()
        into_gelu = mean["solu", "gelu"] - mean["gelu", "gelu"]
        return float(into_gelu - (mean["gelu", "solu"] - mean["solu", "solu"]))

    rows = stitched[stitched.relation.isin(["activation", "seed"])]
    values = leaving_out(rows, "number", statistic)
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
