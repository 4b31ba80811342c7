"""Are two representations of the same things alike? Rows of `x` and `y` are the same samples.

Each measure is split in two: *prepare* does what needs one matrix (ranks, a decomposition, a norm)
and *compare* what needs both, so that a grid of layers prepares every layer once.
"""

from shrink_utils.geometry.similarity.cca import cca, pwcca, svcca
from shrink_utils.geometry.similarity.cka import cka, cka_distance, minibatch_cka
from shrink_utils.geometry.similarity.grid import similarity_grid
from shrink_utils.geometry.similarity.rsa import rsa

__all__ = [
    "cca",
    "cka",
    "cka_distance",
    "minibatch_cka",
    "pwcca",
    "rsa",
    "similarity_grid",
    "svcca",
]
