"""Encoders: load one, read its layers, pool its tokens."""

from shrink_utils.models.encoders import (
    PINNED as PINNED,
    Encoder as Encoder,
    evaluating as evaluating,
    load_classifier as load_classifier,
    load_encoder as load_encoder,
    random_encoder as random_encoder,
    save_classifier as save_classifier,
)
from shrink_utils.models.scratch import (
    OBJECTIVES as OBJECTIVES,
    SoLU as SoLU,
    Trunk as Trunk,
    new_pair_classifier as new_pair_classifier,
    scratch_model as scratch_model,
    with_new_head as with_new_head,
)
from shrink_utils.models.states import (
    StateBatch as StateBatch,
    TokenStates as TokenStates,
    hidden_states as hidden_states,
    pool as pool,
    state_batches as state_batches,
    token_states as token_states,
)
from shrink_utils.models.stitching import (
    MapTraining as MapTraining,
    Activations as Activations,
    Stitched as Stitched,
    read_layers as read_layers,
    stitch_grid as stitch_grid,
    stitched as stitched,
    stitched_logits as stitched_logits,
)
from shrink_utils.models.words import (
    WordBatch as WordBatch,
    split_words as split_words,
    word_batches as word_batches,
    word_states as word_states,
)
from shrink_utils.names import POOLINGS as POOLINGS
