"""Encoders: load one, read its layers, pool its tokens: the list of `__init__.py`."""

from .encoders import (
    Encoder as Encoder,
    load_classifier as load_classifier,
    load_encoder as load_encoder,
    random_encoder as random_encoder,
    save_classifier as save_classifier,
)
from .states import (
    hidden_states as hidden_states,
    pool as pool,
    split_words as split_words,
    state_batches as state_batches,
    token_states as token_states,
    word_batches as word_batches,
    word_states as word_states,
)
from .stitching import (
    MapTraining as MapTraining,
    read_layers as read_layers,
    stitch_grid as stitch_grid,
    stitched as stitched,
    stitched_logits as stitched_logits,
)
