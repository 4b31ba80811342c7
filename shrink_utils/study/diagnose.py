"""Isotropy and contextuality of any encoder on any text: a table and a figure by layer."""

import tempfile
import time
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
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
from shrink_utils.models import PINNED, WordBatch, load_encoder, word_states
from shrink_utils.names import unknown_name
from shrink_utils.paths import data_dir
from shrink_utils.study.figures import looks_of, use_house_style
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import provenance, written
from shrink_utils.study.similarity.layers import Layers

LOCAL = (*PINNED, "tiny-random")  # encoders that need no hub
STAMPED = ("time", "commit", "device", "threads")  # of a record

FEWEST_TEXTS = 30  # below this most words stand once and no self-similarity can be told
ANGLES = ["AvgSim", "SelfSim − AvgSim", "IntraSim − null"]
SHARES = ["first score, raw", "first score, centred", "IsoScore"]


def check_folder(folder: Path) -> None:
    """Make a folder to write to, or raise an ``OSError`` that names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise type(error)(f"out: {folder} cannot be written to ({error.strerror})") from error


def read_texts(path: Path) -> list[str]:
    """The lines of a text file, or of a pipe, that hold something: one text per line.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not UTF-8, or holds too few texts to say anything.
    """
    if not path.exists() or path.is_dir():
        raise FileNotFoundError(f"text: no file {path}")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"text: {path} is not UTF-8 ({error}); save it as UTF-8") from error
    texts = [line.strip() for line in lines if line.strip()]
    if len(texts) < FEWEST_TEXTS:
        raise ValueError(
            f"text: {path} holds {len(texts)} lines with text; the measures need at least "
            f"{FEWEST_TEXTS}, one sentence per line"
        )
    return texts


def diagnose(model: str, texts: Sequence[str]) -> pd.DataFrame:
    """How an encoder fills its space, layer by layer.

    Parameters
    ----------
    model : str
        A name of `load_encoder`, a hub id, or a local folder.
    texts : sequence of str
        Some hundred sentences.

    Returns
    -------
    DataFrame
        One row per layer, 0 the embeddings. Of words: ``AvgSim`` (pairs of different sentences),
        ``SelfSim − AvgSim`` and ``IntraSim − null`` (lengths matched); first anisotropy score
        ``raw`` and ``centred``, ``IsoScore`` (bias-corrected) and ``effective rank`` (centred).

    Raises
    ------
    ValueError
        The name is nearly that of an encoder that is here: no hub is asked for it. Or there are no
        words in the texts: nothing but emoji or punctuation.
    FileNotFoundError
        See `load_encoder`.
    """
    is_typo = model not in LOCAL and get_close_matches(model.lower(), LOCAL, n=1, cutoff=0.75)
    if is_typo and "/" not in model and not Path(model).exists():
        raise unknown_name("model", "local encoder", model, LOCAL)
    words = word_states(load_encoder(model, device="auto"), texts)
    if not words.word:
        raise ValueError(
            f"text: no word in {len(texts)} texts, such as {texts[0]!r}; the measures are of words"
        )
    return pd.DataFrame([_of_layer(x, words) for x in words.vectors]).rename_axis("layer")


def _of_layer(x: Tensor, words: WordBatch) -> dict[str, float]:
    """The measures of one layer's words, (n, d)."""
    thinned = Layers(x[None], words.sentence).thinned().words[0]
    return {
        "AvgSim": avg_sim(x, groups=words.sentence).value,
        "SelfSim − AvgSim": self_sim(x, words.word, sentences=words.sentence).corrected,
        "IntraSim − null": intra_sim(x, words.sentence).excess,
        "first score, raw": float(anisotropy(x, k=1)[0]),
        "first score, centred": float(anisotropy(x, k=1, center=True)[0]),
        "IsoScore": iso_score(thinned, bias_corrected=True),
        "effective rank": effective_rank(thinned),
    }


def diagnosis_figure(table: pd.DataFrame, *, title: str) -> Figure:
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


def write_diagnosis(table: pd.DataFrame, folder: Path, *, name: str, title: str) -> list[Path]:
    """Write ``diagnose-<name>.csv`` and ``.png`` into a folder; returns their paths."""
    paths = [folder / f"diagnose-{name}{suffix}" for suffix in (".csv", ".png")]
    use_house_style()
    figure = diagnosis_figure(table, title=title)
    try:
        with written(paths[0]) as csv, written(paths[1]) as png:
            table.to_csv(csv, float_format="%.6f")
            figure.savefig(png, format="png")
    finally:
        plt.close(figure)  # else a notebook would show it
    return paths


def record_diagnosis(table: pd.DataFrame, profile: Profile, *, model: str, since: float) -> Path:
    """Put a table of `diagnose` on record, in place of the model's older one.

    Parameters
    ----------
    since : float
        When the diagnosis began, by `time.perf_counter`.

    Returns
    -------
    Path
        ``data/reference/<profile>/layers.csv``: the model, the layer, the measures, the number of
        sentences, then time, commit, device, threads and seconds.
    """
    path, stamp = recorded_layers(profile), provenance()
    facts = {"sentences": profile.diagnostic_sentences, **{name: stamp[name] for name in STAMPED}}
    facts["seconds"] = round(time.perf_counter() - since)
    table = table.reset_index().assign(**facts)
    table.insert(0, "model", model)
    if path.is_file():
        old = pd.read_csv(path)
        table = pd.concat([old[old.model != model], table])
    with written(path) as part:
        table.to_csv(part, index=False, float_format="%.6f")
    return path


def recorded_layers(profile: Profile) -> Path:
    """Where `record_diagnosis` writes."""
    return data_dir() / "reference" / profile.name / "layers.csv"
