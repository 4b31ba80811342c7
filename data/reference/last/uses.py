"""What finished embeddings find, by docs/preregistration_last.md: verses, paraphrases, similarity.

Everything is read off the last layer's [CLS] vectors, computed in bfloat16 as the runs train.
Treatments are fitted on the training rows of the run's own model, and applied to every condition.
"""

from __future__ import annotations

import ast
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats

from shrink_utils.models import pool
from shrink_utils.text import glue_dir, load_task
from shrink_utils.text.corpora import hash_order
from shrink_utils.text.sources import Source, pip_download, sha256_of, source_path

TASK = "sentiment_products"
N_VERSES, NEAREST = 4000, 10
LENGTH = {"train": 24, "verses": 48, "mrpc": 64, "stsb": 48}  # word-pieces read of a text
BATCH = 64
# Directions of the training rows with less than this share of the largest variance are cut.
CUT = 1e-9
PLAIN, ROTATED, WHITENED = "plain", "centred_rotated", "whitened_rotated"
# Public-domain texts in MIT wheels; read as data, never imported.
TRANSLATIONS = {
    name: Source(
        name=f"verses_{name}",
        what="The Bible's verses in English",
        package=f"pythonbible-{name}",
        version="0.0.2",
        kind="wheel",
        archive=f"pythonbible_{name}-0.0.2-py3-none-any.whl",
        sha256=sha256,
        licence="MIT (the texts: public domain)",
        url=f"https://pypi.org/project/pythonbible-{name}/",
        files={},
    )
    for name, sha256 in (
        ("web", "66f90ca618551e0bc0dccf0c69d8042fb0083cae099b70d8c4fa3aaea0deab64"),
        ("ylt", "dfff6ff29788ab270852d38bdd041b65d37fc6945a63a12370bc34503a327517"),
    )
}
CODES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "full": lambda x: x,
    "one_bit": lambda x: np.where(x > 0, 1.0, -1.0),
}


class Texts(NamedTuple):
    """What is read, by name: training rows; first and second texts of pairs, row by row."""

    train: list[str]
    pairs: dict[str, tuple[list[str], list[str]]]
    asked: dict[str, np.ndarray]  # of "mrpc": which first texts have a true paraphrase
    similar: np.ndarray  # STS-B's similarities of "stsb"


def _verses(name: str) -> dict[int, str]:
    """Verses of a pinned translation by number, its literals read without running its code."""
    source, folder = TRANSLATIONS[name], source_path("downloads")
    wheel = folder / source.archive
    if not wheel.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            pip_download(source, Path(scratch))
            Path(scratch, source.archive).rename(wheel)
    if (found := sha256_of(wheel)) != source.sha256:
        raise ValueError(f"{wheel} has sha256 {found}, expected {source.sha256}")
    code = zipfile.ZipFile(wheel).read(f"pythonbible_{name}/plain_text_readers_bible.py")
    tree = ast.parse(code.decode("utf-8"))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    bible = next(call for call in calls if getattr(call.func, "id", "") == "Bible")
    text, starts, ends = (ast.literal_eval(part) for part in bible.args[1:4])
    return {verse: " ".join(text[starts[verse] : ends[verse]].split()) for verse in starts}


def draw_verses(n: int = N_VERSES) -> tuple[list[str], list[str]]:
    """The same `n` verses of the World English Bible and of Young's Literal Translation.

    Drawn once. Left out: verses that one of them lacks, those of fewer than five words on a side,
    and those with the same text in both, or with a text that stands twice in one of them.
    """
    first, second = _verses("web"), _verses("ylt")
    both = sorted(first.keys() & second.keys())
    twice = {text for side in (first, second) for text in _repeated(side)}
    kept = [
        verse
        for verse in both
        if min(len(first[verse].split()), len(second[verse].split())) >= 5
        and first[verse] != second[verse]
        and not twice & {first[verse], second[verse]}
    ]
    drawn = sorted(kept[i] for i in hash_order(len(kept), "last", "verses")[:n])
    return [first[verse] for verse in drawn], [second[verse] for verse in drawn]


def _repeated(verses: dict[int, str]) -> set[str]:
    """Texts of more than one verse."""
    seen: set[str] = set()
    return {text for text in verses.values() if text in seen or seen.add(text)}


def read_texts(*, most: int | None = None) -> Texts:
    """All texts, GLUE's where its folder is; `most` of each kind, as a test may want."""
    train = list(load_task(TASK, max_train=most)["train"]["text"])
    pairs = {"verses": draw_verses(min(N_VERSES, most or N_VERSES))}
    asked, similar = {"verses": np.ones(len(pairs["verses"][0]), dtype=bool)}, np.array([])
    for task, folder in (("mrpc", "MRPC"), ("stsb", "STS-B")):
        if (glue := glue_dir()) is not None and (glue / folder).is_dir():
            rows = load_task(task, max_eval=most)["validation"]
            pairs[task] = list(rows["text"]), list(rows["text_pair"])
            if task == "mrpc":
                asked[task] = np.asarray(rows["label"]) == 1
            else:
                similar = np.asarray(rows["label"], dtype=float)
    return Texts(train, pairs, asked, similar)


@torch.inference_mode()
def embed(model, tokenizer, texts: list[str], *, length: int) -> np.ndarray:
    """[CLS] vectors (n, d) of the texts' first `length` word-pieces, in double precision."""
    tokens = tokenizer(texts, truncation=True, max_length=length)
    order = sorted(range(len(texts)), key=lambda i: len(tokens["input_ids"][i]))
    found = []
    for start in range(0, len(order), BATCH):
        rows = {k: [v[i] for i in order[start : start + BATCH]] for k, v in tokens.items()}
        batch = tokenizer.pad(rows, return_tensors="pt").to(model.device)
        with torch.autocast(model.device.type, torch.bfloat16):
            states = model(**batch, output_hidden_states=True).hidden_states
        found.append(pool(states, batch["attention_mask"], pooling="cls").float().cpu())
    return torch.cat(found).double().numpy()[np.argsort(order)]


def treatments(train: np.ndarray, *, seed: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Nothing; centred; whitened (Su et al. 2021): the last two turned by a rotation of the seed.

    Fitted on training rows (n, d). Whitening keeps the directions whose variance is at least `CUT`
    of the largest.
    """
    mean = train.mean(axis=0)
    _, sizes, directions = np.linalg.svd(train - mean, full_matrices=False)
    kept = sizes**2 >= CUT * sizes[0] ** 2
    whiten = directions[kept].T / sizes[kept] * np.sqrt(len(train) - 1)  # (d, kept)
    turn, less = (
        stats.ortho_group.rvs(n, random_state=seed) for n in (train.shape[1], int(kept.sum()))
    )
    return {
        PLAIN: lambda x: x,
        ROTATED: lambda x: (x - mean) @ turn,
        WHITENED: lambda x: (x - mean) @ whiten @ less,
    }


def hits(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Chance (n,) that row i of `second` is among the ten most cosine-similar to row i of `first`.

    Both are (n, d). Rows as similar as the right one share the places that are left, whatever
    their order.
    """
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, second)]
    similar = np.round(unit[0] @ unit[1].T, 9)
    right = np.diagonal(similar)[:, None]
    nearer, tied = (similar > right).sum(axis=1), (similar == right).sum(axis=1)  # itself as well
    return np.clip((NEAREST - nearer) / tied, 0.0, 1.0)


def measure(model, tokenizer, texts: Texts, *, seed: int) -> tuple[list[dict], list[dict]]:
    """Values by treatment and use, and the hits of single verses."""
    train = embed(model, tokenizer, texts.train, length=LENGTH["train"])
    vectors = {
        name: [embed(model, tokenizer, side, length=LENGTH[name]) for side in both]
        for name, both in texts.pairs.items()
    }
    values, verses = [], []
    for treatment, treat in treatments(train, seed=seed).items():
        for name, both in vectors.items():
            for code, coded in CODES.items():
                first, second = (coded(treat(x)) for x in both)
                of = {"treatment": treatment, "use": f"{name}_{code}"}
                if name == "stsb":
                    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (first, second)]
                    cosines = (unit[0] * unit[1]).sum(axis=1)
                    value = stats.spearmanr(cosines, texts.similar).statistic
                else:
                    found = hits(first, second)[texts.asked[name]]
                    value = found.mean()
                    if name == "verses":
                        verses.append(of | {"hits": found.astype("float32")})
                values.append(of | {"value": float(value)})
    return values, verses
