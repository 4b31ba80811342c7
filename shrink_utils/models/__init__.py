"""Encoders: load one, read its layers, pool its tokens."""

from __future__ import annotations

from shrink_utils.models.encoders import Encoder, load_classifier, load_encoder
from shrink_utils.models.pooling import POOLINGS, pool
from shrink_utils.models.states import TokenStates, hidden_states, token_states

__all__ = [
    "POOLINGS",
    "Encoder",
    "TokenStates",
    "hidden_states",
    "load_classifier",
    "load_encoder",
    "pool",
    "token_states",
]
