"""Rajaee & Pilehvar 2021 (RP): geometry after fine-tuning, less that before.

RP study other tasks and no regularizer: the arm "none" repeats their question, the others extend
it. The pretrained model and the texts are the same for all seeds, a probe's halves are the seed's.
"""

from collections.abc import Iterator
from itertools import product

import pandas as pd

from shrink_utils.study.claims.claim import _as_table, _most_favourable, _per_seed, claim

ISOTROPY = {
    "partition": "log I(W)",
    "partition-unit": "log I(W), unit norm",
    "isoscore": "IsoScore",
}
# Of chapter 08's ways to make a cloud isotropic, on fine-tuned vectors. (Subtracting the mean of
# the whole cloud changes nothing for a probe that standardizes: no row.)
TREATMENTS = {
    "cluster-means": ("clusters", 0),
    "global": ("global", 3),
    "clusters": ("clusters", 3),
}


@_as_table
def _rajaee_claims(table: pd.DataFrame, words: pd.DataFrame) -> Iterator[dict]:
    """From two tables of chapter 08."""
    yield from _not_necessarily(table[table.vectors == "cls"])
    drops = accuracy_drops(table)
    lost = drops[(drops.vectors == "mean") & (drops.skipped == 0)]
    for short, (treatment, removed) in TREATMENTS.items():
        treated = lost[(lost.treatment == treatment) & (lost.removed == removed)]
        for about, after, _ in _arms(treated, "lost"):
            yield claim(f"rp:treatment-{short}", after, **about)
    yield from _removals(drops)
    last = words[(words.layer == words.layer.max()) & (words.labels == "true")]
    for probe in ("frequency", "type"):
        for about, after, before in _arms(last[last.probe == probe], "value"):
            yield claim(f"rp:words-{probe}", after - before, **about)


def _not_necessarily(table: pd.DataFrame) -> Iterator[dict]:
    """A claim of existence: one layer where isotropy falls is enough, and only rises refute it.

    Of [CLS], in plain fine-tuning, as RP ask.
    """
    for short, measure in ISOTROPY.items():
        shape = table[table.measure == measure]
        for (model, task), own in shape.groupby(["model", "task"], sort=False):
            by = {key: _per_seed(rows, "value") for key, rows in own.groupby(["arm", "layer"])}
            layers = own.layer[own.arm == "none"].unique()
            changes = (by["none", i] - by["pretrained", i] for i in layers)
            found = _most_favourable(changes, "less")
            yield claim(f"rp:not-necessarily-{short}", **found, **_about_rp(model, task, "none"))


def _removals(drops: pd.DataFrame) -> Iterator[dict]:
    """The dominant directions of the whole cloud, and as control the next ones."""
    drops = drops[(drops.treatment == "global") & (drops.removed == 3)]
    for vectors, (skipped, suffix) in product(("cls", "mean"), ((0, ""), (3, "-control"))):
        chosen = drops[(drops.vectors == vectors) & (drops.skipped == skipped)]
        for about, after, before in _arms(chosen, "drop"):
            yield claim(f"rp:removal-{vectors}{suffix}", after - before, **about)


def _arms(table: pd.DataFrame, value: str) -> Iterator[tuple]:
    """Per model, task and fine-tuned arm: its words, and a column by seed, after and before."""
    for (model, task, arm), rows in table.groupby(["model", "task", "arm"], sort=False):
        if arm not in ("pretrained", "isotropic"):
            before = (table.model == model) & (table.task == task) & (table.arm == "pretrained")
            both = (_per_seed(part, value) for part in (rows, table[before]))
            yield _about_rp(model, task, arm), *both


def _about_rp(model: str, task: str, arm: str) -> dict[str, str]:
    """Words of a `claim` of an arm; RP know plain fine-tuning alone."""
    kind = "scaled test" if arm == "none" else "analogue"
    return {"cell": f"{model}:{task}:{arm}", "task": task, "arm": arm, "kind": kind}


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
