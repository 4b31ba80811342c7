"""Rajaee & Pilehvar 2021 (RP): geometry after fine-tuning, less that before.

RP study other tasks and no regularizer: the arm "none" repeats their question, the others extend
it. The pretrained model and the texts are the same for all seeds, a probe's halves are the seed's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd

from shrink_utils.study.claims.claim import MARGIN, Claim, by_unit, clearest, judged

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


@judged
def rajaee_claims(table: pd.DataFrame, words: pd.DataFrame) -> Iterator[Claim]:
    """From `measure_after_finetuning` and `measure_words_after_finetuning`."""
    # "Not necessarily" is a claim of existence: one layer where isotropy falls is enough, and only
    # a rise in every layer refutes it. Of [CLS], in plain fine-tuning, as RP ask.
    for short, measure in ISOTROPY.items():
        shape = table[(table.vectors == "cls") & (table.measure == measure)]
        for claim, cell, rows, before in _arms(shape, arms=("none",)):
            layers = (
                by_unit(rows[rows.layer == layer], "value")
                - by_unit(before[before.layer == layer], "value")
                for layer in rows.layer.unique()
            )
            yield claim(
                f"rp:not-necessarily-{short}:{cell}",
                f"in at least one layer fine-tuning lowers {measure}",
                "less",
                **clearest(layers, "less"),
                source=f"{ABSTRACT}: not necessarily more isotropic",
            )
    lost = accuracy_lost(table[table.vectors == "mean"])
    for short, (treatment, removed, spoken) in TREATMENTS.items():
        treated = lost[(lost.treatment == treatment) & (lost.removed == removed)]
        for claim, cell, rows, _ in _arms(treated):
            yield claim(
                f"rp:treatment-{short}:{cell}",
                f"after fine-tuning, {spoken} does not help the probe (accuracy lost; a gain of up "
                f"to {MARGIN} is no help)",
                "no_worse",
                by_unit(rows, "lost"),
                source=f"{ABSTRACT}: existing methods do not help",
            )
    yield from _removals(accuracy_drops(table))
    last = words[(words.layer == words.layer.max()) & (words.labels == "true")]
    for probe, spoken in {
        "frequency": "word frequency (R²)",
        "type": "word type (accuracy)",
    }.items():
        for claim, cell, rows, before in _arms(last[last.probe == probe]):
            yield claim(
                f"rp:words-{probe}:{cell}",
                f"fine-tuning makes {spoken} less decodable",
                "less",
                by_unit(rows, "value") - by_unit(before, "value"),
                source=f"after {ABSTRACT}: a massive change (its direction is ours)",
                kind="analogue",
            )


def _arms(table: pd.DataFrame, arms: tuple[str, ...] = ()) -> Iterator[tuple]:
    """Per model, task and fine-tuned arm: what makes claims, the cell, its rows, and before."""
    for (model, task, arm), rows in table.groupby(["model", "task", "arm"], sort=False):
        if arm in (arms or set(table.arm) - {"pretrained", "isotropic"}):
            kind = "scaled test" if arm == "none" else "analogue"
            claim = partial(Claim, kind=kind, task=task, arm=arm)
            here = (table.model == model) & (table.task == task)
            yield claim, f"{model}:{task}:{arm}", rows, table[here & (table.arm == "pretrained")]


def _removals(drops: pd.DataFrame) -> Iterator[Claim]:
    """The dominant directions of the whole cloud, and as control the next ones."""
    drops = drops[(drops.treatment == "global") & (drops.removed == 3)]
    for vectors, spoken in {"cls": "[CLS]", "mean": "mean"}.items():
        for skipped, which in {0: "longest", 3: "next 3 (control)"}.items():
            which = f"the {'3 ' if not skipped else ''}{which} directions"
            chosen = drops[(drops.vectors == vectors) & (drops.skipped == skipped)]
            for claim, cell, rows, before in _arms(chosen):
                control = {"source": "our control of RP", "kind": "our control"}
                yield claim(
                    f"rp:removal-{vectors}{'-control' if skipped else ''}:{cell}",
                    f"removing {which} costs fine-tuned {spoken} vectors more accuracy than "
                    "pretrained ones",
                    "greater",
                    by_unit(rows, "drop") - by_unit(before, "drop"),
                    **control if skipped else {"source": ABSTRACT},
                )


def accuracy_lost(table: pd.DataFrame) -> pd.DataFrame:
    """What each treatment costs the probe against untreated vectors: the column ``lost``."""
    rows = table[(table.measure == "accuracy") & (table.skipped == 0)]
    keys = ["model", "task", "arm", "seed", "vectors"]
    untreated = rows[rows.treatment == "untreated"].set_index(keys).value
    treated = rows[rows.treatment.isin(["global", "clusters"])].set_index(keys)
    return treated.assign(lost=untreated.reindex(treated.index) - treated.value).reset_index()


def accuracy_drops(table: pd.DataFrame) -> pd.DataFrame:
    """What each removal costs the probe: accuracy with the mean subtracted − accuracy after it.

    From `measure_after_finetuning`. Columns model, task, arm, seed, vectors, treatment, removed,
    skipped, drop.
    """
    accuracy = table[(table.measure == "accuracy") & table.treatment.isin(["global", "clusters"])]
    keys = ["model", "task", "arm", "seed", "vectors", "treatment"]
    centred = accuracy[accuracy.removed == 0].set_index(keys).value
    removals = accuracy[accuracy.removed > 0].set_index(keys)
    drops = removals.assign(drop=centred.reindex(removals.index) - removals.value).reset_index()
    return drops[[*keys, "removed", "skipped", "drop"]]
