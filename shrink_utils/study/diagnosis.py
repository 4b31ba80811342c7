"""Isotropy and contextuality of any encoder on any text, or of two: a table and a figure."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from shrink_utils.geometry import (
    anisotropy,
    avg_sim,
    effective_rank,
    intra_sim,
    iso_score,
    self_sim,
)
from shrink_utils.models import load_encoder, word_states
from shrink_utils.models.states import MAX_LENGTH, WordBatch, _only, shared_words
from shrink_utils.names import as_texts
from shrink_utils.study.figures import looks_of, use_house_style
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import _check_writable, atomic_write, progress_bar
from shrink_utils.text import load_sentences
from shrink_utils.text.corpora import check_maximum, hash_order
from shrink_utils.text.files import read_texts

FEWEST_TEXTS = 30  # below this most words stand once and no self-similarity can be told
MOST_TEXTS = 5000  # some .4 MB each in MiniLM: half an hour and 2 GiB on one core
MOST_WORDS = 2000  # that the shape of a cloud is measured of
TENTHS, T_95 = 10, 2.262  # of texts, each left out once; Student's quantile of 9 degrees of freedom
ANGLES = ["AvgSim", "SelfSim − AvgSim", "IntraSim − null"]
SHARES = ["top share, raw", "PC1 share", "IsoScore"]


def diagnose(
    model: str,
    texts: Sequence[str],
    *,
    max_length: int | None = None,
    min_count: int = 5,
    max_texts: int | None = MOST_TEXTS,
) -> pd.DataFrame:
    """How an encoder fills its space, layer by layer.

    Parameters
    ----------
    model : str
        A name of `load_encoder`, a hub id, or a local folder.
    texts : sequence of str
        Some hundred sentences.
    max_length : int or None
        Tokens read of a text; None: 128, or fewer where the encoder reads fewer.
    min_count : int
        In how many texts a word stands whose self-similarity counts.
    max_texts : int or None
        Of more than these a sample is read, always the same one; None for all.

    Returns
    -------
    DataFrame
        One row per layer, 0 the embeddings. Of words: ``AvgSim`` (pairs of different sentences),
        ``SelfSim − AvgSim`` and ``IntraSim − null`` (lengths matched); the ``top share`` of the
        raw vectors' squared singular values and the ``PC1 share`` of their variance, ``IsoScore``
        (bias-corrected) and ``effective rank`` (centred). Its ``attrs`` hold the same of an
        isotropic Gaussian cloud (``null``), how many ``texts`` were read and how many of them
        ``cut`` at ``max_length``.

    Raises
    ------
    ValueError
        There are no words in the texts: nothing but emoji or punctuation.
    FileNotFoundError
        See `load_encoder`.
    """
    texts, words, attrs = _read_words(model, texts, max_length, max_texts)
    rows = [_of_layer(x, words, min_count) for x in words.vectors]
    noise = torch.randn(words.vectors.shape[1:], generator=torch.Generator().manual_seed(0))
    table = pd.DataFrame(rows).rename_axis("layer")
    table.attrs = attrs | {"null": _of_layer(noise, words, min_count)}
    return table


def compare(
    before: str, after: str, texts: Sequence[str], *, min_count: int = 5, **reading: int | None
) -> pd.DataFrame:
    """The diagnoses of two encoders of as many layers, and which differences are noise.

    Parameters
    ----------
    before, after : str
        As `diagnose` takes one, such as an encoder and what fine-tuning made of it.
    texts, min_count
        As in `diagnose`.
    **reading
        ``max_length`` and ``max_texts`` of `diagnose`.

    Returns
    -------
    DataFrame
        One row per layer and measure: ``before``, ``after``, ``difference``, its ``stderr``, by a
        jackknife that leaves out a tenth of the texts from both at once, and ``noise``, true where
        zero lies in the interval of 95 % of that one difference. It is the noise of other texts
        of the kind, not that of another training: one fine-tuned model cannot tell that. Words
        count that both have read.

    Raises
    ------
    ValueError, FileNotFoundError
        As `diagnose`; or the encoders have different numbers of layers.
    """
    read = [_read_words(model, texts, **reading) for model in (before, after)]
    (texts, first, _), (_, second, _) = read
    if len(first.vectors) != len(second.vectors):
        depths = " and ".join(str(len(words.vectors)) for words in (first, second))
        raise ValueError(f"after: {before} and {after} have {depths} layers, no pairs of them")
    first, second = shared_words(first, second)
    group = torch.randperm(len(texts), generator=torch.Generator().manual_seed(0)) % TENTHS
    rows = []
    for layer in range(len(first.vectors)):
        whole, *left_out = (
            [pd.Series(_of_layer(w.vectors[layer], w, min_count)) for w in pair]
            for pair in [(first, second), *_without_groups((first, second), group)]
        )
        stderr = pd.DataFrame([b - a for a, b in left_out]).std(ddof=0) * math.sqrt(TENTHS - 1)
        columns = {"before": whole[0], "after": whole[1], "stderr": stderr}
        rows.append(pd.DataFrame(columns).rename_axis("measure"))
    table = pd.concat(dict(enumerate(rows)), names=["layer"])
    table.insert(2, "difference", table.after - table.before)
    table["noise"] = table.difference.abs() <= T_95 * table.stderr
    table.attrs = max((attrs for _, _, attrs in read), key=lambda attrs: attrs["cut"])
    return table


def _without_groups(pair: Iterable[WordBatch], group: Tensor) -> Iterator[list[WordBatch]]:
    """The words of both readings without the texts of each group in turn."""
    for left_out in range(TENTHS):
        yield [_only(w, (group[w.sentence] != left_out).nonzero()[:, 0]) for w in pair]


def _read_words(
    model: str,
    texts: Sequence[str],
    max_length: int | None = None,
    max_texts: int | None = MOST_TEXTS,
) -> tuple[list[str], WordBatch, dict[str, int]]:
    """Texts, or a sample of them, the words that an encoder read, and how many were cut."""
    encoder, texts = load_encoder(model, device="auto"), as_texts(texts)
    check_maximum("max_texts", max_texts, "texts")
    if max_texts and len(texts) > max_texts:
        texts = [texts[i] for i in sorted(hash_order(len(texts), "diagnose")[:max_texts])]
    with progress_bar(total=len(texts), unit="text", description=_file_name(model)) as bar:
        words = word_states(encoder, texts, max_length=max_length, progress=bar.update)
    max_length = max_length or min(MAX_LENGTH, encoder.max_length)
    if not words.word:
        raise ValueError(
            f"text: no whole word in {len(texts)} texts, such as {texts[0]!r}, of which max_length "
            f"leaves {max_length} tokens; the measures are of words"
        )
    tokens = encoder.tokenizer(texts, verbose=False)["input_ids"]
    cut = sum(len(ids) > max_length for ids in tokens)
    return texts, words, {"texts": len(texts), "max_length": max_length, "cut": cut}


def _of_layer(x: Tensor, words: WordBatch, min_count: int) -> dict[str, float]:
    """The measures of one layer's words, (n, d)."""
    of_words = self_sim(x, words.word, sentences=words.sentence, min_count=min_count)
    n = min(len(x), MOST_WORDS)
    thinned = x[torch.arange(n) * len(x) // n]  # evenly over the texts
    return {
        "AvgSim": avg_sim(x, groups=words.sentence).value,
        "SelfSim − AvgSim": of_words.corrected,
        "IntraSim − null": intra_sim(x, words.sentence).excess,
        "top share, raw": float(anisotropy(x, k=1)[0]),
        "PC1 share": float(anisotropy(x, k=1, center=True)[0]),
        "IsoScore": iso_score(thinned, bias_corrected=True),
        "effective rank": effective_rank(thinned),
    }


def _diagnosis_figure(table: pd.DataFrame, *, title: str) -> Figure:
    """Two panels over the layers of `diagnose`: mean cosines, and shares of variance."""
    fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharex=True)
    for ax, columns, label in zip(
        axes, (ANGLES, SHARES), ("mean cosine", "share of variance, or score"), strict=True
    ):
        for column, style in looks_of(columns).items():
            ax.plot(table.index, table[column], label=column, **style)
        ax.set(xlabel="layer (0: embeddings)", ylabel=label)
        ax.axhline(0, color="0.6", lw=1)
        # Above the panel: any place inside is a curve's of some encoder.
        ax.legend(fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig


def _difference_figure(table: pd.DataFrame, *, title: str) -> Figure:
    """The differences of `compare` over the layers with their intervals, a panel per measure."""
    measures = table.index.unique("measure")
    fig, axes = plt.subplots(1, len(measures), figsize=(2.2 * len(measures), 3), sharex=True)
    for ax, measure in zip(axes, measures, strict=True):
        rows = table.xs(measure, level="measure")
        ax.errorbar(rows.index, rows.difference, T_95 * rows.stderr, fmt="o-", capsize=2)
        ax.axhline(0, color="0.6", lw=1)
        ax.set_title(measure, fontsize="small")
    axes[0].set(xlabel="layer", ylabel="after − before")
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig


def _file_name(model: str) -> str:
    """The parts of a model's path or hub id, as the hub's cache joins them; no two share one."""
    parts = [part for part in Path(model).parts if part not in (".", "..", "/")]
    return "--".join(parts or [Path(model).resolve().name])


def _write_diagnosis(table: pd.DataFrame, folder: Path, *, name: str, title: str) -> list[Path]:
    """Write ``diagnose-<name>.csv`` and its figure, ``.png``; returns their paths."""
    use_house_style()
    csv, png = (folder / f"diagnose-{name}{ending}" for ending in (".csv", ".png"))
    figure = (_difference_figure if "after" in table else _diagnosis_figure)(table, title=title)
    try:
        with atomic_write(csv) as numbers, atomic_write(png) as picture:
            figure.savefig(picture, format="png")
            table.to_csv(numbers, float_format="%.6f")
    finally:
        plt.close(figure)  # else a notebook would show it
    return [csv, png]


def _diagnose_command(
    profile: Profile,
    models: Sequence[str],
    *,
    text: str = "",
    column: str | None = None,
    out: Path = Path(),
    **limits: int,
) -> None:
    """Print and write the table of one encoder, or of two, on a file or the study's sentences."""
    plt.switch_backend("agg")  # a file, no window
    _check_writable(out, "out")  # before the work, which may take long
    if column and not text:
        raise ValueError("--column: it is of the table that --text names")
    if len(models) > 2:
        raise ValueError(f"model: {len(models)} models, expected one, or two to compare")
    if text:
        source = Path(text).name
        texts, notes = read_texts(Path(text), column=column)
        if len(texts) < FEWEST_TEXTS:
            least = f"the measures need at least {FEWEST_TEXTS}, one sentence per line"
            raise ValueError(f"text: {text} holds {len(texts)} texts; {least}")
    else:
        n, source, notes = profile.diagnostic_sentences, "snippets", []
        texts = list(load_sentences("all", n=n, seed=profile.base_seed)["text"])
    try:
        table = (diagnose if len(models) == 1 else compare)(*models, texts, **limits)
    except Exception as error:  # a model and texts of any kind, read by several libraries
        told = " ".join(str(error).split()) or type(error).__name__
        told = re.sub("^name:", "model:", told)
        for option in ("max_length", "min_count", "max_texts"):
            told = told.replace(option, f"--{option.replace('_', '-')}")
        raise (OSError if isinstance(error, OSError) else ValueError)(told) from error
    read = table.attrs["texts"]
    of = f" of {len(texts):,}" if read < len(texts) else ""
    title = f"{' and '.join(models)} on {read}{of} texts ({source})"
    written = _write_diagnosis(table, out, name="-to-".join(map(_file_name, models)), title=title)
    print(f"{title}\n\n{table.to_string(float_format='{:.3f}'.format)}\n")
    notes += [f"A sample of {read} texts was read, the same in each call (--max-texts)."] * bool(of)
    if cut := table.attrs["cut"]:
        limit = table.attrs["max_length"]
        notes.append(f"{cut} of {read} texts were cut at {limit} tokens (--max-length).")
    if copies := len(texts) - len(set(texts)):
        notes.append(f"{copies} of {len(texts)} texts repeat another, which makes SelfSim high.")
    print("".join(f"{note}\n" for note in notes), end="")
    print(f"Written: {', '.join(map(str, written))}. Notebooks 01 and 02 define the columns.")
