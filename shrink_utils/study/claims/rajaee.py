"""The claims of Rajaee & Pilehvar (RP), and the differences over seeds that test them.

They studied BERT-like models fine-tuned on other tasks than ours, and they study no regularizer:
the arm "none" repeats their question, every other arm extends it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from shrink_utils.study.claims.claim import Claim, Direction, evaluate
from shrink_utils.study.finetuned.geometry import PRETRAINED

__all__ = ["N_REMOVED", "accuracy_drops", "rajaee_claims"]

N_REMOVED = 3  # directions, in the claims about their removal
SOURCE = "RP, abstract"
SPOKEN = {"cls": "[CLS]", "mean": "mean"}

Tested = tuple[Claim, pd.Series]  # a claim and its differences, one a seed


def rajaee_claims(table: pd.DataFrame, words: pd.DataFrame) -> pd.DataFrame:
    """Test RP's claims on every task and arm of the ablation.

    Parameters
    ----------
    table : DataFrame
        Of `measure_after_finetuning`.
    words : DataFrame
        Of `measure_words_after_finetuning`.

    Returns
    -------
    DataFrame
        Of `claim.evaluate`. Differences are after − before fine-tuning, one a seed; the pretrained
        model and the texts are the same for all of them, the halves of a probe those of the seed.
    """
    tested = dict([*_shape(table), *_removal(table), *_words(words)])
    return evaluate(tested, tested.__getitem__)


def accuracy_drops(table: pd.DataFrame) -> pd.DataFrame:
    """What each removal costs the probe: accuracy with the mean subtracted − accuracy after it.

    Parameters
    ----------
    table : DataFrame
        Of `measure_after_finetuning`.

    Returns
    -------
    DataFrame
        Columns task, arm, seed, vectors, treatment, removed, skipped, drop.
    """
    accuracy = table[(table.measure == "accuracy") & table.treatment.isin(["global", "clusters"])]
    keys = ["model", "task", "arm", "seed", "vectors", "treatment"]
    centred = accuracy[accuracy.removed == 0].set_index(keys).value
    removals = accuracy[accuracy.removed > 0].set_index(keys)
    drops = removals.assign(drop=centred.reindex(removals.index) - removals.value).reset_index()
    return drops[[*keys, "removed", "skipped", "drop"]]


def _shape(table: pd.DataFrame) -> Iterator[Tested]:
    """Isotropy and elongated directions of [CLS] in the last layer."""
    last = table[(table.layer == table.layer.max()) & (table.vectors == "cls")]
    source = "after RP, abstract: not necessarily more isotropic"
    claims: list[tuple[str, str, str, Direction]] = [
        ("partition", "log I(W)", "fine-tuning does not raise log I(W)", "less"),
        (
            "partition-unit",
            "log I(W), unit norm",
            "fine-tuning does not raise log I(W) of unit vectors",
            "less",
        ),
        ("isoscore", "IsoScore", "fine-tuning does not raise IsoScore", "less"),
        ("elongated", "elongated directions", "fine-tuning adds elongated directions", "greater"),
    ]
    for name, measure, statement, direction in claims:
        named = SOURCE if name == "elongated" else source
        for keys, change in _changes(last[last.measure == measure], "value"):
            yield _claim(name, keys, statement, direction, named), change


def _removal(table: pd.DataFrame) -> Iterator[Tested]:
    """Removing dominant directions, and as control the next ones, from the whole cloud."""
    drops = accuracy_drops(table)
    drops = drops[(drops.treatment == "global") & (drops.removed == N_REMOVED)]
    for (vectors, skipped), rows in drops.groupby(["vectors", "skipped"]):
        which = f"the next {N_REMOVED} (control)" if skipped else f"the {N_REMOVED} longest"
        statement = (
            f"removing {which} directions costs fine-tuned {SPOKEN[vectors]} vectors more accuracy "
            "than pretrained ones"
        )
        name = f"removal-{vectors}" + ("-control" if skipped else "")
        for keys, change in _changes(rows, "drop"):
            source = "our control of RP" if skipped else SOURCE
            yield _claim(name, keys, statement, "greater", source), change


def _words(words: pd.DataFrame) -> Iterator[Tested]:
    """What can be read off word vectors of the last layer."""
    source = "after RP, abstract: a massive change (its direction is ours)"
    spoken = {"frequency": "word frequency (R²)", "type": "word type (accuracy)"}
    last = words[(words.layer == words.layer.max()) & (words.labels == "true")]
    for probe, rows in last.groupby("probe"):
        statement = f"fine-tuning makes {spoken[probe]} less decodable"
        for keys, change in _changes(rows, "value"):
            yield _claim(f"words-{probe}", keys, statement, "less", source), change


def _changes(rows: pd.DataFrame, column: str) -> Iterator[tuple[tuple, pd.Series]]:
    """(model, task, arm) and its differences from the pretrained model, one a seed."""
    for (model, task), cell in rows.groupby(["model", "task"], sort=False):
        arms = {arm: of_arm.set_index("seed")[column] for arm, of_arm in cell.groupby("arm")}
        before = arms[PRETRAINED]
        for arm in cell.arm.unique():
            if arm not in (PRETRAINED, "isotropic"):
                yield (model, task, arm), arms[arm] - before[arms[arm].index]


def _claim(name: str, keys: tuple, statement: str, direction: Direction, source: str) -> Claim:
    model, task, arm = keys
    return Claim(
        id=f"rp:{name}:{model}:{task}:{arm}",
        source=source,
        statement=statement,
        task=task,
        arm=arm,
        direction=direction,
    )
