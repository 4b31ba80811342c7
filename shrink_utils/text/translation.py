"""Sentences with a translation each, and a tokenizer trained on them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from functools import lru_cache

from datasets import Dataset, DatasetDict, load_dataset
from huggingface_hub.errors import HfHubHTTPError
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from transformers import PreTrainedTokenizerFast

from shrink_utils.names import unknown_name
from shrink_utils.text.corpora import (
    CORPORA,
    WORD,
    check_maximum,
    hash_order,
    load_sentences,
    stable_hash,
    text_key,
)

# Vowels become the next vowel, consonants the next consonant; other characters stay.
LETTERS = str.maketrans("aeioubcdfghjklmnpqrstvwxyz", "eiouacdfghjklmnpqrstvwxyzb")
CLAUSE = re.compile(rf"{WORD.pattern}(?:\s+{WORD.pattern})*")  # words with only space between


def translate(sentence: str) -> str:
    """A sentence in a language made by rule: other words, in another order.

    Every word is replaced by another one, always the same: in lower case, each vowel by the next
    vowel and each consonant by the next consonant (a e i o u a; b c d f … z b). Within a clause,
    which is what stands between two punctuation marks, the words change places two by two.
    Translation can thus be learned without a bilingual corpus.

    Examples
    --------
    >>> translate("The cat sat on it, and I left.")
    'dev vji up tev ov, o epf migv.'
    """

    def clause(match: re.Match) -> str:
        words = [word.lower().translate(LETTERS) for word in WORD.findall(match.group())]
        even = len(words) // 2 * 2  # the last of an odd number stays
        words[0:even:2], words[1:even:2] = words[1:even:2], words[0:even:2]
        return " ".join(words)

    return CLAUSE.sub(clause, sentence)


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
    check_maximum("n", n, "sentences")
    # Whoever changes what is given out, a dict or the format of a split, does not change the cache.
    return DatasetDict({side: copy(rows) for side, rows in _splits(source, n).items()})


@lru_cache(maxsize=4)
def _splits(source: str, n: int | None) -> dict[str, Dataset]:
    texts, translations = _from_hub(source) if "/" in source else _by_rule(source)
    sides: dict[str, list[int]] = {"train": [], "held_out": []}
    for i in hash_order(len(texts), "pairs", source):
        held_out = stable_hash("held_out", text_key(texts[i])) % HELD_OUT_PART == 0
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


SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # their ids are 0 to 4
NORMALIZER = BertNormalizer(lowercase=True)
PRE_TOKENIZER = BertPreTokenizer()


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
    texts = list(texts)
    if not texts:
        raise ValueError("texts: empty, expected at least one text")
    if vocab_size <= len(SPECIAL_TOKENS):
        raise ValueError(
            f"vocab_size: {vocab_size}, expected more than the {len(SPECIAL_TOKENS)} special tokens"
        )
    pad, unknown, start, end, mask = SPECIAL_TOKENS
    tokenizer = Tokenizer(WordPiece(_pieces(texts, vocab_size), unk_token=unknown))
    tokenizer.normalizer, tokenizer.pre_tokenizer = NORMALIZER, PRE_TOKENIZER
    tokenizer.post_processor = TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B {end}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (start, end)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        unk_token=unknown,
        cls_token=start,
        sep_token=end,
        mask_token=mask,
        padding_side="right",
        model_input_names=["input_ids", "attention_mask"],
    )


def _pieces(texts: list[str], vocab_size: int) -> dict[str, int]:
    """Word-pieces and their ids.

    The trainer numbers the letters that go on a word as it meets them, in an order that differs
    from process to process, and breaks ties between merges by those numbers. Naming these letters
    beforehand settles both.
    """
    words, _ = zip(
        *PRE_TOKENIZER.pre_tokenize_str(NORMALIZER.normalize_str("\n".join(texts))), strict=True
    )
    inner = sorted({letter for word in set(words) for letter in word[1:]})
    trained = Tokenizer(WordPiece(unk_token=SPECIAL_TOKENS[1]))
    trained.normalizer, trained.pre_tokenizer = NORMALIZER, PRE_TOKENIZER
    trainer = WordPieceTrainer(
        vocab_size=vocab_size,
        special_tokens=[*SPECIAL_TOKENS, *(f"##{letter}" for letter in inner)],
        show_progress=False,
    )
    trained.train_from_iterator(texts, trainer)
    return trained.get_vocab()
