"""Rated sentences of four kinds of text, as they are, for the diagnostics, and to train on.

The files are those of Hutto & Gilbert (2014), *VADER: A Parsimonious Rule-based Model for Sentiment
Analysis of Social Media Text*, ICWSM: one snippet a line, ``id <tab> mean rating <tab> text``, with
ratings from −4 (extremely negative) to 4 by at least twenty people.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from shrink_utils.names import as_texts, known_name
from shrink_utils.sources import fetch, lines_of

if TYPE_CHECKING:  # loaded when they are needed: datasets and transformers take seconds
    from datasets import Dataset, DatasetDict
    from transformers import PreTrainedTokenizerFast

# To add a corpus, name its file here; tasks and numbers of the others stay as they are.
CORPORA = {
    "movies": "movieReviewSnippets_GroundTruth.txt",
    "products": "amazonReviewSnippets_GroundTruth.txt",
    "editorials": "nytEditorialSnippets_GroundTruth.txt",
    "tweets": "tweets_GroundTruth.txt",
}
# What "all" means: committed numbers rest on it.
ALL = ("movies", "products", "editorials", "tweets")


@dataclass(frozen=True, slots=True)
class _Snippet:
    """A rated sentence: ``position`` counts the sentences of its ``document`` from 1."""

    source: str
    document: str
    position: int
    rating: float
    text: str


def read_snippets(source: str) -> list[_Snippet]:
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

    Examples
    --------
    >>> read_snippets("products")[0].document
    'products/1'
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
        snippets.append(_Snippet(source, name, int(position or 1), float(fields[1]), text))
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

    Examples
    --------
    >>> load_sentences("editorials", n=2).column_names
    ['text', 'document', 'source']
    """
    from datasets import Dataset

    check_maximum("n", n, "sentences")
    names = ALL if name == "all" else [name]
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


# --- texts and tokenizers of models that are trained from nothing ---------------------------------

HELD_OUT_PART = 10  # every tenth text, by its hash
MAX_HELD_OUT = 2048


@lru_cache(maxsize=4)
def split_sentences(source: str, *, n: int | None = None) -> DatasetDict:
    """Sentences to train on and to judge by.

    Parameters
    ----------
    source
        A corpus of `load_sentences` (``"all"``, ``"movies"``, …).
    n
        At most so many sentences to train on; all of them when None.

    Returns
    -------
    datasets.DatasetDict
        Splits ``train`` and ``held_out`` with the column ``text``.

    Raises
    ------
    ValueError
        Unknown ``source``, or ``n`` below 1.

    Notes
    -----
    A tenth of the texts, by the hash of each, is held out whatever ``n`` is, so that models that
    saw more or less are judged by the same sentences, at most 2,048 of them. Of equal texts (but
    for case and white space) all or none are. The order is hashed, and the first of it are taken:
    a smaller ``n`` gives a part of what a larger one does. Calls share one result: leave it as is.
    """
    from datasets import Dataset, DatasetDict

    check_maximum("n", n, "sentences")
    texts = load_sentences(source)["text"][:]
    sides: dict[str, list[str]] = {"train": [], "held_out": []}
    for i in hash_order(len(texts), "pairs", source):
        held_out = stable_hash("held_out", text_key(texts[i])) % HELD_OUT_PART == 0
        sides["held_out" if held_out else "train"].append(texts[i])
    chosen = {"train": sides["train"][:n], "held_out": sides["held_out"][:MAX_HELD_OUT]}
    return DatasetDict({side: Dataset.from_dict({"text": v}) for side, v in chosen.items()})


SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # their ids are 0 to 4


def train_tokenizer(texts: Iterable[str], *, vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a lower-case WordPiece tokenizer, in BERT's manner; equal texts give an equal one.

    Parameters
    ----------
    texts : iterable of str
    vocab_size : int
        Word-pieces at most, the five special tokens included. (More only where the characters
        alone are more.)

    Returns
    -------
    PreTrainedTokenizerFast
        Puts [CLS] before a text and [SEP] after it, and pads on the right.

    Raises
    ------
    ValueError
        No texts, or a vocabulary that only the special tokens would fill.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    texts = as_texts(texts)
    if vocab_size <= len(SPECIAL_TOKENS):
        raise ValueError(
            f"vocab_size: {vocab_size}, expected more than the {len(SPECIAL_TOKENS)} special tokens"
        )
    pad, unknown, start, end, mask = SPECIAL_TOKENS

    def word_pieces(vocabulary: dict[str, int] | None = None) -> Tokenizer:
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer

    # The trainer numbers the letters that go on a word as it meets them, in an order that differs
    # from process to process, and breaks ties between merges by those numbers. Naming these letters
    # beforehand settles both.
    trained = word_pieces()
    normal = trained.normalizer.normalize_str("\n".join(texts))
    once = " ".join(sorted(set(normal.split())))
    words = {word for word, _ in trained.pre_tokenizer.pre_tokenize_str(once)}
    inner = sorted({f"##{letter}" for word in words for letter in word[1:]})
    named = {"special_tokens": [*SPECIAL_TOKENS, *inner], "show_progress": False}
    trained.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=vocab_size, **named))
    tokenizer = word_pieces(trained.get_vocab())  # where these letters are pieces like any other
    tokenizer.post_processor = TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B {end}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (start, end)],
    )
    names = dict(pad_token=pad, unk_token=unknown, cls_token=start, sep_token=end, mask_token=mask)
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, padding_side="right", model_input_names=inputs, **names
    )
