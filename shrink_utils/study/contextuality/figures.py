"""Figures of contextuality by depth (chapter 02), beside published curves."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shrink_utils.paths import data_dir
from shrink_utils.study.figures import PALETTE, SHUFFLED, look

OURS = dict(color=PALETTE[0], marker="o", linestyle="-")
BERT = dict(color=PALETTE[1], marker="^", linestyle=":", markerfacecolor="white")
CORRECTION = dict(color=PALETTE[2], marker="s", linestyle="--")  # what is subtracted in print
MODELS = {"minilm": OURS, "mpnet": look(2), "gemma": look(3)}
HIGH = 0.5  # an AvgSim that GPT-2 exceeds in every layer; set before other models were measured

# `sample` is the table of `measure_contextuality`, `corpus` that of `measure_corpus`.


def selfsim_by_layer(sample: pd.DataFrame, corpus: pd.DataFrame, *, model: str) -> Figure:
    """AvgSim of the sample and of the whole corpus; SelfSim of the corpus, raw and corrected."""
    fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharex=True, sharey=True)
    left, right = axes
    avg_sim, self_sim = _of(sample, "avg_sim"), _of(corpus, "self_sim")
    whole = _of(corpus, "avg_sim").set_index("layer").value
    _means(left, avg_sim.value, avg_sim, label=f"{model}, sample", **OURS)
    cross = dict(color=PALETTE[6], markersize=9, zorder=3)
    left.plot(whole.index / whole.index.max(), whole, "x", label=f"{model}, whole corpus", **cross)
    left.plot(*_published("avgsim_layers", "avg_sim"), label="BERT-base-cased (published)", **BERT)
    left.set(title="AvgSim: words of different sentences", ylabel="cosine", ylim=(-0.03, 1))
    grey = dict(color="0.6", linestyle="--", marker="s")
    _means(right, self_sim.value, self_sim, label=f"{model}: SelfSim", **grey)
    corrected = self_sim.value - self_sim.layer.map(whole)
    _means(right, corrected, self_sim, label=f"{model}: SelfSim − AvgSim", **OURS)
    label = "BERT-base-cased: SelfSim − AvgSim (published)"
    right.plot(*_published("selfsim_layers", "adjusted_self_sim"), label=label, **BERT)
    right.set(title="SelfSim: one word in different sentences")
    _finish(axes, loc="upper center", bbox_to_anchor=(0.5, -0.18))
    return fig


def selfsim_by_frequency(words: pd.DataFrame, named: Sequence[str]) -> Figure:
    """Corrected SelfSim (``cosine``) of each word against its occurrences (``n``)."""
    fig, ax = plt.subplots(figsize=(8, 4.2))
    ax.plot(words.n, words.cosine, ".", color="0.75", markersize=4)
    edges = np.unique(np.geomspace(5, words.n.max() + 1, 9).astype(int))
    medians = words.groupby(pd.cut(words.n, edges, right=False), observed=True).median()
    ax.plot(medians.n, medians.cosine, "-o", color=PALETTE[0], label="median per bin")
    above = dict(xytext=(0, 6), textcoords="offset points", ha="center")
    above["bbox"] = dict(fc="white", ec="none", alpha=0.8, pad=0.5)  # over dots and the line
    for word in named:
        at = tuple(words.loc[word, ["n", "cosine"]])
        ax.plot(*at, "s", color=PALETTE[6], markersize=6)
        ax.annotate(word, at, **above)
    ax.set(xscale="log", xlabel="occurrences in the corpus", ylabel="SelfSim − AvgSim (cosine)")
    ax.set_title(f"last layer, {len(words):,} words")
    ax.margins(x=0.08)
    ax.legend()
    return fig


def intrasim_by_layer(sample: pd.DataFrame, *, model: str) -> Figure:
    """IntraSim, its length-matched null and AvgSim, and the two differences."""
    fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharex=True)
    left, right = axes
    intra, avg_sim = _of(sample, "intra_sim"), _of(sample, "avg_sim")
    _means(left, intra.value, intra, label="IntraSim", **OURS)
    _means(left, intra.null, intra, bars=False, label="length-matched null", **SHUFFLED)
    _means(left, avg_sim.value, avg_sim, bars=False, label="AvgSim", **CORRECTION)
    left.set(title=f"{model}: IntraSim and its references", ylabel="cosine", ylim=(0, 1))
    published = intra.value - intra.baseline
    _means(right, published, intra, label=f"{model} − AvgSim (published correction)", **CORRECTION)
    excess = intra.value - intra.null
    _means(right, excess, intra, label=f"{model} − length-matched null", **OURS)
    depth, bert = _published("intrasim_layers", "intra_sim")
    bert = bert - _published("avgsim_layers", "avg_sim")[1].to_numpy()
    right.plot(depth, bert, label="BERT-base-cased − AvgSim (published)", **BERT)
    right.axhline(0, color="0.7", lw=1, zorder=0)
    right.set(title="IntraSim above its reference", ylabel="difference of cosines")
    right.set_ylim(-0.05, 1)
    _finish(axes, loc="upper left")
    return fig


def mev_by_layer(sample: pd.DataFrame, *, model: str) -> Figure:
    """MEV as it is defined with its references, and two estimators of it above theirs."""
    fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharex=True, sharey=True)
    left, right = axes
    mev, released = _of(sample, "mev"), _of(sample, "mev_released")
    _means(left, mev.value, mev, label="MEV, as defined", **OURS)
    _means(left, mev.null, mev, bars=False, label="size-matched null", **SHUFFLED)
    label = "all rows together (published correction)"
    _means(left, mev.baseline, mev, bars=False, label=label, **CORRECTION)
    left.set(title=f"{model}: one direction per word", ylim=(-0.06, 1))
    left.set_ylabel("share of the squared lengths")
    _means(right, mev.value - mev.null, mev, label="as defined − its null", **OURS)
    above = released.value - released.baseline
    _means(right, above, released, label="as in the released tables − random words", **look(3))
    right.axhline(0.05, color=BERT["color"], linestyle=":", label="the published 5 %")
    right.set(title="two estimators above their references", ylabel="difference of shares")
    _finish(axes, loc="center left")
    right.legend(fontsize="small", loc="upper right")
    return fig


def models_by_layer(layers: pd.DataFrame, *, title: str) -> Figure:
    """AvgSim of several models by depth (`diagnose.record_diagnosis`), and two published curves."""
    fig, ax = plt.subplots(figsize=(8.5, 4.2))
    for model, rows in layers.groupby("model", sort=False):
        style = MODELS.get(model, look(5))
        ax.plot(rows.layer / rows.layer.max(), rows.AvgSim, label=model, **style)
    for model, style in (("gpt2", {**BERT, "marker": "v"}), ("bert-base-cased", BERT)):
        published = _published("avgsim_layers", "avg_sim", model=model)
        ax.plot(*published, label=f"{model} (published)", **style)
    ax.set(title=title, ylabel="AvgSim (cosine)", ylim=(-0.03, 1.03))
    ax.axhline(HIGH, color="0.8", lw=1, zorder=0)
    _finish([ax], loc="upper left", bbox_to_anchor=(1, 1))
    return fig


def like_gpt2(layers: pd.DataFrame) -> pd.DataFrame:
    """What GPT-2 did, of each model: a high AvgSim in every layer, its largest rise at the last.

    Returns
    -------
    DataFrame
        One row per model: ``low``, ``median`` and ``high`` AvgSim over layers; ``step``, its
        largest rise from one layer to the next, and ``into`` which layer of how many (``last``);
        ``always_high`` (above `HIGH`), ``jumps_last`` (the largest rise is into the last layer).
    """
    found = {}
    for model, rows in layers.groupby("model", sort=False):
        curve = rows.set_index("layer").AvgSim.sort_index()
        into, last = int(curve.diff().idxmax()), int(curve.index[-1])
        row = {"low": curve.min(), "median": curve.median(), "high": curve.max()}
        row |= {"step": curve.diff().max()}
        row |= {"into": into, "last": last}
        row |= {"always_high": bool(curve.min() > HIGH), "jumps_last": into == last}
        found[model] = row
    return pd.DataFrame.from_dict(found, orient="index")


def describe_models(layers: pd.DataFrame) -> str:
    """Which models do both of `like_gpt2`, and each one's numbers, in sentences."""
    said, table = [], like_gpt2(layers)
    both = list(table.index[table.always_high & table.jumps_last])
    said.append(f"{' and '.join(both) or 'No model here'} does what GPT-2 did on both counts.")
    for model, row in table.iterrows():
        high = "above" if row.always_high else "not above"
        at = "the last layer" if row.jumps_last else f"layer {row['into']} of {row['last']}"
        said.append(
            f"{model}: AvgSim lies between {row.low:.2f} and {row.high:.2f} "
            f"(median {row['median']:.2f}), {high} {HIGH} in every layer, and its largest rise "
            f"({row.step:+.2f}) leads into {at}."
        )
    return " ".join(said)


def _of(sample: pd.DataFrame, quantity: str) -> pd.DataFrame:
    return sample[sample.quantity == quantity]


def _means(
    ax: Axes, values: pd.Series, rows: pd.DataFrame, *, bars: bool = True, **look: object
) -> None:
    """Means over each layer's units (sentences, words) by relative depth, ± 2 standard errors."""
    means = values.groupby(rows.layer).agg(["mean", "sem"])
    depth = means.index / means.index.max()
    if bars:
        ax.errorbar(depth, means["mean"], 2 * means["sem"], capsize=3, **look)
    else:
        ax.plot(depth, means["mean"], **look)


def _published(
    name: str, column: str, *, model: str = "bert-base-cased"
) -> tuple[pd.Series, pd.Series]:
    table = pd.read_csv(data_dir() / "published" / f"{name}.csv")
    table = table[table.model == model]
    return table.layer / table.layer.max(), table[column]


def _finish(axes: Sequence[Axes], **legend: object) -> None:
    for ax in axes:
        ax.set(xlabel="relative depth (0 = embeddings, 1 = last layer)")
        ax.legend(fontsize="small", **legend)
