from ._loading import quiet
from .batches import StateBatch, state_batches
from .classifiers import load_classifier, save_classifier
from .encoders import Encoder, load_encoder, random_encoder
from .evaluation import evaluating
from .pair_classifier import (
    entailment_output,
    new_pair_classifier,
    with_new_head,
)
from .pooling import POOLINGS, pool
from .scratch import OBJECTIVES, Trunk, scratch_model, trunk_of
from .solu import SoLU
from .states import TokenStates, hidden_states, token_states
from .stitching import (
    Reading,
    Stitched,
    identity_stitches,
    read_layers,
    stitched,
    stitched_logits,
)
from .stitching_grid import MAPS, stitch_grid
from .stitching_maps import MapTraining
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
