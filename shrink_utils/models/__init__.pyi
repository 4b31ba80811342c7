from .encoders import (
    Encoder,
    evaluating,
    load_classifier,
    load_encoder,
    quiet,
    random_encoder,
    save_classifier,
)
from .pooling import POOLINGS, pool
from .scratch import (
    OBJECTIVES,
    SoLU,
    Trunk,
    entailment_output,
    new_pair_classifier,
    scratch_model,
    trunk_of,
    with_new_head,
)
from .states import StateBatch, TokenStates, hidden_states, state_batches, token_states
from .stitching import (
    Reading,
    Stitched,
    identity_stitches,
    read_layers,
    stitched,
    stitched_logits,
)
from .stitching_maps import MAPS, MapTraining, stitch_grid
from .words import WordBatch, split_words, word_batches, word_states

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
    "evaluating",
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
