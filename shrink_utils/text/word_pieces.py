"""Texts and tokenizers of models that are trained from nothing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from shrink_utils.names import as_texts
from shrink_utils.text.corpora import (
    check_maximum,
    hash_order,
    load_sentences,
    stable_hash,
    text_key,
)

if TYPE_CHECKING:  # loaded when they are needed: datasets and transformers take seconds
    from datasets import DatasetDict
    from transformers import PreTrainedTokenizerFast

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
