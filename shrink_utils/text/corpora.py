"""Rated sentences of four kinds of text, as they are, and as sentences for the diagnostics.

The files are those of Hutto & Gilbert (2014), *VADER: A Parsimonious Rule-based Model for Sentiment
Analysis of Social Media Text*, ICWSM: one snippet a line, ``id <tab> mean rating <tab> text``, with
ratings from −4 (extremely negative) to 4 by at least twenty people.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shrink_utils.names import known_name
from shrink_utils.sources import fetch, lines_of

if TYPE_CHECKING:  # loaded with the first rows, not with a corpus's name
    from datasets import Dataset

CORPORA = {
    "movies": "movieReviewSnippets_GroundTruth.txt",
    "products": "amazonReviewSnippets_GroundTruth.txt",
    "editorials": "nytEditorialSnippets_GroundTruth.txt",
    "tweets": "tweets_GroundTruth.txt",
}


@dataclass(frozen=True, slots=True)
class Snippet:
    """A rated sentence: ``position`` counts the sentences of its ``document`` from 1."""

    source: str
    document: str
    position: int
    rating: float
    text: str


def read_snippets(source: str) -> list[Snippet]:
    """All snippets of one corpus, in the order of its file.

    Parameters
    ----------
    source
        ``"movies"`` (10,605 snippets), ``"products"`` (3,708), ``"editorials"`` (5,190) or
        ``"tweets"`` (4,200).

    Raises
    ------
    ValueError
        Unknown ``source``, or a line of the file that has not its three fields.

    Notes
    -----
    HTML entities are replaced by their characters and white space at the ends is dropped; nothing
    else is changed. Products and editorials are numbered ``document_sentence``; in the other two
    each snippet is a document of its own.
    """
    file = CORPORA[known_name("source", "corpus", source, CORPORA)]
    path, snippets = fetch("vader_sentiment") / file, []
    for i, line in enumerate(lines_of(path.read_bytes()), 1):
        fields = line.split("\t")
        if len(fields) != 3:
            raise ValueError(
                f"{path}, line {i}: {len(fields)} fields, expected id, rating and text"
            )
        document, _, position = fields[0].partition("_")
        name, text = f"{source}/{document}", html.unescape(fields[2]).strip()
        snippets.append(Snippet(source, name, int(position or 1), float(fields[1]), text))
    return snippets


def load_sentences(name: str = "editorials", *, n: int | None = None, seed: int = 0) -> Dataset:
    """Sentences for the diagnostics.

    Parameters
    ----------
    name
        A corpus of `read_snippets`, or ``"all"`` for the four of them.
    n
        How many sentences, drawn without replacement by ``seed``; all when None or too large.

    Returns
    -------
    datasets.Dataset
        Columns ``text``, ``document`` (such as ``"editorials/12"``) and ``source``, in the order of
        the files.

    Raises
    ------
    ValueError
        Unknown ``name``, or ``n`` below 1.
    """
    from datasets import Dataset

    check_maximum("n", n, "sentences")
    names = CORPORA if name == "all" else [name]
    snippets = [snippet for source in names for snippet in read_snippets(source)]
    chosen = sorted(hash_order(len(snippets), "sentences", name, seed)[:n])
    columns = ("text", "document", "source")
    return Dataset.from_dict({c: [getattr(snippets[i], c) for i in chosen] for c in columns})


def check_maximum(argument: str, n: int | None, of: str) -> None:
    """A ``ValueError`` that names the argument unless ``n`` is None or at least 1."""
    if n is not None and n < 1:
        raise ValueError(f"{argument}: {n}, expected at least 1, or None for all {of}")


def text_key(text: str) -> str:
    """Equal for texts that differ in letter case and white space only: the encoders are uncased."""
    return " ".join(text.casefold().split())


def stable_hash(*parts: object) -> int:
    """64-bit integer from sha256 of ``parts``: the same in every process, version and machine."""
    digest = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(digest[:8])


def hash_order(n: int, *salt: object) -> Sequence[int]:
    """The integers below ``n`` in an order that looks random and depends on ``salt`` alone."""
    return sorted(range(n), key=lambda i: stable_hash(*salt, i))
