"""A tokenizer of our own, trained on the sentences that a model is to read."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from transformers import PreTrainedTokenizerFast

__all__ = ["SPECIAL_TOKENS", "train_tokenizer"]

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # their ids are 0 to 4
NORMALIZER = BertNormalizer(lowercase=True)
PRE_TOKENIZER = BertPreTokenizer()


def train_tokenizer(texts: Iterable[str], *, vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a lower-case WordPiece tokenizer, in BERT's manner.

    Parameters
    ----------
    texts : iterable of str
    vocab_size : int
        Word-pieces at most, the five special tokens included: a small corpus has fewer. (More only
        where the characters alone are more.)

    Returns
    -------
    PreTrainedTokenizerFast
        Puts [CLS] before a text and [SEP] after it, and pads on the right.

    Raises
    ------
    ValueError
        No texts, or a vocabulary that only the special tokens would fill.

    Notes
    -----
    Equal texts in an equal order give an equal tokenizer. Accents are stripped and letters made
    small, as BERT's uncased vocabulary has it.
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
