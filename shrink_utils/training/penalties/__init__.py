"""Penalties on anisotropy that know nothing of topology, behind `BarcodeRegularizer`'s interface.

``penalty(embeddings, labels).loss`` is added to the task loss: a term a class, summed. The arms of
the ablation so differ in what they reward, and in nothing else.
"""

from shrink_utils.training.penalties.average_cosine import AverageCosine
from shrink_utils.training.penalties.class_penalty import ClassPenalty, PenaltyOutput
from shrink_utils.training.penalties.isoscore_star import IsoScoreStar
from shrink_utils.training.penalties.spectral_entropy import SpectralEntropy

__all__ = ["AverageCosine", "ClassPenalty", "IsoScoreStar", "PenaltyOutput", "SpectralEntropy"]
