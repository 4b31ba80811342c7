"""Attention as graphs of tokens: what barcodes, degrees or entropies of heads say of a text."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from scipy.special import entr
from scipy.stats import mannwhitneyu
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from shrink_utils.models import Encoder
from shrink_utils.study.language.trees import attention_distances, tree_lengths

INVERSE_PENALTIES = {"logisticregression__C": [1e-4, 1e-3, 1e-2, 1e-1]}
N_FOLDS = 5
BATCH = 16  # texts in a forward pass


def attention_maps(
    encoder: Encoder,
    texts: Sequence[str],
    text_pairs: Sequence[str] | None = None,
    *,
    max_length: int = 64,
) -> Iterator[np.ndarray]:
    """Attention of every layer and head, text by text: (layers, heads, t, t), rows sum to 1.

    Special tokens belong to the graph, as in the papers. The model is set to attention that keeps
    its weights ("eager"), and to evaluation.
    """
    model = encoder.model.eval()
    model.set_attn_implementation("eager")
    options = dict(truncation=True, max_length=max_length, padding=True, return_tensors="pt")
    for start in range(0, len(texts), BATCH):
        several = slice(start, start + BATCH)
        given = [list(texts[several])] + ([] if text_pairs is None else [list(text_pairs[several])])
        tokens = encoder.tokenizer(*given, **options).to(model.device)
        with torch.inference_mode():
            found = model(**tokens, output_attentions=True).attentions
        stacked = torch.stack(found, dim=1).double().cpu().numpy()  # (texts, layers, heads, t, t)
        for of_text, t in zip(stacked, tokens["attention_mask"].sum(dim=1).tolist(), strict=True):
            yield of_text[..., :t, :t]  # nothing looks at padding


def barcode_features(attention: np.ndarray) -> np.ndarray:
    """Of each head's bars: mean, standard deviation, missing entropy ln m − E; (layers, heads, 3).

    References
    ----------
    Kushnareva et al. 2021, *Artificial Text Detection via Examining the Topology of Attention
    Maps*; Cherniavskii et al. 2022, *Acceptability Judgements via Examining the Topology of
    Attention Maps*: statistics of the bars of each head's graph, with weights max(a_ij, a_ji).
    """
    distances = attention_distances(attention)
    bars = tree_lengths(distances)  # (layers, heads, t − 1)
    share = bars / bars.sum(axis=-1, keepdims=True)
    missing = np.log(bars.shape[-1]) - entr(share).sum(axis=-1)
    return np.stack([bars.mean(axis=-1), bars.std(axis=-1), missing], axis=-1)


def degree_features(attention: np.ndarray) -> np.ndarray:
    """Of each head: mean and s.d. of weighted degrees, mean entropy of a row; (layers, heads, 3).

    They need the same graph, and no topology.
    """
    degrees = (1.0 - attention_distances(attention)).sum(axis=-1) - 1.0  # without the token itself
    entropy = entr(attention).sum(axis=-1).mean(axis=-1)
    return np.stack([degrees.mean(axis=-1), degrees.std(axis=-1), entropy], axis=-1)


def held_out_hits(features: np.ndarray, labels: np.ndarray, *, seed: int) -> np.ndarray:
    """Whether each text's class is found by a logistic regression that did not see it, (n,).

    Five folds; the penalty is chosen on the other four. `features` (n, f) are standardized.
    """
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    inner, outer = (
        StratifiedKFold(n, shuffle=True, random_state=seed) for n in (N_FOLDS - 2, N_FOLDS)
    )
    fitted = GridSearchCV(regression, INVERSE_PENALTIES, cv=inner)
    with threadpool_limits(1):  # small matrices: threads would wait for each other
        return cross_val_predict(fitted, features, labels, cv=outer) == labels


def auc(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Probability that a text of class 1 has the higher value, per column of (n, f), (f,)."""
    one, other = features[labels == 1], features[labels != 1]
    return mannwhitneyu(one, other, method="asymptotic").statistic / (len(one) * len(other))


def largest_by_chance(features: np.ndarray, labels: np.ndarray, *, seed: int) -> float:
    """95 % quantile of the largest |AUC − ½| over columns, when the labels are shuffled."""
    rng = np.random.default_rng(seed)
    largest = [np.abs(auc(features, rng.permutation(labels)) - 0.5).max() for _ in range(200)]
    return float(np.quantile(largest, 0.95))
