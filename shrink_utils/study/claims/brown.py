"""Brown et al. 2023 (B): representational similarity, stitching, generalization.

*Understanding the Inner Workings of Language Models Through Representation Dissimilarity*; with
Merchant et al. 2020, *What Happens To BERT Embeddings During Fine-tuning?*, and Phang, Liu & Bowman
2021, *Fine-Tuned Transformers Show Clusters of Similar Representations Across Layers*.
"""

import math
from collections.abc import Collection, Iterator
from functools import partial

import pandas as pd

from shrink_utils.geometry import cka_distance
from shrink_utils.study.claims.claim import (
    Kind,
    _as_table,
    _jackknife_over_models,
    _least_favourable,
    _per_seed,
    claim,
)
from shrink_utils.study.statistics import pseudo_values
from shrink_utils.text.pairs import HELD_OUT

CKA_OF = (
    "CKA of means over the tokens of pairs, one sample: B's is of tokens, in 1,000 batches of 1,024"
)
# The claim, the pair of clouds, and the measure.
SIMILARITY = [
    ("b:late-change-cka_debiased", "finetuned", "cka_debiased"),
    ("b:late-change-rsa", "finetuned", "rsa"),
    # B: models that generalize differently part only in late layers; here, two arms.
    ("b:part-late", "arms", "cka_debiased"),
    # Gröger, Wen & Brbić: shared neighbours survive a null that is searched over layers, too.
    ("b:near", "neighbours", "calibrated"),
    # The least that clusters of adjacent layers (Phang et al.; blocks in B) imply.
    ("b:neighbours", "within", "cka_debiased"),
]


@_as_table
def _brown_claims(similarity: pd.DataFrame) -> Iterator[dict]:
    """Where fine-tuning changes representations, of every arm; from a table of chapter 08b.

    Change is 1 − similarity, of equal layers; the first layer is the one above the embeddings.
    """
    for name, pair, measure in SIMILARITY:
        rows = similarity[(similarity.pair == pair) & (similarity.measure == measure)]
        for (task, arm), own in rows.groupby(["task", "arm"], sort=False):
            about = {"cell": f"{task}:{arm}", "task": task, "arm": arm}
            kind = "scaled test" if arm == "none" else "analogue"
            yield claim(name, _similarity_differences(pair, own), **about, kind=kind)


def _similarity_differences(pair: str, rows: pd.DataFrame) -> pd.Series:
    """What the rows of `SIMILARITY` on these pairs of clouds are about, by seed."""
    match pair:
        case "neighbours":  # less chance, as it stands
            return _per_seed(rows, "value")
        case "within":  # neighbouring layers less distant ones
            apart, half = (rows.layer - rows.other).abs(), rows.layer.max() / 2
            near, far = (rows[which].groupby("seed").value for which in (apart == 1, apart > half))
            return near.mean() - far.mean()
        case _:  # change of the last layer less that of the first
            equal = rows[rows.layer == rows.other].assign(change=1 - rows.value)
            ends = (equal[equal.layer == layer] for layer in (rows.layer.max(), 1))
            last, first = (_per_seed(end, "change") for end in ends)
            return last - first


# --- Stitching ------------------------------------------------------------------------------------

SPOKEN = {"affine": "least squares", "trained": "trained stitches"}


@_as_table
def stitching_claims(stitches: pd.DataFrame) -> Iterator[dict]:
    """On stitching; from the table ``stitches`` of `read_objectives`.

    Penalties are of stitches between equal layers above the embeddings, averaged over the layers of
    models of both depths. Pairs of models are no more independent than the models: means over pairs
    leave models out, not pairs. They stand beside the hypotheses that
    docs/preregistration_objectives.md fixes.
    """
    stitched = with_models_named(stitches)
    # How penalties scatter over pairs of models that differ in their seed alone, per activation.
    cell, seeds = ["kind", "depth", "layer"], stitched[stitched.relation == "seed"]
    variances = seeds.groupby([*cell, "back"]).penalty.var().groupby(cell).mean()
    floors = (variances**0.5).groupby("kind").mean()
    rows = {kind: stitched[stitched.kind == kind] for kind in SPOKEN}
    # The premise: a stitch's loss less its penalty is the loss of the model on top.
    own = stitched.groupby(["back_number", "back"]).own.mean().unstack()
    alike, floor = own.gelu - own.solu, math.sqrt(own.var().mean())
    yield claim("b:stitch-loss", alike, floor=floor)
    for kind, spoken in SPOKEN.items():
        # As B state the asymmetry; its floor is the same where neither direction is special.
        swapped, floor = _turned(rows[kind])
        about = {"map": kind, "spoken": spoken}
        yield claim("b:stitch-asymmetry", swapped, floor=floor, **about)
        yield claim("b:stitch-beyond-loss", swapped - alike.abs(), **about)
    yield from _of_least_squares(rows["affine"], floors["affine"])
    # B's baseline: a model stitched into itself, where a trained map could learn the identity.
    trained = rows["trained"].groupby(["relation", "front", "back", "front_number"]).penalty.mean()
    for below in ("gelu", "solu"):
        other = {"gelu": "solu", "solu": "gelu"}[below]
        more = trained["activation", below, other] - trained["itself", "gelu", "gelu"]
        yield claim(f"b:stitch-itself-{below}", more)
    # Maps on the same stitches: between seeds, and between activations.
    kinds = {kind: stitched.kind == kind for kind in ("affine", "identity", "trained")}
    for relation, one, other in (
        ("seed", "affine", "identity"),
        ("activation", "trained", "affine"),
    ):
        less = _of_less(stitched[stitched.relation == relation], kinds[one], kinds[other])
        yield claim(f"b:stitch-{one}-{other}", less, floor=floors["affine"])


def _of_least_squares(rows: pd.DataFrame, floor: float) -> Iterator[dict]:
    """Against pairs that differ in their seed alone, which have no trained maps."""
    seed = rows.relation == "seed"
    routes = rows[seed | (rows.relation == "activation")]
    about = {"map": "affine", "spoken": SPOKEN["affine"], "floor": floor}
    net = _jackknife_over_models(routes, "number", _net_asymmetry)
    yield claim("b:stitch-asymmetry-net", net, **about)
    less = _of_less(rows[seed], rows.back == "solu", rows.back == "gelu")
    yield claim("b:stitch-same-activation", less, **about)  # B: one model twice
    untrained = _of_less(rows, rows.relation == "untrained", seed)
    yield claim("b:stitch-untrained", untrained, **about)
    for below in ("gelu", "solu"):
        crossing = (rows.relation == "activation") & (rows.front == below)
        more = _of_less(rows, crossing, seed & (rows.back == "gelu"))
        yield claim(f"b:stitch-crossing-{below}", more, **about)  # B: one model twice
    # Of all layers the one that speaks least for the asymmetry.
    layers = [_turned(layer)[0] for _, layer in rows.groupby(["depth", "layer"])]
    yield claim("b:stitch-every-layer", **_least_favourable(layers, "greater"))


def _of_less(rows: pd.DataFrame, of: pd.Series, minus: pd.Series) -> list[float]:
    """The mean penalty over some pairs less that over others, by model."""

    def statistic(some: pd.DataFrame) -> float:
        return some.penalty[of[some.index]].mean() - some.penalty[minus[some.index]].mean()

    return _jackknife_over_models(rows, "number", statistic)


def _net_asymmetry(some: pd.DataFrame) -> float:
    """Each route less that of two seeds into the same activation."""
    mean = some.groupby(["front", "back"]).penalty.mean()
    into_gelu = mean["solu", "gelu"] - mean["gelu", "gelu"]
    return float(into_gelu - (mean["gelu", "solu"] - mean["solu", "solu"]))


# --- §4: models that generalize, and models that follow a heuristic -------------------------------


@_as_table
def generalization_claims(table: pd.DataFrame) -> Iterator[dict]:
    """On models that generalize or follow a heuristic; from chapter 09b.

    The unit is a number that names one model of each group. Accuracies give one difference per
    number; of CKA and stitching, which pairs of models have, the interval leaves out numbers.
    Floors are standard deviations between models, or pairs of models, of one group. B's groups are
    the ends of a hundred fine-tuned BERTs, of the profile `paper`; ours are planted: one of them
    saw counter-examples. HANS has neither held-out constructions nor words of our lexicons.
    """
    accuracy = table[table.quantity == "accuracy"]
    planted = bool(accuracy.template.isin(HELD_OUT).any())
    kind = "analogue" if planted else "paper's test"
    yield from _accuracies(accuracy, kind)
    for data, spoken in {"overlap": "pairs of overlapping words", "dev": "dev pairs"}.items():
        about = {"kind": kind, "departures": CKA_OF, "data": data, "spoken": spoken}
        yield from _ckas(pairs_of(table, "cka", data), about)
    penalties, stitched = pairs_of(table, "penalty", "dev"), pairs_of(table, "stitched", "overlap")
    last = int(table.layer.max())
    late = _gaps(penalties, {1: 1, last: -1})
    yield claim("b:generalization-stitch-late", **late, kind=kind)
    yield from _free(penalties, kind)
    # Who decides on overlapping words: the group above a stitch, or the one below?
    for where, layer in (("above", 1), ("below", last)):
        values = pseudo_values(partial(crossed, stitched, layer=layer), numbers_of(stitched))
        floor = _spread_in_groups(stitched, {layer: 1})
        yield claim(f"b:generalization-stitch-{where}", values, floor=floor, kind=kind)


def _free(penalties: pd.DataFrame, kind: Kind) -> Iterator[dict]:
    """Identity stitches that cost almost nothing: all of the first layer, those within a group."""
    numbers = numbers_of(penalties)

    def saved(rows: pd.DataFrame) -> pd.Series:
        def statistic(some: Collection[int]) -> float:
            chosen = rows[rows.number.isin(some) & rows.other_number.isin(some)]
            return -float(chosen.groupby("relation").value.mean().mean())

        return pd.Series(pseudo_values(statistic, numbers))

    first = saved(penalties[penalties.layer == 1])
    yield claim("b:generalization-early-free", first, kind=kind)
    within = penalties[(penalties.relation != "between") & (penalties.layer > 0)]
    layers = [saved(rows) for _, rows in within.groupby("layer")]
    worst = _least_favourable(layers, "no_worse")
    yield claim("b:generalization-within-free", **worst, kind=kind)


def _accuracies(accuracy: pd.DataFrame, kind: Kind) -> Iterator[dict]:
    """How the groups were made or chosen: that a recipe works is no finding of B's."""
    refuted = accuracy[(accuracy.label == "not_entailment") & (accuracy.data == "overlap")]
    new_words = accuracy[accuracy.data == "new words"].groupby(["group", "number", "label"])
    new_words = new_words.value.mean().reset_index()  # both labels count alike
    rows = {
        "unseen": refuted[refuted.template.isin(HELD_OUT)],
        "new-words": new_words,
        "dev": accuracy[accuracy.data == "dev"],
    }
    for short, own in rows.items():
        if len(own):
            # The floor is the spread within a group.
            by_group = own.groupby(["number", "group"]).value.mean().unstack()
            gap, floor = by_group.generalizing - by_group.heuristic, by_group.var().mean() ** 0.5
            yield claim(f"b:generalization-accuracy-{short}", gap, floor=floor, kind=kind)


def _ckas(rows: pd.DataFrame, about: dict[str, str]) -> Iterator[dict]:
    """The groups part only in late layers; the first is the one above the embeddings."""
    last = int(rows.layer.max())
    late = _gaps(rows, {last: 1, 1: -1})
    yield claim("b:generalization-cka-late-{data}", **late, **about)
    early = _gaps(rows, {1: 1, last: -0.5})
    yield claim("b:generalization-cka-early-{data}", **early, **about)
    if last // 2 > 1:
        middle = _gaps(rows, {last // 2: 1, last: -0.5})
        yield claim("b:generalization-cka-middle-{data}", **middle, **about)
    # The distance of two models is √Σ arccos(CKA)² over their layers.
    pair = ["relation", "group", "number", "other", "other_number"]
    distances = rows.groupby(pair).value.agg(cka_distance).reset_index().assign(layer=0)
    apart = _gaps(distances, {0: -1})
    yield claim("b:generalization-distance-{data}", **apart, **about)


def _gaps(rows: pd.DataFrame, weights: dict[int, float]) -> dict:
    """Weighted gaps of layers: the mean of pairs within the groups less that between them."""

    def gap(numbers: Collection[int], layer: int) -> float:
        cell = rows[rows.layer == layer]
        one, other, between = (
            _mean(cell[cell.relation == relation], numbers) for relation in (*GROUPS, "between")
        )
        return (one + other) / 2 - between

    def statistic(numbers: Collection[int]) -> float:
        return sum(weight * gap(numbers, layer) for layer, weight in weights.items())

    values = pseudo_values(statistic, numbers_of(rows))
    return {"differences": values, "floor": _spread_in_groups(rows, weights)}


def _spread_in_groups(rows: pd.DataFrame, weights: dict[int, float]) -> float:
    """Standard deviation, over pairs of one group, of a weighted sum over layers."""
    within = rows[rows.relation != "between"]
    pair = ["relation", "number", "other_number"]
    wide = within.pivot(index=pair, columns="layer", values="value")
    sums = sum(weight * wide[layer] for layer, weight in weights.items())
    return math.sqrt(sums.groupby("relation").var().mean())


# --- what 09, 09b and the claims read off stitched models, and off models of two groups -----------

GROUPS = ("heuristic", "generalizing")
CROSSINGS = ("heuristic below generalizing", "generalizing below heuristic")


def with_models_named(stitches: pd.DataFrame) -> pd.DataFrame:
    """With the models' activations in ``front`` and ``back``, their seeds in columns beside them.

    `stitches` are those of `read_objectives`, whose models are named as "gelu-500". Below an
    untrained model's front, "untrained gelu-500", stands the activation that it would have had.
    """
    named = stitches.copy()
    for end in ("front", "back"):
        parts = stitches[end].str.removeprefix("untrained ").str.split("-")
        named[end], named[f"{end}_number"] = parts.str[0], parts.str[1].astype(int)
    return named


def _turned(stitched: pd.DataFrame) -> tuple[pd.Series, float]:
    """Change of the penalty when two models change places: SoLU below GeLU less GeLU below SoLU.

    By the pair's number; and the same of two seeds, as a root mean square: no direction is special.
    """
    mixed, alike = (stitched[stitched.relation == name] for name in ("activation", "seed"))
    mixed = mixed.groupby(["front_number", "front"]).penalty.mean().unstack()
    alike = alike.groupby(["front", "front_number", "back_number"]).penalty.mean()
    alike = alike - alike.swaplevel().reindex(alike.index)
    return mixed["solu"] - mixed["gelu"], float((alike**2).mean() ** 0.5)


def pairs_of(table: pd.DataFrame, quantity: str, data: str) -> pd.DataFrame:
    """Rows of chapter 09b's groups between two models, with their ``relation`` and ``crossing``.

    ``relation`` is the group that both models are of, or "between"; ``crossing`` says which group
    is below where there are two, and is empty where there is one.
    """
    rows = table[(table.quantity == quantity) & (table.data == data)].copy()
    two = rows.group != rows.other
    rows["relation"] = rows.group.where(~two, "between")
    rows["crossing"] = (rows.group + " below " + rows.other).where(two, "")
    return rows


def numbers_of(rows: pd.DataFrame) -> list[int]:
    """The numbers of the models; each names one model per group."""
    return sorted(set(rows.number) | set(rows.other_number) - {-1})


def crossed(rows: pd.DataFrame, numbers: Collection[int], layer: int) -> float:
    """Mean with a generalizing model below minus that with one above.

    `rows` are of `pairs_of`; only models of these `numbers` count.
    """
    cell = rows[rows.layer == layer]
    above, below = (_mean(cell[cell.crossing == crossing], numbers) for crossing in CROSSINGS)
    return below - above


def _mean(rows: pd.DataFrame, numbers: Collection[int]) -> float:
    return float(rows[rows.number.isin(numbers) & rows.other_number.isin(numbers)].value.mean())
