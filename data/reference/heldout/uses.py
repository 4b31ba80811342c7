"""What embeddings are good for: the measures of docs/preregistration_heldout.md.

Everything is read off the last layer's [CLS] vectors, which are what the regularizers see. Whatever
is fitted (treatments, probes, quantizers, neighbours) is fitted on training rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler, normalize
from torchmetrics.functional.classification import multiclass_calibration_error
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from shrink_utils.geometry import anisotropy
from shrink_utils.models import pool
from shrink_utils.models.products import OneDNN
from shrink_utils.text import CORPORA, glue_dir, load_task
from shrink_utils.text.corpora import hash_order

TRAINED, OTHER = "products", "movies"
LENGTH = 24  # word-pieces that are read of a text; training read 16
BATCH = 64
NEIGHBOURS, CANDIDATES = 10, 40
DIRECTIONS = 64
TOP = 3  # directions that all-but-the-top removes: Mu & Viswanath take about d/100
BINS, DRAWS = 15, 100  # of the expected calibration error, and of its null
PLAIN = "plain"
BY_ROW = ("one_bit_in", "neighbours_out", "domain", "other_domain")  # what hypotheses are about
Treatment = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Texts:
    """What is read: the same texts for every model, whatever its seed."""

    texts: list[str]
    places: dict[str, np.ndarray]  # positions in `texts`, by what they are read for
    labels: dict[str, np.ndarray]  # of the places: classes, or a similarity


class Space(NamedTuple):
    """Embeddings by what they are read for, each (n, d)."""

    vectors: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.vectors[name]


class Found(NamedTuple):
    """Measures of one model: one number per use, and the numbers of rows for some."""

    values: dict[str, float]
    rows: dict[str, np.ndarray]


def read_texts(
    *, most: int | None = None, other: int = 1000, probed: int = 200, pairs: int = 300
) -> Texts:
    """The texts of all uses; `most` rows of a split (None: all), as a test may want.

    ``train`` and ``in`` are products' training and validation rows, ``out`` `other` validation rows
    of movies, all with the sentiment as label. ``probe_train`` and ``probe_test`` are `probed`
    training and validation rows of each of the four corpora, labelled by corpus. ``pairs`` are rows
    of STS-B's dev split, first and second texts in turn; without the folder there are none.
    """
    splits = {source: load_task(f"sentiment_{source}", max_train=most) for source in CORPORA}
    for source, split in splits.items():
        rows = split["validation"]
        kept = hash_order(len(rows), "uses", source)[: other if source == OTHER else None]
        split["validation"] = rows.select(sorted(kept[:most]))
    texts: list[str] = []
    places: dict[str, np.ndarray] = {}
    labels: dict[str, np.ndarray] = {}

    def add(name: str, found: Sequence[str], of: Sequence) -> None:
        places[name] = np.arange(len(texts), len(texts) + len(found))
        labels[name] = np.asarray(of)
        texts.extend(found)

    for name, source, side in (
        ("train", TRAINED, "train"),
        ("in", TRAINED, "validation"),
        ("out", OTHER, "validation"),
    ):
        rows = splits[source][side]
        add(name, list(rows["text"]), list(rows["label"]))
    for name, side in (("probe_train", "train"), ("probe_test", "validation")):
        add(name, *_of_each_corpus({k: v[side]["text"] for k, v in splits.items()}, probed, side))
    folder = glue_dir()
    if folder is not None and (folder / "STS-B").is_dir():
        rows = load_task("stsb", max_eval=min(pairs, most or pairs))["validation"]
        both = [text for pair in zip(rows["text"], rows["text_pair"], strict=True) for text in pair]
        add("pairs", both, np.repeat(list(rows["label"]), 2))
    return Texts(texts, places, labels)


def _of_each_corpus(texts: dict, n: int, side: str) -> tuple[list[str], list[int]]:
    """`n` texts of each corpus and the number of the corpus."""
    chosen, corpus = [], []
    for i, (source, column) in enumerate(texts.items()):
        rows = list(column)
        order = hash_order(len(rows), "probe", source, side)[:n]
        chosen += [rows[j] for j in order]
        corpus += [i] * len(order)
    return chosen, corpus


@torch.inference_mode()
def embed(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Texts,
    *,
    pooling: str = "cls",
) -> tuple[Space, np.ndarray]:
    """Vectors of the texts by what they are read for, and the head's logits (texts, classes)."""
    tokens = tokenizer(texts.texts, truncation=True, max_length=LENGTH)
    order = sorted(range(len(texts.texts)), key=lambda i: len(tokens["input_ids"][i]))
    vectors, logits = [], []
    with OneDNN():
        for start in range(0, len(order), BATCH):
            rows = {k: [v[i] for i in order[start : start + BATCH]] for k, v in tokens.items()}
            batch = tokenizer.pad(rows, return_tensors="pt").to(model.device)
            out = model(**batch, output_hidden_states=True)
            vectors.append(pool(out.hidden_states, batch["attention_mask"], pooling=pooling).cpu())
            logits.append(out.logits.cpu())
    back = np.argsort(order)
    found = torch.cat(vectors).double().numpy()[back]
    return Space({k: found[at] for k, at in texts.places.items()}), torch.cat(logits).numpy()[back]


def treatments(train: np.ndarray, *, seed: int) -> dict[str, Treatment]:
    """What makes a finished space round for nothing, fitted on training rows (n, d).

    References
    ----------
    Su et al. 2021, *Whitening Sentence Representations*; Mu & Viswanath 2018, *All-but-the-Top*.
    """
    mean = train.mean(axis=0)
    whiten = PCA(whiten=True, svd_solver="full").fit(train)
    kept = (
        whiten.explained_variance_ > 1e-10 * whiten.explained_variance_[0]
    )  # directions that vary
    top = whiten.components_[:TOP]
    rotation = stats.ortho_group.rvs(train.shape[1], random_state=seed)
    return {
        PLAIN: lambda x: x,
        "centred": lambda x: x - mean,
        "rotated": lambda x: (x - mean) @ rotation,  # centred, so that signs are balanced
        "whitened": lambda x: whiten.transform(x)[:, kept],
        "all_but_top": lambda x: (x - mean) - (x - mean) @ top.T @ top,
    }


def measure(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Texts,
    *,
    seed: int,
    pooling: str = "cls",
    head: bool = True,
    made_round: bool = False,
) -> dict[str, Found]:
    """All uses of one model, by treatment: ``plain``, and the others if it is to be `made_round`.

    Those of its own `head` are of ``plain`` alone.
    """
    space, logits = embed(model, tokenizer, texts, pooling=pooling)
    found = {}
    for name, treat in treatments(space["train"], seed=seed).items():
        if name != PLAIN and not made_round:
            continue
        treated = Space({k: treat(x) for k, x in space.vectors.items()})
        found[name] = measure_space(treated, texts, coding_only=name in ("centred", "rotated"))
    if head:
        for side in ("in", "out"):
            p = torch.tensor(logits[texts.places[side]]).double().softmax(-1).numpy()
            found[PLAIN].values.update(_judged(p, texts.labels[side], "head", side, seed=seed))
    return found


def measure_space(space: Space, texts: Texts, *, coding_only: bool = False) -> Found:
    """Uses of a space of vectors; `coding_only`: those that a rotation does not leave alone."""
    values, rows = compressed(space)
    if coding_only:
        return Found(values, rows)
    for side in ("in", "out"):
        values[f"score_{side}"] = float(anisotropy(torch.tensor(space[side]), k=1, center=True)[0])
    for use in (_neighbours, _refitted, _probed, _detected, _similar):
        of_use, of_rows = use(space, texts)
        values |= of_use
        rows |= of_rows
    return Found(values, rows)


def _cosines(queries: np.ndarray, index: np.ndarray) -> np.ndarray:
    """(queries, index)."""
    return normalize(queries) @ normalize(index).T


def nearest(similarities: np.ndarray, k: int, *, itself: bool = False) -> np.ndarray:
    """Positions (queries, k) of the most similar, ties in an order drawn once; without `itself`."""
    shuffled = np.random.default_rng(0).permutation(similarities.shape[1])
    found = similarities[:, shuffled].copy()
    if itself:
        found[shuffled == np.arange(len(found))[:, None]] = -np.inf
    return shuffled[np.argsort(-found, axis=1, kind="stable")[:, :k]]


def overlap(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Share (queries,) of the wanted positions (queries, k) that were found."""
    return (found[:, :, None] == wanted[:, None, :]).any(axis=1).mean(axis=1)


def compressed(space: Space) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Overlap of the ten nearest in a compressed space with those in full precision.

    ``in``: validation rows of products look among the training rows; ``out``: validation rows of
    movies among each other. One bit per dimension: the sign; 8 bits: 255 levels between the least
    and the largest training value of a dimension; 64 directions: the first ones of the training
    rows, not centred, as cosines are not. Rescored: of forty by bits, the ten best in full.
    """
    train = space["train"]
    low, step = train.min(axis=0), np.ptp(train, axis=0) / 255
    step[step == 0] = 1.0
    _, _, directions = np.linalg.svd(train, full_matrices=False)
    first = directions[:DIRECTIONS].T
    coders = {
        "one_bit": lambda x: np.where(x > 0, 1.0, -1.0),
        "eight_bit": lambda x: (
            low + step * np.clip(np.round((x - low) / np.where(step, step, 1)), 0, 255)
        ),
        "first_64": lambda x: x @ first,
    }
    values, rows = {}, {}
    for side, index in (("in", train), ("out", space["out"])):
        own, exact = side == "out", _cosines(space[side], index)
        wanted = nearest(exact, NEIGHBOURS, itself=own)
        for name, code in coders.items():
            similar = _cosines(code(space[side]), code(index))
            similar = np.round(similar, 9)  # signs that agree equally often are ties
            rows[f"{name}_{side}"] = overlap(nearest(similar, NEIGHBOURS, itself=own), wanted)
            if name == "one_bit":
                most = nearest(similar, CANDIDATES, itself=own)
                best = nearest(np.take_along_axis(exact, most, axis=1), NEIGHBOURS)
                again = np.take_along_axis(most, best, axis=1)
                rows[f"one_bit_rescored_{side}"] = overlap(again, wanted)
    values = {name: float(of.mean()) for name, of in rows.items()}
    return values, rows


def _neighbours(space: Space, texts: Texts) -> tuple[dict, dict]:
    """Share of a text's ten nearest that have its label: in domain, out, and out looked up in."""
    found = {}
    for name, queries, index in (
        ("neighbours_in", "in", "train"),
        ("neighbours_out", "out", "out"),
        ("neighbours_across", "out", "train"),
    ):
        similar = _cosines(space[queries], space[index])
        at = nearest(similar, NEIGHBOURS, itself=queries == index)
        same = texts.labels[index][at] == texts.labels[queries][:, None]
        found[name] = same.mean(axis=1)
    return {k: float(v.mean()) for k, v in found.items()}, found


def _classifier() -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))


def _refitted(space: Space, texts: Texts) -> tuple[dict, dict]:
    """A new head, a logistic regression on the training rows: accuracy and calibration."""
    fitted, values = _classifier().fit(space["train"], texts.labels["train"]), {}
    for side in ("in", "out"):
        p = fitted.predict_proba(space[side])
        values |= _judged(p, texts.labels[side], "refit", side, seed=0)
    return values, {}


def _judged(
    p: np.ndarray, labels: np.ndarray, head: str, side: str, *, seed: int
) -> dict[str, float]:
    """Accuracy, Brier score, calibration error; and its mean with labels drawn from `p` (n, 2)."""
    rng = np.random.default_rng(seed)
    drawn = [(rng.random(len(p)) < p[:, 1]).astype(int) for _ in range(DRAWS)]
    found = {
        "accuracy": float((p.argmax(axis=1) == labels).mean()),
        "brier": float(((p[:, 1] - labels) ** 2).mean()),
        "ece": _calibration_error(p, labels),
        "ece_null": float(np.mean([_calibration_error(p, y) for y in drawn])),
    }
    return {f"{head}_{name}_{side}": value for name, value in found.items()}


def _calibration_error(p: np.ndarray, labels: np.ndarray) -> float:
    error = multiclass_calibration_error(
        torch.tensor(p), torch.tensor(labels), num_classes=p.shape[1], n_bins=BINS
    )
    return float(error)


def _probed(space: Space, texts: Texts) -> tuple[dict, dict]:
    """Linear probes for what was not trained: the corpus of a text, and its length in words."""
    train, test = space["probe_train"], space["probe_test"]
    corpus = _classifier().fit(train, texts.labels["probe_train"])
    right = (corpus.predict(test) == texts.labels["probe_test"]).astype(float)
    words = {
        name: np.log([1 + len(texts.texts[i].split()) for i in texts.places[name]])
        for name in ("probe_train", "probe_test")
    }
    length = make_pipeline(StandardScaler(), Ridge(alpha=1.0)).fit(train, words["probe_train"])
    values = {
        "domain": float(right.mean()),
        "length": float(length.score(test, words["probe_test"])),
    }
    return values, {"domain": right}


def _detected(space: Space, texts: Texts) -> tuple[dict, dict]:
    """Is a text of another domain farther from the training rows? Area under the ROC curve.

    The score is the mean cosine with the ten nearest training rows (Sun et al. 2022). The number
    of a foreign text is the share of products' validation rows that are nearer; their mean is the
    area.
    """
    foreign = texts.labels["probe_test"] != list(CORPORA).index(TRAINED)
    near = {}
    for name, x in (("own", space["in"]), ("foreign", space["probe_test"][foreign])):
        similar = _cosines(x, space["train"])
        near[name] = np.sort(similar, axis=1)[:, -NEIGHBOURS:].mean(axis=1)
    own, theirs = near["own"], near["foreign"][:, None]
    nearer = (own > theirs).mean(axis=1) + (own == theirs).mean(axis=1) / 2
    return {"other_domain": float(nearer.mean())}, {"other_domain": nearer}


def _similar(space: Space, texts: Texts) -> tuple[dict, dict]:
    """Spearman correlation of cosines with STS-B's similarities, where there is a folder."""
    if "pairs" not in texts.places:
        return {}, {}
    unit = normalize(space["pairs"])
    cosines = (unit[::2] * unit[1::2]).sum(axis=1)
    return {"sts": float(stats.spearmanr(cosines, texts.labels["pairs"][::2]).statistic)}, {}
