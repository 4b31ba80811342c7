"""One-pass forms of the measures: torchmetrics metrics whose states merge without loss.

Each gives what the function of the same name gives for all rows at once, to about 1e-10 relative,
however the rows are split into batches, dealt to workers and merged. Their states are float64 and
of one size for any number of rows. The functions return Python values of small samples at once;
these take ``update`` batch after batch, merge by ``merge_state`` and over torch.distributed, and
answer ``compute``.
"""

from shrink_utils.geometry.groups import Groups, Occurrences
from shrink_utils.geometry.streaming.base import UnitRows
from shrink_utils.geometry.streaming.cka import CKA, LayerCKA
from shrink_utils.geometry.streaming.cosine import AvgSim, RogueDimensions, SelfSim
from shrink_utils.geometry.streaming.spectrum import EffectiveRank, IsoScore, Spectrum

__all__ = [
    "CKA",
    "AvgSim",
    "EffectiveRank",
    "Groups",
    "IsoScore",
    "LayerCKA",
    "Occurrences",
    "RogueDimensions",
    "SelfSim",
    "Spectrum",
    "UnitRows",
]
