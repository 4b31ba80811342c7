"""Encoders: load one, read its layers, pool its tokens."""

from __future__ import annotations

from shrink_utils.models.batches import StateBatch, state_batches
from shrink_utils.models.classifiers import load_classifier, save_classifier
from shrink_utils.models.encoders import Encoder, load_encoder, random_encoder
from shrink_utils.models.pooling import POOLINGS, pool
from shrink_utils.models.states import TokenStates, hidden_states, token_states
from shrink_utils.models.words import WordBatch, split_words, word_batches, word_states

__all__ = [
    "POOLINGS",
    "Encoder",
    "StateBatch",
    "TokenStates",
    "WordBatch",
    "hidden_states",
    "load_classifier",
    "load_encoder",
    "pool",
    "random_encoder",
    "save_classifier",
    "split_words",
    "state_batches",
    "token_states",
    "word_batches",
    "word_states",
]
