"""Sentences with a translation each: of the rule-made language offline, of a corpus on the hub."""

from __future__ import annotations

from copy import copy
from functools import lru_cache

from datasets import Dataset, DatasetDict, load_dataset
from huggingface_hub.errors import HfHubHTTPError

from shrink_utils.names import unknown_name
from shrink_utils.text.corpora import CORPORA, hash_order, load_sentences, stable_hash
from shrink_utils.text.rule_language import translate

__all__ = ["load_pairs"]

HELD_OUT_PART = 10  # every tenth text, by its hash
MAX_HELD_OUT = 2048


def load_pairs(source: str, *, n: int | None = None) -> DatasetDict:
    """Sentences and their translations, to train on and to judge by.

    Parameters
    ----------
    source
        A corpus of `load_sentences` (``"all"``, ``"movies"``, …), translated by `translate`; or a
        data set of pairs on the hub as ``owner/name/subset@revision``, such as
        ``"Helsinki-NLP/europarl/de-en@49c0378"``, read from English.
    n
        At most so many sentences to train on; all of them when None.

    Returns
    -------
    datasets.DatasetDict
        Splits ``train`` and ``held_out`` with columns ``text`` and ``translation``.

    Raises
    ------
    ValueError
        Unknown ``source``, a data set without pairs of English and another language, or ``n``
        below 1.
    ConnectionError
        The data set is on the hub, which cannot be reached or has no such set.

    Notes
    -----
    A tenth of the texts, by the hash of each, is held out whatever ``n`` is, so that models that
    saw more or less are judged by the same sentences, at most 2,048 of them. Of equal texts (but
    for case and white space) all or none are. The order is hashed, and the first of it are taken:
    a smaller ``n`` gives a part of what a larger one does.
    """
    if n is not None and n < 1:
        raise ValueError(f"n: {n}, expected at least 1, or None for all sentences")
    # Whoever changes what is given out, a dict or the format of a split, does not change the cache.
    return DatasetDict({side: copy(rows) for side, rows in _splits(source, n).items()})


@lru_cache(maxsize=4)
def _splits(source: str, n: int | None) -> dict[str, Dataset]:
    texts, translations = _from_hub(source) if "/" in source else _by_rule(source)
    sides: dict[str, list[int]] = {"train": [], "held_out": []}
    for i in hash_order(len(texts), "pairs", source):
        key = " ".join(texts[i].casefold().split())
        held_out = stable_hash("held_out", key) % HELD_OUT_PART == 0
        sides["held_out" if held_out else "train"].append(i)
    rows = {"train": sides["train"][:n], "held_out": sides["held_out"][:MAX_HELD_OUT]}
    return {
        side: Dataset.from_dict(
            {
                "text": [texts[i] for i in chosen],
                "translation": [translations[i] for i in chosen],
            }
        )
        for side, chosen in rows.items()
    }


def _by_rule(source: str) -> tuple[list[str], list[str]]:
    if source != "all" and source not in CORPORA:
        raise unknown_name("source", "corpus", source, [*CORPORA, "all"])
    texts = list(load_sentences(source)["text"])
    return texts, [translate(text) for text in texts]


def _from_hub(source: str) -> tuple[list[str], list[str]]:
    path, _, revision = source.partition("@")
    owner, name, *subset = path.split("/")
    try:
        rows = load_dataset(f"{owner}/{name}", *subset, split="train", revision=revision or None)
    except (OSError, ValueError, HfHubHTTPError) as error:
        raise ConnectionError(
            f"source: cannot read {source!r} from the hub ({str(error).splitlines()[0]}). Offline,"
            f" the corpora {', '.join(CORPORA)} and 'all' are translated by rule."
        ) from error
    if "translation" not in rows.column_names or "en" not in rows[0]["translation"]:
        raise ValueError(
            f"source: {source!r} has columns {rows.column_names}, expected 'translation' with"
            " 'en' and another language in each row"
        )
    other = next(language for language in rows[0]["translation"] if language != "en")
    pairs = [(row["en"], row[other]) for row in rows["translation"] if row["en"] and row[other]]
    return [text for text, _ in pairs], [translation for _, translation in pairs]
