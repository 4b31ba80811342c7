"""Four topological readings of language, each beside a matched null and a plain baseline."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from threadpoolctl import threadpool_limits
from torch import Tensor

from shrink_utils.geometry import cka, effective_rank, intrinsic_dimension
from shrink_utils.models import (
    Encoder,
    hidden_states,
    load_encoder,
    random_encoder,
    token_states,
)
from shrink_utils.study.finetuned import run_encoder, run_or_load
from shrink_utils.study.language.attention import (
    attention_maps,
    auc,
    barcode_features,
    degree_features,
    held_out_hits,
    largest_by_chance,
    shuffled_attention,
)
from shrink_utils.study.language.lifetimes import (
    components,
    edge_intervals,
    neighbour_graphs,
    survival,
)
from shrink_utils.study.language.trees import rtd_lite
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import measured
from shrink_utils.text import load_sentences, load_task
from shrink_utils.text.glue import GLUE, glue_dir

TASKS = ("word_order", "coherence")
MAX_LENGTH = 96  # tokens of a text, or of both texts of a pair
PIECES = (50, 100, 200)  # word-pieces of a text whose dimension is measured
ARMS = ("none", "prominent")


def has_cola() -> bool:
    """Whether a folder of GLUE holds CoLA: nothing else of the chapter needs GLUE."""
    root = glue_dir()
    return root is not None and (root / GLUE["cola"].folder).is_dir()


@measured("language_attention")
def measure_attention(profile: Profile) -> pd.DataFrame:
    """What attention graphs of the profile's first encoder say of a text's class.

    Of each task's training texts, `diagnostic_sentences`.

    Returns
    -------
    DataFrame
        Columns task, measure, features, layer, head, item, value. By ``measure``:

        - "hit": 1 where the class of text ``item`` is found by a logistic regression that was
          fitted on others, from these ``features``: "barcode" and "degree" (three numbers per head
          each), "both", "shuffled" (the barcode after each row's weights were dealt at random),
          "vector" (the last layer's mean vector) and "length" (tokens);
        - "auc": of the mean bar of one ``head`` (from 0) of a ``layer`` (from 1), for class 1;
        - "chance": the 95 % quantile of the largest |AUC − ½| of all heads for shuffled labels.
    """
    encoder = load_encoder(profile.models[0], device="auto")
    options = {"max_train": profile.diagnostic_sentences, "seed": profile.base_seed}
    rows = {task: load_task(task, **options)["train"] for task in TASKS}
    frames = [_of_task(encoder, task, rows[task], profile) for task in TASKS]
    return pd.concat(frames, ignore_index=True)


@measured("language_acceptability")
def measure_acceptability(profile: Profile) -> pd.DataFrame:
    """`measure_attention` of CoLA's training sentences, equally many of both classes.

    ``FileNotFoundError`` or ``ConnectionError`` where CoLA cannot be had; see `has_cola`.
    """
    half, seed = profile.diagnostic_sentences // 2, profile.base_seed
    rows = load_task("cola", max_train=8 * half, seed=seed)["train"]  # three in ten are class 0
    labels = np.asarray(rows["label"])
    chosen = np.concatenate([np.flatnonzero(labels == label)[:half] for label in (0, 1)])
    encoder = load_encoder(profile.models[0], device="auto")
    return _of_task(encoder, "cola", rows.select(np.sort(chosen)), profile)


def _of_task(encoder: Encoder, task: str, rows: Dataset, profile: Profile) -> pd.DataFrame:
    texts, labels = rows["text"][:], np.asarray(rows["label"])
    pairs = rows["text_pair"][:] if rows["text_pair"][0] is not None else None
    features, bars = _features(encoder, texts, pairs, seed=profile.base_seed)
    with threadpool_limits(1):  # small matrices: threads would wait for each other
        hits = {
            name: held_out_hits(x, labels, seed=profile.base_seed) for name, x in features.items()
        }
        chance = largest_by_chance(bars.reshape(len(bars), -1), labels, seed=profile.base_seed)
    found = pd.DataFrame(hits, dtype=float).melt(var_name="features", ignore_index=False)
    areas = auc(bars.reshape(len(bars), -1), labels).reshape(bars.shape[1:])
    heads = pd.DataFrame(np.argwhere(areas >= 0), columns=["layer", "head"])
    tables = [
        found.reset_index(names="item").assign(measure="hit"),
        heads.assign(layer=heads.layer + 1, measure="auc", value=areas.ravel()),
        pd.DataFrame({"measure": ["chance"], "value": [chance]}),
    ]
    whole = pd.concat(tables, ignore_index=True).assign(task=task)
    return whole[["task", "measure", "features", "layer", "head", "item", "value"]]


def _features(
    encoder: Encoder, texts: list[str], pairs: list[str] | None, *, seed: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Every set of features, (n, f) each, and the mean bar of each head, (n, layers, heads)."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[np.ndarray]] = {name: [] for name in ("barcode", "degree", "shuffled")}
    lengths = []
    for attention in attention_maps(encoder, texts, pairs, max_length=MAX_LENGTH):
        found["barcode"].append(barcode_features(attention))
        found["degree"].append(degree_features(attention))
        found["shuffled"].append(barcode_features(shuffled_attention(attention, rng)))
        lengths.append([float(attention.shape[-1])])
    stacked = {name: np.stack(of_texts) for name, of_texts in found.items()}
    features = {name: x.reshape(len(texts), -1) for name, x in stacked.items()}
    features["both"] = np.hstack([features["barcode"], features["degree"]])
    options = {"layers": [-1], "pooling": "mean", "max_length": MAX_LENGTH}
    features["vector"] = hidden_states(encoder, texts, text_pairs=pairs, **options)[0].numpy()
    features["length"] = np.array(lengths)
    return features, stacked["barcode"][..., 0]


@measured("language_dimension")
def measure_dimension(profile: Profile) -> pd.DataFrame:
    """Dimension of the cloud of word-pieces of a text, at every layer of the first encoder.

    Texts are the beginnings of editorials, one for every fifteen `diagnostic_sentences`, all of
    the same number of word-pieces.

    Returns
    -------
    DataFrame
        Columns kind, item, pieces, layer, measure, value, stderr. The kinds: "text"; "shuffled",
        the same words in random order; "sampled", words drawn from all editorials by their
        frequency. Measures: "ph" (with the standard error of its line), "twonn", "rank" (the
        effective rank); of fewer than 200 pieces "ph" of the last layer alone.
    """
    encoder = load_encoder(profile.models[0], device="auto")
    rows = []
    for kind, texts in _texts_of_kinds(encoder, profile).items():
        states = token_states(encoder, texts, max_length=PIECES[-1] + 2)
        for item in range(len(texts)):
            vectors = states.vectors[:, states.sentence == item][:, : PIECES[-1]].double()
            rows += [(kind, item, *row) for row in _dimensions(vectors)]
    columns = ["kind", "item", "pieces", "layer", "measure", "value", "stderr"]
    return pd.DataFrame(rows, columns=columns)


def _dimensions(vectors: Tensor) -> Iterator[tuple[int, int, str, float, float]]:
    """Of the word-pieces of one text, (layers, pieces, d)."""
    whole = vectors.shape[1]
    for layer, x in enumerate(vectors):
        value, error = intrinsic_dimension(x, method="ph", return_error=True)
        yield whole, layer, "ph", value, error
        yield whole, layer, "twonn", intrinsic_dimension(x), np.nan
        yield whole, layer, "rank", effective_rank(x), np.nan
    for n in PIECES[:-1]:
        value, error = intrinsic_dimension(vectors[-1, :n], method="ph", return_error=True)
        yield n, len(vectors) - 1, "ph", value, error


def _texts_of_kinds(encoder: Encoder, profile: Profile) -> dict[str, list[str]]:
    """Texts of at least 200 word-pieces, and the two kinds that are made of their words."""
    table = load_sentences("editorials").to_pandas()
    documents = (
        table.groupby("document", sort=False)
        .text.agg(" ".join)
        .sample(frac=1, random_state=profile.base_seed)
    )
    beginnings = (_beginning(encoder, text) for text in documents)
    long = [words for words in beginnings if words is not None]
    chosen = long[: max(3, profile.diagnostic_sentences // 15)]
    rng = np.random.default_rng(profile.base_seed)
    every = np.concatenate([text.split() for text in documents])
    return {
        "text": [" ".join(words) for words in chosen],
        "shuffled": [" ".join(rng.permutation(words)) for words in chosen],
        "sampled": [" ".join(rng.choice(every, size=PIECES[-1])) for _ in chosen],
    }


def _beginning(encoder: Encoder, text: str) -> list[str] | None:
    """The first words, until they make 200 word-pieces; None of a text that is too short."""
    words = text.split()
    pieces = encoder.tokenizer(words, add_special_tokens=False)["input_ids"]
    sizes = np.cumsum([len(of_word) for of_word in pieces])
    enough = int(np.searchsorted(sizes, PIECES[-1])) + 1
    return words[:enough] if enough <= len(words) else None


@measured("language_divergence")
def measure_divergence(profile: Profile) -> pd.DataFrame:
    """RTD-Lite and 1 − CKA between layers, and before and after fine-tuning on the first task.

    Of mean vectors of two sentences for every three `diagnostic_sentences`, from all corpora.

    Returns
    -------
    DataFrame
        Columns pair, arm, seed, measure, layer, other, value. Measures: "rtd"; "rtd_matched", of
        distances with one distribution; "cka", one minus the debiased similarity. Pairs: "itself",
        two layers of the first encoder; "null", a layer with its own rows shuffled; "finetuned", a
        layer before and after a run without regularizer or with prominent bars.
    """
    torch.set_num_threads(profile.threads)
    texts = language_sentences(profile)
    before = _sentence_vectors(load_encoder(profile.models[0], device="auto"), texts)
    depth, rows = len(before), []
    for layer in range(depth):
        shuffled = np.random.default_rng([profile.base_seed, layer]).permutation(len(texts))
        null = before[layer][shuffled]
        rows += [("null", "", -1, layer, layer, *d) for d in _divergences(before[layer], null)]
        for other in range(layer + 1, depth):
            found = _divergences(before[layer], before[other])
            rows += [("itself", "", -1, layer, other, *d) for d in found]
    for arm, seed, encoder in _finetuned(profile):
        after = _sentence_vectors(encoder, texts)
        for layer in range(depth):
            found = _divergences(before[layer], after[layer])
            rows += [("finetuned", arm, seed, layer, layer, *d) for d in found]
    columns = ["pair", "arm", "seed", "layer", "other", "measure", "value"]
    return pd.DataFrame(rows, columns=columns)


def language_sentences(profile: Profile) -> list[str]:
    """Two sentences for every three diagnostic ones, of all corpora."""
    n = max(24, profile.diagnostic_sentences * 2 // 3)
    return load_sentences("all", n=n, seed=profile.base_seed)["text"][:]


def _sentence_vectors(encoder: Encoder, texts: list[str]) -> Tensor:
    return hidden_states(encoder, texts, pooling="mean", max_length=MAX_LENGTH).double()


def _divergences(x: Tensor, y: Tensor) -> list[tuple[str, float]]:
    return [
        ("rtd", rtd_lite(x, y)),
        ("rtd_matched", rtd_lite(x, y, matched=True)),
        ("cka", 1 - cka(x, y, debiased=True)),
    ]


def _finetuned(profile: Profile) -> Iterator[tuple[str, int, Encoder]]:
    """The first model, fine-tuned on the first task, with every seed: none and prominent bars."""
    first = profile.runs()[0]
    for config in profile.runs():
        if (config.model, config.task) == (first.model, first.task) and config.arm in ARMS:
            run = run_or_load(config, profile.folder / "runs")
            yield config.arm, config.seed, run_encoder(run, device="auto")


@measured("language_lifetimes")
def measure_lifetimes(profile: Profile) -> pd.DataFrame:
    """How long sentences stay neighbours through the layers of the first encoder.

    Returns
    -------
    DataFrame
        Columns cloud, measure, layer, item, value. Clouds: "encoder"; "random", the same
        architecture with fresh weights; "shuffled", the encoder's layers, each with its sentences
        in an order of its own. Measures:

        - "lifetime": mean length of the stays of an ``item``'s edges, in layers;
        - "stays": how many stays are ``layer`` layers long;
        - "components": of the edges that stay from ``layer`` to the end;
        - "lived", "forgotten": share of layer 0's edges in all layers up to ``layer``, and what it
          would be if each step forgot edges at random.
    """
    texts, seed = language_sentences(profile), profile.base_seed
    trained = load_encoder(profile.models[0], device="auto")
    vectors = _sentence_vectors(trained, texts).numpy()
    fresh = random_encoder(profile.models[0], seed=seed + 1)
    rng = np.random.default_rng(seed)
    clouds = {
        "encoder": vectors,
        "random": _sentence_vectors(fresh, texts).numpy(),
        "shuffled": np.stack([rng.permutation(layer) for layer in vectors]),
    }
    frames = [_lives(layers).assign(cloud=cloud) for cloud, layers in clouds.items()]
    return pd.concat(frames, ignore_index=True)[["cloud", "measure", "layer", "item", "value"]]


def _lives(layers: np.ndarray) -> pd.DataFrame:
    graphs = neighbour_graphs(layers)
    intervals = edge_intervals(graphs)
    stays = intervals[:, 3] - intervals[:, 2]
    ends, n = intervals[:, :2].ravel(), layers.shape[1]
    mean = np.bincount(ends, stays.repeat(2), n) / np.bincount(ends, minlength=n)
    lived, forgotten = survival(graphs)
    by_layer = {"components": components(graphs), "lived": lived, "forgotten": forgotten}
    tables = [pd.DataFrame({"measure": "lifetime", "item": range(n), "value": mean})]
    tables += [
        pd.DataFrame({"measure": name, "layer": range(len(layers)), "value": values})
        for name, values in by_layer.items()
    ]
    counts = np.bincount(stays, minlength=len(layers) + 1)[1:]
    of_length = {"measure": "stays", "layer": range(1, len(layers) + 1), "value": counts}
    return pd.concat([*tables, pd.DataFrame(of_length)], ignore_index=True)
