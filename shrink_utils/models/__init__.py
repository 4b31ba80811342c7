"""Encoders: load one, read its layers, pool its tokens."""

from __future__ import annotations

from shrink_utils.models._loading import quiet
from shrink_utils.models.batches import StateBatch, state_batches
from shrink_utils.models.classifiers import load_classifier, save_classifier
from shrink_utils.models.encoders import Encoder, load_encoder, random_encoder
from shrink_utils.models.pair_classifier import (
    entailment_output,
    new_pair_classifier,
    with_new_head,
)
from shrink_utils.models.pooling import POOLINGS, pool
from shrink_utils.models.scratch import OBJECTIVES, Trunk, scratch_model, trunk_of
from shrink_utils.models.solu import SoLU
from shrink_utils.models.states import TokenStates, hidden_states, token_states
from shrink_utils.models.stitching import (
    Reading,
    Stitched,
    identity_stitches,
    read_layers,
    stitched,
    stitched_logits,
)
from shrink_utils.models.stitching_grid import MAPS, stitch_grid
from shrink_utils.models.stitching_maps import MapTraining
from shrink_utils.models.words import WordBatch, split_words, word_batches, word_states

__all__ = [
    "MAPS",
    "OBJECTIVES",
    "POOLINGS",
    "Encoder",
    "MapTraining",
    "Reading",
    "SoLU",
    "StateBatch",
    "Stitched",
    "TokenStates",
    "Trunk",
    "WordBatch",
    "entailment_output",
    "hidden_states",
    "identity_stitches",
    "load_classifier",
    "load_encoder",
    "new_pair_classifier",
    "pool",
    "quiet",
    "random_encoder",
    "read_layers",
    "save_classifier",
    "scratch_model",
    "split_words",
    "state_batches",
    "stitch_grid",
    "stitched",
    "stitched_logits",
    "token_states",
    "trunk_of",
    "with_new_head",
    "word_batches",
    "word_states",
]
