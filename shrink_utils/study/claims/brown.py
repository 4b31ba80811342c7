"""Brown et al. 2023 (B): representational similarity, stitching, generalization.

*Understanding the Inner Workings of Language Models Through Representation Dissimilarity*; with
Merchant et al. 2020, *What Happens To BERT Embeddings During Fine-tuning?*, and Phang, Liu & Bowman
2021, *Fine-Tuned Transformers Show Clusters of Similar Representations Across Layers*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial

import pandas as pd

from shrink_utils.geometry import cka_distance
from shrink_utils.paths import data_dir
from shrink_utils.study.claims.claim import MARGIN, Claim, by_unit, judged, leaving_out
from shrink_utils.study.generalization.experiment import crossed, gap, numbers_of, pairs_of
from shrink_utils.study.statistics import pseudo_values
from shrink_utils.study.stitching.experiment import penalty_floors
from shrink_utils.study.stitching.figures import turned
from shrink_utils.text.pairs import HELD_OUT

CKA_OF = "CKA of {}, one sample: B's is of tokens, in 1,000 batches of 1,024"


@judged
def brown_claims(similarity: pd.DataFrame) -> Iterator[Claim]:
    """Where fine-tuning changes representations, of every arm; from `measure_similarity`.

    Change is 1 − similarity, of equal layers; the first layer is the one above the embeddings.
    """
    similarity = similarity.assign(change=1 - similarity.value)

    def by_arm(pair: str, measure: str) -> Iterator[tuple]:
        rows = similarity[(similarity.pair == pair) & (similarity.measure == measure)]
        for (task, arm), own in rows.groupby(["task", "arm"], sort=False):
            kind = "scaled test" if arm == "none" else "analogue"
            yield partial(Claim, task=task, arm=arm, kind=kind), f"{task}:{arm}", own

    def late_less_early(rows: pd.DataFrame) -> pd.Series:
        equal = rows[rows.layer == rows.other]
        ends = (equal[equal.layer == layer] for layer in (rows.layer.max(), 1))
        last, first = (by_unit(end, "change") for end in ends)
        return last - first

    for measure, spoken in {"cka_debiased": "debiased CKA", "rsa": "RSA"}.items():
        for claim, cell, rows in by_arm("finetuned", measure):
            name = f"b:late-change-{measure}:{cell}"
            statement = f"fine-tuning changes the last layer more than the first ({spoken})"
            found = late_less_early(rows)
            yield claim(name, statement, "greater", found, source="Merchant et al. 2020")
    # B: models that generalize differently part only in late layers; here, two arms.
    for claim, cell, rows in by_arm("arms", "cka_debiased"):
        yield claim(
            f"b:part-late:{cell}",
            "it parts from plain fine-tuning more in the last layer than in the first",
            "greater",
            late_less_early(rows),
            source="after B",
            departures=CKA_OF.format("words"),
        )
    # Gröger, Wen & Brbić: shared neighbours survive a null that is searched over layers, too.
    for claim, cell, rows in by_arm("neighbours", "calibrated"):
        name = f"b:near:{cell}"
        statement = (
            "it shares more near neighbours with random weights than a search finds by chance"
        )
        found, source = by_unit(rows, "value"), "after Gröger et al. 2026"
        yield claim(name, statement, "greater", found, source=source, kind="analogue")
    # The least that clusters of adjacent layers (Phang et al.; blocks in B) imply.
    for claim, cell, rows in by_arm("within", "cka_debiased"):
        apart = (rows.layer - rows.other).abs()
        near, far = (
            rows[which].groupby("seed").value.mean()
            for which in (apart == 1, apart > rows.layer.max() / 2)
        )
        statement = "neighbouring layers are more alike than those over half the depth apart"
        name, source = f"b:neighbours:{cell}", "after Phang et al. 2021"
        yield claim(name, statement, "greater", near - far, source=source)


# --- Stitching ------------------------------------------------------------------------------------


@judged
def stitching_claims(stitched: pd.DataFrame) -> Iterator[Claim]:
    """On stitching, from `measure_stitched`.

    Penalties are of stitches between equal layers above the embeddings, averaged over the layers,
    but where layers of unequal height are compared: there the embeddings count as one. Pairs of
    models are no more independent than the models: means over pairs leave models out, not pairs.
    """
    stitched = stitched.assign(equal=_equal_layers(stitched))
    floors = {kind: _penalty_floor(stitched, kind) for kind in ("affine", "trained")}
    for kind, spoken in {"affine": "least squares", "trained": "trained stitches"}.items():
        rows = stitched[(stitched.kind == kind) & stitched.equal]
        yield from _asymmetry(rows, kind, spoken, floors[kind])
    yield from _crossings(stitched[(stitched.kind == "affine") & stitched.equal], floors["affine"])
    yield from _maps(stitched[stitched.relation == "seed"], floors)
    # The premise: what a stitch loses, less its penalty, is the loss of the model on top.
    own = stitched.assign(own=stitched.loss - stitched.penalty)
    own = own.groupby(["back_number", "back"]).own.mean().unstack()
    yield Claim(
        "b:stitch-loss",
        f"SoLU models predict held-out text as well as GeLU models (within {MARGIN} nats)",
        "no_worse",
        own.gelu - own.solu,
        source="B §3, premise (the margin is ours)",
        floor=math.sqrt(own.var().mean()),
    )


def _of_less(
    rows: pd.DataFrame, of: pd.Series, minus: pd.Series, column: str = "penalty"
) -> list[float]:
    """The mean over some pairs less that over others, by model."""

    def statistic(some: pd.DataFrame) -> float:
        left, right = (some[column][which.loc[some.index]] for which in (of, minus))
        return left.mean() - right.mean()

    return leaving_out(rows, "number", statistic)


def _asymmetry(rows: pd.DataFrame, kind: str, spoken: str, floor: float) -> Iterator[Claim]:
    """As B state it, and net of the model on top.

    Each number's pair of models stands in no other pair. The first floor is the root mean square of
    the same where neither direction is special.
    """
    found = turned(rows, "penalty")
    seed = rows.relation == "seed"
    yield Claim(
        f"b:stitch-asymmetry:{kind}",
        f"SoLU below GeLU costs more than GeLU below SoLU ({spoken})",
        "greater",
        found.mixed,
        source="B §3",
        floor=found.floor,
    )
    yield Claim(
        f"b:stitch-asymmetry-net:{kind}",
        "SoLU below GeLU adds more to GeLU below GeLU than GeLU below SoLU to SoLU below SoLU "
        f"({spoken})",
        "greater",
        leaving_out(rows[seed | (rows.relation == "activation")], "number", _net_asymmetry),
        source="B §3, net of the receiving model",
        floor=floor,
    )
    seeds = rows[seed]
    yield Claim(
        f"b:stitch-same-activation:{kind}",
        f"between seeds, SoLU below SoLU costs less than GeLU below GeLU ({spoken})",
        "less",
        _of_less(seeds, seeds.back == "solu", seeds.back == "gelu"),
        source="B §3",
        floor=floor,
    )
    yield Claim(
        f"b:stitch-untrained:{kind}",
        f"an untrained bottom costs more than one of another seed ({spoken})",
        "greater",
        _of_less(rows, rows.relation == "untrained", seed),
        source="our control",
        kind="our control",
        floor=floor,
    )


def _net_asymmetry(some: pd.DataFrame) -> float:
    """Each route less that of two seeds into the same activation."""
    mean = some.groupby(["front", "back"]).penalty.mean()
    into_gelu = mean["solu", "gelu"] - mean["gelu", "gelu"]
    return float(into_gelu - (mean["gelu", "solu"] - mean["solu", "solu"]))


def _crossings(rows: pd.DataFrame, floor: float) -> Iterator[Claim]:
    seeds = (rows.relation == "seed") & (rows.back == "gelu")
    for below, spoken in {"gelu": "GeLU below SoLU", "solu": "SoLU below GeLU"}.items():
        crossing = (rows.relation == "activation") & (rows.front == below)
        statement = f"{spoken} costs more than GeLU below GeLU of another seed (least squares)"
        name = f"b:stitch-crossing-{below}:affine"
        found = _of_less(rows, crossing, seeds)
        yield Claim(name, statement, "greater", found, source="B §3", floor=floor)


def _maps(rows: pd.DataFrame, floors: dict[str, float]) -> Iterator[Claim]:
    """Between seeds: maps on the same stitches, and layers far apart."""
    claim = partial(Claim, source="after B §3", kind="analogue")
    affine, identity, trained = (rows.kind == kind for kind in ("affine", "identity", "trained"))
    at_trained = rows.front_layer.isin(rows.front_layer[trained])
    apart = (rows.front_layer - rows.back_layer).abs()
    yield claim(
        "b:stitch-affine-identity",
        "between seeds, least squares cost less than identity",
        "less",
        _of_less(rows, affine & rows.equal, identity & rows.equal),
        floor=floors["affine"],
    )
    yield claim(
        "b:stitch-trained-affine",
        "between seeds, trained stitches cost less than least squares",
        "less",
        _of_less(rows, trained & rows.equal, affine & rows.equal & at_trained),
        floor=floors["trained"],
    )
    yield claim(
        "b:stitch-distance",
        "between seeds, layers over half the depth apart cost more than equal ones",
        "greater",
        _of_less(rows, affine & (apart > rows.front_layer.max() / 2), affine & (apart == 0)),
        floor=floors["affine"],
    )


def _equal_layers(table: pd.DataFrame) -> pd.Series:
    """Where a stitch joins equal layers above the embeddings."""
    return (table.front_layer == table.back_layer) & (table.front_layer > 0)


def _penalty_floor(stitched: pd.DataFrame, kind: str) -> float:
    floors = penalty_floors(stitched)
    return float(floors[_equal_layers(floors) & (floors.kind == kind)].floor.mean())


def floors_above_untrained(stitched: pd.DataFrame, kind: str) -> float:
    """By how many noise floors stitches of this map beat those to an untrained bottom."""
    rows = stitched[_equal_layers(stitched) & (stitched.kind == kind)]
    untrained, seed = (rows[rows.relation == name].penalty.mean() for name in ("untrained", "seed"))
    return float((untrained - seed) / _penalty_floor(stitched, kind))


# --- §4: models that generalize, and models that follow a heuristic -------------------------------


@judged
def generalization_claims(table: pd.DataFrame) -> Iterator[Claim]:
    """On models that generalize or follow a heuristic; `measure_generalization`.

    The unit is a number that names one model of each group. Accuracies give one difference per
    number; of CKA and stitching, which pairs of models have, the interval leaves out numbers.
    Floors are standard deviations between models, or pairs of models, of one group. B's groups are
    the ends of a hundred fine-tuned BERTs, of the profile `paper`; ours are planted: one of them
    saw counter-examples. HANS has neither held-out constructions nor words of our lexicons.
    """
    accuracy = table[table.quantity == "accuracy"]
    planted = bool(accuracy.template.isin(HELD_OUT).any())
    kind = "analogue" if planted else "paper's test"
    claim = partial(Claim, source="B §4", kind=kind, unit="models")
    yield from _accuracies(claim, accuracy)
    for data, spoken in {"overlap": "pairs of overlapping words", "dev": "dev pairs"}.items():
        departures = CKA_OF.format("means over the tokens of pairs")
        yield from _ckas(
            partial(claim, departures=departures), pairs_of(table, "cka", data), data, spoken
        )
    penalties, stitched = pairs_of(table, "penalty", "dev"), pairs_of(table, "stitched", "overlap")
    last = int(table.layer.max())
    yield claim(
        "b:generalization-stitch-late",
        "crossing groups costs a stitch more in the last layer than in the first (dev pairs)",
        "greater",
        **_gaps(penalties, {1: 1, last: -1}),
    )
    # Who decides on overlapping words: the group above a stitch, or the one below?
    for layer, at, where, direction in (
        (1, "first", "above", "less"),
        (last, "last", "below", "greater"),
    ):
        yield claim(
            f"b:generalization-stitch-{where}",
            f"stitched at the {at} layer, the models {where} decide whether overlap is seen "
            "through",
            direction,
            pseudo_values(partial(_crossed, stitched, layer), numbers_of(stitched)),
            floor=_spread_in_groups(stitched, {layer: 1}),
        )


def _crossed(rows: pd.DataFrame, layer: int, numbers: Collection[int]) -> float:
    """What a generalizing model below a stitch does to the answers, less one above it."""
    return crossed(rows, numbers, layer)


def _accuracies(claim: Callable[..., Claim], accuracy: pd.DataFrame) -> Iterator[Claim]:
    """How the groups were made or chosen: that a recipe works is no finding of B's."""
    refuted = accuracy[(accuracy.label == "not_entailment") & (accuracy.data == "overlap")]
    for heuristic in ("lexical_overlap", "subsequence", "constituent"):
        short, spoken = (heuristic.replace("_", mark) for mark in "- ")
        statement = (
            f"accuracy on pairs of {spoken} not entailed, generalizing less heuristic models"
        )
        gaps = _accuracy_gap(refuted[refuted.heuristic == heuristic])
        name = f"b:generalization-accuracy-{short}"
        yield claim(name, statement, "described", **gaps, kind="our control")
    ours = partial(claim, source="our control of B §4", kind="our control")
    held_out = refuted[refuted.template.isin(HELD_OUT)]
    if len(held_out):
        name = "b:generalization-accuracy-unseen"
        statement = "they see through more pairs of constructions that no counter-example had"
        yield ours(name, statement, "greater", **_accuracy_gap(held_out))
    new_words = accuracy[accuracy.data == "new words"].groupby(["group", "number", "label"])
    new_words = new_words.value.mean().reset_index()
    if len(new_words):  # both labels count alike: saying no to everything gets half of it
        name = "b:generalization-accuracy-new-words"
        statement = "generalizing models are right more often about words in no training pair"
        yield ours(name, statement, "greater", **_accuracy_gap(new_words))
    name = "b:generalization-accuracy-dev"
    statement = f"the generalizing models' dev accuracy is no more than {MARGIN} lower"
    yield claim(name, statement, "no_worse", **_accuracy_gap(accuracy[accuracy.data == "dev"]))


def _accuracy_gap(rows: pd.DataFrame) -> dict:
    """Generalizing less heuristic models, by number; the floor is the spread within a group."""
    by_group = rows.groupby(["number", "group"]).value.mean().unstack()
    floor = math.sqrt(by_group.var().mean())
    return {"differences": by_group["generalizing"] - by_group["heuristic"], "floor": floor}


def _ckas(
    claim: Callable[..., Claim], rows: pd.DataFrame, data: str, spoken: str
) -> Iterator[Claim]:
    """The groups part only in late layers; the first is the one above the embeddings."""
    last = int(rows.layer.max())
    yield claim(
        f"b:generalization-cka-late-{data}",
        f"CKA parts the groups in the last layer more than in the first ({spoken})",
        "greater",
        **_gaps(rows, {last: 1, 1: -1}),
    )
    for where, layer in {"first": 1, "middle": last // 2}.items():
        if where == "first" or layer > 1:
            short = {"first": "early"}.get(where, where)
            yield claim(
                f"b:generalization-cka-{short}-{data}",
                f"by CKA the {where} layer has less than half of the last one's gap ({spoken})",
                "less",
                **_gaps(rows, {layer: 1, last: -0.5}),
            )
    # The distance of two models is √Σ arccos(CKA)² over their layers.
    pair = ["relation", "group", "number", "other", "other_number"]
    distances = rows.groupby(pair).value.agg(cka_distance).reset_index().assign(layer=0)
    yield claim(
        f"b:generalization-distance-{data}",
        "models of different groups are farther apart than models of one group (CKA distance, "
        f"{spoken})",
        "greater",
        **_gaps(distances, {0: -1}) | {"floor": _spread_in_groups(distances, {0: 1})},
        source="B §4, figure 8",
    )


def _gaps(rows: pd.DataFrame, weights: dict[int, float]) -> dict:
    """Weighted gaps of layers: the mean of pairs within the groups less that between them."""

    def statistic(numbers: Collection[int]) -> float:
        return sum(weight * gap(rows, numbers, layer) for layer, weight in weights.items())

    values = pseudo_values(statistic, numbers_of(rows))
    return {"differences": values, "floor": _spread_in_groups(rows, weights)}


def _spread_in_groups(rows: pd.DataFrame, weights: dict[int, float]) -> float:
    """Standard deviation, over pairs of one group, of a weighted sum over layers."""
    within = rows[rows.relation != "between"]
    pair = ["relation", "number", "other_number"]
    wide = within.pivot(index=pair, columns="layer", values="value")
    sums = sum(weight * wide[layer] for layer, weight in weights.items())
    return math.sqrt(sums.groupby("relation").var().mean())


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
