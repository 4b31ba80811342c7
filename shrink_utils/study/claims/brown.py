"""Brown et al. 2023 (B): representational similarity, stitching, generalization.

*Understanding the Inner Workings of Language Models Through Representation Dissimilarity*; with
Merchant et al. 2020, *What Happens To BERT Embeddings During Fine-tuning?*, and Phang, Liu & Bowman
2021, *Fine-Tuned Transformers Show Clusters of Similar Representations Across Layers*.
"""

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial

import pandas as pd

from shrink_utils.geometry import cka_distance
from shrink_utils.study.claims.claim import (
    MARGIN,
    Claim,
    by_unit,
    hardest,
    judged,
    leaving_out,
)
from shrink_utils.study.statistics import pseudo_values
from shrink_utils.study.stitching import crossed, gap, numbers_of, pairs_of, penalty_floors, turned
from shrink_utils.text.pairs import HELD_OUT

CKA_OF = "CKA of {}, one sample: B's is of tokens, in 1,000 batches of 1,024"
MERCHANT = "Merchant et al. 2020"
# Name of the row, pair of clouds, measure, source, statement.
SIMILARITY = [
    ("late-change-cka_debiased", "finetuned", "cka_debiased", MERCHANT,
     "fine-tuning changes the last layer more than the first (debiased CKA)"),
    ("late-change-rsa", "finetuned", "rsa", MERCHANT,
     "fine-tuning changes the last layer more than the first (RSA)"),
    # B: models that generalize differently part only in late layers; here, two arms.
    ("part-late", "arms", "cka_debiased", "after B",
     "it differs from plain fine-tuning more in the last layer than in the first"),
    # Gröger, Wen & Brbić: shared neighbours survive a null that is searched over layers, too.
    ("near", "neighbours", "calibrated", "after Gröger et al. 2026",
     "it shares more near neighbours with random weights than a search finds by chance"),
    # The least that clusters of adjacent layers (Phang et al.; blocks in B) imply.
    ("neighbours", "within", "cka_debiased", "after Phang et al. 2021",
     "neighbouring layers are more alike than those over half the depth apart"),
]  # fmt: skip


@judged
def brown_claims(similarity: pd.DataFrame) -> Iterator[Claim]:
    """Where fine-tuning changes representations, of every arm; from a table of chapter 08b.

    Change is 1 − similarity, of equal layers; the first layer is the one above the embeddings.
    """
    for name, pair, measure, source, statement in SIMILARITY:
        rows = similarity[(similarity.pair == pair) & (similarity.measure == measure)]
        for (task, arm), own in rows.groupby(["task", "arm"], sort=False):
            yield Claim(
                f"b:{name}:{task}:{arm}",
                statement,
                "greater",
                _differences(pair, own),
                source=source,
                kind="scaled test" if arm == "none" and pair != "neighbours" else "analogue",
                task=task,
                arm=arm,
                departures=CKA_OF.format("words") if pair == "arms" else "",
            )


def _differences(pair: str, rows: pd.DataFrame) -> pd.Series:
    """What the rows of `SIMILARITY` on these pairs of clouds are about, by seed."""
    match pair:
        case "neighbours":  # less chance, as it stands
            return by_unit(rows, "value")
        case "within":  # neighbouring layers less distant ones
            apart, half = (rows.layer - rows.other).abs(), rows.layer.max() / 2
            near, far = (rows[which].groupby("seed").value for which in (apart == 1, apart > half))
            return near.mean() - far.mean()
        case _:  # change of the last layer less that of the first
            equal = rows[rows.layer == rows.other].assign(change=1 - rows.value)
            ends = (equal[equal.layer == layer] for layer in (rows.layer.max(), 1))
            last, first = (by_unit(end, "change") for end in ends)
            return last - first


# --- Stitching ------------------------------------------------------------------------------------

SPOKEN = {"affine": "least squares", "trained": "trained stitches"}


@judged
def stitching_claims(stitched: pd.DataFrame) -> Iterator[Claim]:
    """On stitching, from the table that chapter 09 keeps.

    Penalties are of stitches between equal layers above the embeddings, averaged over the layers,
    but where layers of unequal height are compared: there the embeddings count as one. Pairs of
    models are no more independent than the models: means over pairs leave models out, not pairs.
    """
    stitched = stitched.assign(equal=_equal_layers(stitched))
    floors = penalty_floors(stitched)
    floors = floors[_equal_layers(floors)].groupby("kind").floor.mean()
    rows = {kind: stitched[(stitched.kind == kind) & stitched.equal] for kind in SPOKEN}
    for kind in SPOKEN:
        yield from _by_map(rows[kind], kind, floors[kind])
    yield from _crossings(rows["affine"], floors["affine"])
    yield from _into_itself(stitched[(stitched.kind == "trained") & stitched.equal])
    yield _at_every_layer(rows["affine"])
    yield from _between_seeds(stitched[stitched.relation == "seed"], floors)
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
    for kind, spoken in SPOKEN.items():
        beyond = turned(rows[kind], "penalty").mixed - (own.gelu - own.solu).abs()
        statement = "stitches of SoLU and GeLU models differ by more than the models' own losses do"
        name = f"b:stitch-beyond-loss:{kind}"
        yield Claim(name, f"{statement} ({spoken})", "greater", beyond, source="B §3")


def _by_map(rows: pd.DataFrame, kind: str, floor: float) -> Iterator[Claim]:
    """As B state the asymmetry, and net of the model on top; each number's pair is in no other."""
    seed = rows.relation == "seed"
    routes = rows[seed | (rows.relation == "activation")]
    swapped = turned(rows, "penalty")

    def claim(name: str, statement: str, *rest: object, **more: object) -> Claim:
        options = {"source": "B §3", "floor": floor} | more
        return Claim(f"b:stitch-{name}:{kind}", f"{statement} ({SPOKEN[kind]})", *rest, **options)

    statement = "SoLU below GeLU costs more than GeLU below SoLU"
    # Its floor is the root mean square of the same where neither direction is special.
    yield claim("asymmetry", statement, "greater", swapped.mixed, floor=swapped.floor)
    statement = (
        "SoLU below GeLU adds more to GeLU below GeLU than GeLU below SoLU to SoLU below SoLU"
    )
    net, source = leaving_out(routes, "number", _net_asymmetry), "B §3, net of the receiving model"
    yield claim("asymmetry-net", statement, "greater", net, source=source)
    statement = "between seeds, SoLU below SoLU costs less than GeLU below GeLU"
    less = _of_less(rows[seed], rows.back == "solu", rows.back == "gelu")
    yield claim("same-activation", statement, "less", less, kind="analogue")  # B: one model twice
    statement = "an untrained bottom costs more than one of another seed"
    more, control = _of_less(rows, rows.relation == "untrained", seed), "our control"
    yield claim("untrained", statement, "greater", more, source=control, kind=control)


def _crossings(rows: pd.DataFrame, floor: float) -> Iterator[Claim]:
    seeds = (rows.relation == "seed") & (rows.back == "gelu")
    for below, spoken in {"gelu": "GeLU below SoLU", "solu": "SoLU below GeLU"}.items():
        crossing = (rows.relation == "activation") & (rows.front == below)
        statement = f"{spoken} costs more than GeLU below GeLU of another seed (least squares)"
        name, found = f"b:stitch-crossing-{below}:affine", _of_less(rows, crossing, seeds)
        options = {"source": "B §3", "kind": "analogue", "floor": floor}  # B: one model twice
        yield Claim(name, statement, "greater", found, **options)


def _into_itself(rows: pd.DataFrame) -> Iterator[Claim]:
    """B's baseline: a model stitched into itself, where a trained map could learn the identity."""
    itself = rows[(rows.relation == "same") & (rows.back == "gelu")]
    departures = f"the baseline is the mean of {itself.back_number.nunique()} GeLU model(s), whose "
    departures += "spread is not in the interval"
    for below, spoken in {"gelu": "GeLU below SoLU", "solu": "SoLU below GeLU"}.items():
        crossing = rows[(rows.relation == "activation") & (rows.front == below)]
        more = crossing.groupby("front_number").penalty.mean() - itself.penalty.mean()
        statement = f"{spoken} costs more than a GeLU model into itself (trained stitches)"
        name, options = f"b:stitch-itself-{below}", {"source": "B §3", "departures": departures}
        yield Claim(name, statement, "greater", more, **options)


def _at_every_layer(rows: pd.DataFrame) -> Claim:
    """Of all layers the one that speaks least for the asymmetry."""
    by_layer = [turned(of, "penalty").mixed for _, of in rows.groupby("front_layer")]
    return Claim(
        "b:stitch-every-layer",
        "at every layer SoLU below GeLU costs more than GeLU below SoLU (least squares; the layer "
        "that speaks least for it)",
        "greater",
        **hardest(by_layer, "greater"),
        source="B §3",
    )


def _of_less(rows: pd.DataFrame, of: pd.Series, minus: pd.Series) -> list[float]:
    """The mean penalty over some pairs less that over others, by model."""

    def statistic(some: pd.DataFrame) -> float:
        left, right = (some.penalty[which.loc[some.index]] for which in (of, minus))
        return left.mean() - right.mean()

    return leaving_out(rows, "number", statistic)


def _net_asymmetry(some: pd.DataFrame) -> float:
    """Each route less that of two seeds into the same activation."""
    mean = some.groupby(["front", "back"]).penalty.mean()
    into_gelu = mean["solu", "gelu"] - mean["gelu", "gelu"]
    return float(into_gelu - (mean["gelu", "solu"] - mean["solu", "solu"]))


def _between_seeds(rows: pd.DataFrame, floors: pd.Series) -> Iterator[Claim]:
    """Maps on the same stitches, and layers far apart."""
    affine, identity, trained = (rows.kind == kind for kind in ("affine", "identity", "trained"))
    at_trained = rows.front_layer.isin(rows.front_layer[trained])
    apart = (rows.front_layer - rows.back_layer).abs()
    claim = partial(Claim, source="after B §3", kind="analogue")
    statement = "between seeds, least squares cost less than identity"
    less = _of_less(rows, affine & rows.equal, identity & rows.equal)
    yield claim("b:stitch-affine-identity", statement, "less", less, floor=floors["affine"])
    statement = "between seeds, trained stitches cost less than least squares"
    less = _of_less(rows, trained & rows.equal, affine & rows.equal & at_trained)
    yield claim("b:stitch-trained-affine", statement, "less", less, floor=floors["trained"])
    statement = "between seeds, layers over half the depth apart cost more than equal ones"
    far = apart > rows.front_layer.max() / 2
    more = _of_less(rows, affine & far, affine & (apart == 0))
    yield claim("b:stitch-distance", statement, "greater", more, floor=floors["affine"])


def _equal_layers(table: pd.DataFrame) -> pd.Series:
    """Where a stitch joins equal layers above the embeddings."""
    return (table.front_layer == table.back_layer) & (table.front_layer > 0)


# --- §4: models that generalize, and models that follow a heuristic -------------------------------


@judged
def generalization_claims(table: pd.DataFrame) -> Iterator[Claim]:
    """On models that generalize or follow a heuristic; from chapter 09.

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
    of_cka = partial(claim, departures=CKA_OF.format("means over the tokens of pairs"))
    for data, spoken in {"overlap": "pairs of overlapping words", "dev": "dev pairs"}.items():
        yield from _ckas(of_cka, pairs_of(table, "cka", data), data, spoken)
    penalties, stitched = pairs_of(table, "penalty", "dev"), pairs_of(table, "stitched", "overlap")
    last = int(table.layer.max())
    statement = "crossing groups costs a stitch more in the last layer than in the first"
    name, gaps = "b:generalization-stitch-late", _gaps(penalties, {1: 1, last: -1})
    yield claim(name, f"{statement} (dev pairs)", "greater", **gaps)
    yield from _free(claim, penalties)
    # Who decides on overlapping words: the group above a stitch, or the one below?
    ends = {"above": (1, "first", "less"), "below": (last, "last", "greater")}
    for where, (layer, at, direction) in ends.items():
        # A generalizing model below a stitch less one above it.
        swapped = partial(lambda layer, numbers: crossed(stitched, numbers, layer), layer)
        yield claim(
            f"b:generalization-stitch-{where}",
            f"stitched at the {at} layer, the models {where} decide whether overlap is seen "
            "through",
            direction,
            pseudo_values(swapped, numbers_of(stitched)),
            floor=_spread_in_groups(stitched, {layer: 1}),
        )


def _free(claim: Callable[..., Claim], penalties: pd.DataFrame) -> Iterator[Claim]:
    """Identity stitches that cost almost nothing: all of the first layer, those within a group."""
    numbers = numbers_of(penalties)

    def saved(rows: pd.DataFrame) -> pd.Series:
        def statistic(some: Collection[int]) -> float:
            chosen = rows[rows.number.isin(some) & rows.other_number.isin(some)]
            return -float(chosen.groupby("relation").value.mean().mean())

        return pd.Series(pseudo_values(statistic, numbers))

    cheap = f"costs less than {MARGIN} nats (dev pairs, identity"
    first = saved(penalties[penalties.layer == 1])
    statement = f"a stitch at the first layer {cheap}, within groups and between them)"
    yield claim("b:generalization-early-free", statement, "no_worse", first)
    within = penalties[(penalties.relation != "between") & (penalties.layer > 0)]
    layers = [saved(rows) for _, rows in within.groupby("layer")]
    statement = f"a stitch within a group {cheap}; the layer that speaks least for it)"
    name, of_layers = "b:generalization-within-free", hardest(layers, "no_worse")
    yield claim(name, statement, "no_worse", **of_layers)


def _accuracies(claim: Callable[..., Claim], accuracy: pd.DataFrame) -> Iterator[Claim]:
    """How the groups were made or chosen: that a recipe works is no finding of B's."""
    refuted = accuracy[(accuracy.label == "not_entailment") & (accuracy.data == "overlap")]
    new_words = accuracy[accuracy.data == "new words"].groupby(["group", "number", "label"])
    new_words = new_words.value.mean().reset_index()  # both labels count alike
    ours = {"kind": "our control", "source": "our control of B §4"}
    unseen = "they are right about more pairs of constructions that no counter-example had"
    more_often = "generalizing models are right more often about words in no training pair"
    no_lower = f"the generalizing models' dev accuracy is no more than {MARGIN} lower"
    rows = [
        ("unseen", unseen, "greater", refuted[refuted.template.isin(HELD_OUT)], ours),
        ("new-words", more_often, "greater", new_words, ours),
        ("dev", no_lower, "no_worse", accuracy[accuracy.data == "dev"], {}),
    ]
    for short, statement, direction, own, more in rows:
        if len(own):
            # The floor is the spread within a group.
            by_group = own.groupby(["number", "group"]).value.mean().unstack()
            gap, floor = by_group.generalizing - by_group.heuristic, by_group.var().mean() ** 0.5
            name = f"b:generalization-accuracy-{short}"
            yield claim(name, statement, direction, gap, floor=floor, **more)


def _ckas(
    claim: Callable[..., Claim], rows: pd.DataFrame, data: str, spoken: str
) -> Iterator[Claim]:
    """The groups part only in late layers; the first is the one above the embeddings."""
    last = int(rows.layer.max())
    statement = f"CKA separates the groups in the last layer more than in the first ({spoken})"
    name, gaps = f"b:generalization-cka-late-{data}", _gaps(rows, {last: 1, 1: -1})
    yield claim(name, statement, "greater", **gaps)
    for short, where, layer in (("early", "first", 1), ("middle", "middle", last // 2)):
        if where == "first" or layer > 1:
            statement = f"by CKA the {where} layer has less than half of the last one's gap"
            name, gaps = f"b:generalization-cka-{short}-{data}", _gaps(rows, {layer: 1, last: -0.5})
            yield claim(name, f"{statement} ({spoken})", "less", **gaps)
    # The distance of two models is √Σ arccos(CKA)² over their layers.
    pair = ["relation", "group", "number", "other", "other_number"]
    distances = rows.groupby(pair).value.agg(cka_distance).reset_index().assign(layer=0)
    yield claim(
        f"b:generalization-distance-{data}",
        "models of different groups are farther apart than models of one group (CKA distance, "
        f"{spoken})",
        "greater",
        **_gaps(distances, {0: -1}),
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
