"""Rated sentences of four kinds of text, as they are, and as sentences for the diagnostics.

The files are those of Hutto & Gilbert (2014), *VADER: A Parsimonious Rule-based Model for Sentiment
Analysis of Social Media Text*, ICWSM: one snippet a line, ``id <tab> mean rating <tab> text``, with
ratings from −4 (extremely negative) to 4 by at least twenty people.
"""

from __future__ import annotations

import hashlib
import html
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

from shrink_utils.names import known_name
from shrink_utils.text.sources import fetch, lines_of

if TYPE_CHECKING:  # loaded with the first rows, not with a corpus's name
    from datasets import Dataset

CORPORA = {
    "movies": "movieReviewSnippets_GroundTruth.txt",
    "products": "amazonReviewSnippets_GroundTruth.txt",
    "editorials": "nytEditorialSnippets_GroundTruth.txt",
    "tweets": "tweets_GroundTruth.txt",
}
# Unicode's words (UAX 29): letters and digits with the marks, joiners and soft hyphens that belong
# to them (WB4); apostrophes and their like stand inside a word (WB6, WB7: don't is one), and so
# do Armenian marks, which are letters there. But full stops and colons end it: "the end.Next".
SPAN = r"[\p{L}\p{N}\p{Pc}][\p{L}\p{N}\p{Pc}\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*"
INNER = r"[\p{WB=MidLetter}\p{WB=MidNumLet}\p{WB=Single_Quote}\p{WB=ALetter}]"
INNER = rf"(?![\p{{L}}.:．：﹒﹕︓․]){INNER}"
WORD = regex.compile(rf"""{SPAN}(?:(?:{INNER}|(?<=\p{{Hebrew}})"(?=\p{{Hebrew}})){SPAN})*""")
INVISIBLE = regex.compile(r"\p{WB=Format}")  # soft hyphens, marks of direction
LETTER = regex.compile(r"\p{L}")
# Scripts without spaces between words. A run of katakana alone is a word as a rule.
UNSPACED = regex.compile(
    r"[\p{lb=SA}\p{Han}\p{Hiragana}\p{Katakana}ー\p{Javanese}\p{Balinese}\p{Tibetan}]+"
)
KATAKANA = regex.compile(r"[\p{Katakana}ー]+")
LONGEST_MEAN = 3.5  # letters per run; words of such scripts have fewer where they stand apart
FOREIGN_SHARE = 0.25  # of the letters: names of other scripts within a text


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


def as_texts(texts: Iterable[str], *, argument: str = "texts") -> list[str]:
    """Texts by position, read once, from whatever holds them.

    Parameters
    ----------
    texts
        A list, tuple, generator, Series with any index, array, Arrow array, column of a data set.

    Raises
    ------
    ValueError
        A string, a table, a set or a mapping in place of texts in an order; no texts; an item that
        is no text, or that holds half a surrogate pair, which no tokenizer reads.
    """
    in_a_row = isinstance(texts, Iterable) and len(getattr(texts, "shape", (0,))) == 1
    if not in_a_row or isinstance(texts, str | bytes | Mapping | set | frozenset):
        found = "a string" if isinstance(texts, str) else f"a {type(texts).__name__}"
        raise ValueError(f"{argument}: {found}, expected a list of texts, or a column of them")
    # pyarrow's scalars are no strings.
    items = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)
    if not items:
        raise ValueError(f"{argument}: empty, expected at least one text")
    for i, item in enumerate(items):
        if not isinstance(item, str):
            raise ValueError(f"{argument}: item {i} is {item!r}, expected a string")
        if not item.isascii() and regex.search(r"\p{Cs}", item):
            raise ValueError(
                f"{argument}: item {i}, {item[:50]!r}, holds half a surrogate pair; clean it by "
                "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
            )
    return [str(item) for item in items]  # NumPy's strings are a kind of their own


def spelled(word: str) -> str:
    """A match of `WORD` in lower case, composed and without what is not seen."""
    return unicodedata.normalize("NFC", INVISIBLE.sub("", word).lower())


def refuse_unspaced(texts: Iterable[str]) -> None:
    """A ``ValueError`` for texts of a script without spaces: their runs of letters are no words.

    Texts of such a script whose words stand apart are welcome.
    """
    runs, total = [], 0
    for text in texts:
        total += len(LETTER.findall(text))
        if not text.isascii():
            runs += [run for run in UNSPACED.findall(text) if not KATAKANA.fullmatch(run)]
    letters = sum(len(LETTER.findall(run)) for run in runs)
    if letters > FOREIGN_SHARE * total and letters > LONGEST_MEAN * len(runs):
        longest = max(runs, key=len)
        raise ValueError(
            f"texts: {letters / total:.0%} of their letters are of a script without spaces between "
            f"words, such as {longest[:20]!r}; put spaces between the words, as a segmenter does"
        )
