"""Texts of an equal number of word-pieces: human ones, and two kinds made of their words."""

from __future__ import annotations

import numpy as np

from shrink_utils.models import Encoder
from shrink_utils.text import load_sentences

PIECES = 200  # of every text


def texts_of_kinds(encoder: Encoder, n: int, *, seed: int = 0) -> dict[str, list[str]]:
    """`n` texts of at least 200 word-pieces, and the two kinds that are made of their words.

    The kinds: "text", beginnings of editorials; "shuffled", the same words in random order;
    "sampled", words drawn from all editorials by their frequency.
    """
    table = load_sentences("editorials").to_pandas()
    documents = (
        table.groupby("document", sort=False).text.agg(" ".join).sample(frac=1, random_state=seed)
    )
    beginnings = (_beginning(encoder, text) for text in documents)
    chosen = [words for words in beginnings if words is not None][:n]
    rng = np.random.default_rng(seed)
    every = np.concatenate([text.split() for text in documents])
    return {
        "text": [" ".join(words) for words in chosen],
        "shuffled": [" ".join(rng.permutation(words)) for words in chosen],
        "sampled": [" ".join(rng.choice(every, size=PIECES)) for _ in chosen],
    }


def _beginning(encoder: Encoder, text: str) -> list[str] | None:
    """The first words, until they make 200 word-pieces; None of a text that is too short."""
    words = text.split()
    pieces = encoder.tokenizer(words, add_special_tokens=False)["input_ids"]
    sizes = np.cumsum([len(of_word) for of_word in pieces])
    enough = int(np.searchsorted(sizes, PIECES)) + 1
    return words[:enough] if enough <= len(words) else None
