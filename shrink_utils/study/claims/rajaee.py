"""Rajaee & Pilehvar 2021 (RP): geometry after fine-tuning, less that before.

RP study other tasks and no regularizer: the arm "none" repeats their question, the others extend
it. The pretrained model and the texts are the same for all seeds, a probe's halves are the seed's.
"""

from collections.abc import Callable, Iterator
from itertools import product

import pandas as pd

from shrink_utils.study.claims.claim import (
    MARGIN,
    Claim,
    claims_on,
    evaluated,
    most_favourable,
    per_seed,
)

ABSTRACT = "RP, abstract"
ISOTROPY = {
    "partition": "log I(W)",
    "partition-unit": "log I(W), unit norm",
    "isoscore": "IsoScore",
}
# Of chapter 08's ways to make a cloud isotropic, on fine-tuned vectors. (Subtracting the mean of
# the whole cloud changes nothing for a probe that standardizes: no row.)
TREATMENTS = {
    "cluster-means": ("clusters", 0, "subtracting cluster means"),
    "global": ("global", 3, "removing the 3 longest directions"),
    "clusters": ("clusters", 3, "removing the 3 longest directions of each cluster"),
}


@evaluated
def rajaee_claims(table: pd.DataFrame, words: pd.DataFrame) -> Iterator[Claim]:
    """From two tables of chapter 08."""
    yield from _not_necessarily(table[table.vectors == "cls"])
    drops = accuracy_drops(table)
    lost = drops[(drops.vectors == "mean") & (drops.skipped == 0)]
    for short, (treatment, removed, spoken) in TREATMENTS.items():
        treated = lost[(lost.treatment == treatment) & (lost.removed == removed)]
        for claim, after, _ in _arms(treated, "lost"):
            yield claim(
                f"treatment-{short}",
                f"after fine-tuning, {spoken} does not help the probe (accuracy lost; a gain of up "
                f"to {MARGIN} is no help)",
                "no_worse",
                after,
                source=f"{ABSTRACT}: existing methods do not help",
            )
    yield from _removals(drops)
    last = words[(words.layer == words.layer.max()) & (words.labels == "true")]
    probes = {"frequency": "word frequency (R²)", "type": "word type (accuracy)"}
    ours = {"source": f"after {ABSTRACT}: a massive change (its direction is ours)"}
    ours["kind"] = "analogue"
    for probe, spoken in probes.items():
        for claim, after, before in _arms(last[last.probe == probe], "value"):
            statement = f"fine-tuning makes {spoken} less decodable"
            yield claim(f"words-{probe}", statement, "less", after - before, **ours)


def _not_necessarily(table: pd.DataFrame) -> Iterator[Claim]:
    """A claim of existence: one layer where isotropy falls is enough, and only rises refute it.

    Of [CLS], in plain fine-tuning, as RP ask.
    """
    for short, measure in ISOTROPY.items():
        shape = table[table.measure == measure]
        for (model, task), own in shape.groupby(["model", "task"], sort=False):
            of = {key: per_seed(rows, "value") for key, rows in own.groupby(["arm", "layer"])}
            layers = own.layer[own.arm == "none"].unique()
            yield rp_on(model, task, "none")(
                f"not-necessarily-{short}",
                f"in at least one layer fine-tuning lowers {measure}",
                "less",
                **most_favourable((of["none", i] - of["pretrained", i] for i in layers), "less"),
                source=f"{ABSTRACT}: not necessarily more isotropic",
            )


def _removals(drops: pd.DataFrame) -> Iterator[Claim]:
    """The dominant directions of the whole cloud, and as control the next ones."""
    drops = drops[(drops.treatment == "global") & (drops.removed == 3)]
    control = {"source": "our control of RP", "kind": "our control"}
    for (vectors, spoken), (skipped, suffix, which, own) in product(
        {"cls": "[CLS]", "mean": "mean"}.items(),
        ((0, "", "3 longest", {"source": ABSTRACT}), (3, "-control", "next 3 (control)", control)),
    ):
        chosen = drops[(drops.vectors == vectors) & (drops.skipped == skipped)]
        statement = f"removing the {which} directions costs fine-tuned {spoken} vectors more "
        statement += "accuracy than pretrained ones"
        for claim, after, before in _arms(chosen, "drop"):
            name = f"removal-{vectors}{suffix}"
            yield claim(name, statement, "greater", after - before, **own)


def _arms(table: pd.DataFrame, value: str) -> Iterator[tuple]:
    """Per model, task and fine-tuned arm: what makes claims, and a column by seed."""
    for (model, task, arm), rows in table.groupby(["model", "task", "arm"], sort=False):
        if arm not in ("pretrained", "isotropic"):
            before = (table.model == model) & (table.task == task) & (table.arm == "pretrained")
            of = (per_seed(part, value) for part in (rows, table[before]))
            yield rp_on(model, task, arm), *of


def rp_on(model: str, task: str, arm: str) -> Callable[..., Claim]:
    """Makes claims about an arm; RP know plain fine-tuning alone."""
    kind = "scaled test" if arm == "none" else "analogue"
    return claims_on("rp", model, task, arm, kind=kind)


def accuracy_drops(table: pd.DataFrame) -> pd.DataFrame:
    """What each treatment costs the probe: ``drop``, against vectors with the mean subtracted.

    From a table of chapter 08. Columns model, task, arm, seed, vectors, treatment, removed,
    skipped, drop, and ``lost``, against untreated vectors.
    """
    accuracy = table[table.measure == "accuracy"]
    keys = ["model", "task", "arm", "seed", "vectors", "treatment"]
    untreated = accuracy[accuracy.treatment == "untreated"].set_index(keys[:-1]).value
    centred = accuracy[accuracy.removed == 0].set_index(keys).value
    treated = accuracy[accuracy.treatment.isin(["global", "clusters"])].set_index(keys)
    drops = treated.assign(
        drop=centred.reindex(treated.index) - treated.value,
        lost=untreated.reindex(treated.index.droplevel(-1)).to_numpy() - treated.value,
    )
    return drops.reset_index()[[*keys, "removed", "skipped", "drop", "lost"]]
