"""Claims on where fine-tuning changes representations, tested on the ablation's own models."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from shrink_utils.study.claims.claim import Claim, evaluate

__all__ = ["brown_claims"]

# B use CKA, Merchant et al. RSA: their claim is tested by both.
MEASURES = {"cka_debiased": "debiased CKA", "rsa": "RSA"}

Tested = tuple[Claim, pd.Series]  # a claim and its differences, one a seed


def brown_claims(similarity: pd.DataFrame) -> pd.DataFrame:
    """Test every claim in every arm, one difference a seed.

    Parameters
    ----------
    similarity : DataFrame
        Of `similarity.measure_similarity`.

    Returns
    -------
    DataFrame
        Of `claim.evaluate`.

    Notes
    -----
    Change is 1 − similarity, of equal layers. *Late* is the last layer and *early* the first above
    the embeddings; in an encoder of one layer they are the same and nothing can be claimed.

    References
    ----------
    B: Brown et al. 2023, *Understanding the Inner Workings of Language Models Through
    Representation Dissimilarity*; Merchant et al. 2020, *What Happens To BERT Embeddings During
    Fine-tuning?*; Phang, Liu & Bowman 2021, *Fine-Tuned Transformers Show Clusters of Similar
    Representations Across Layers*.
    """
    tested = dict([*_tops_change(similarity), *_arms_part(similarity), *_neighbours(similarity)])
    return evaluate(tested, tested.__getitem__)


def _tops_change(similarity: pd.DataFrame) -> Iterator[Tested]:
    """Fine-tuning primarily affects the top layers (Merchant et al. 2020)."""
    for measure, name in MEASURES.items():
        for task, arm, rows in _by_arm(similarity, "finetuned", measure):
            statement = f"fine-tuning changes the last layer more than the first ({name})"
            claim = _claim(f"late-change-{measure}", "Merchant et al. 2020", statement, task, arm)
            yield claim, _late_minus_early(rows)


def _arms_part(similarity: pd.DataFrame) -> Iterator[Tested]:
    """Models that generalize differently part only in late layers (B); here, two arms."""
    for task, arm, rows in _by_arm(similarity, "arms", "cka_debiased"):
        statement = "it parts from plain fine-tuning more in the last layer than in the first"
        yield _claim("part-late", "after B", statement, task, arm), _late_minus_early(rows)


def _neighbours(similarity: pd.DataFrame) -> Iterator[Tested]:
    """The least that clusters of adjacent layers (Phang et al. 2021; blocks in B) imply."""
    for task, arm, rows in _by_arm(similarity, "within", "cka_debiased"):
        apart = (rows.layer - rows.other).abs()
        near = rows[apart == 1].groupby("seed").value.mean()
        far = rows[apart > rows.layer.max() / 2].groupby("seed").value.mean()
        statement = "neighbouring layers are more alike than those over half the depth apart"
        yield _claim("neighbours", "after Phang et al. 2021", statement, task, arm), near - far


def _by_arm(
    similarity: pd.DataFrame, pair: str, measure: str
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    rows = similarity[(similarity.pair == pair) & (similarity.measure == measure)]
    for (task, arm), of_arm in rows.groupby(["task", "arm"], sort=False):
        yield task, arm, of_arm


def _late_minus_early(rows: pd.DataFrame) -> pd.Series:
    """Change of the last layer less that of the first, by seed, of equal layers."""
    by_layer = rows[rows.layer == rows.other].pivot(index="seed", columns="layer", values="value")
    return (1 - by_layer[by_layer.columns.max()]) - (1 - by_layer[1])


def _claim(name: str, source: str, statement: str, task: str, arm: str) -> Claim:
    return Claim(
        id=f"b:{name}:{task}:{arm}",
        source=source,
        statement=statement,
        task=task,
        arm=arm,
        direction="greater",
    )
