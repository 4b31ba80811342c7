"""Figures with controls: things to move for somebody who reads a notebook with a kernel."""

from shrink_utils.study.explore.complexes import CLOUDS, draw_complex, example_cloud
from shrink_utils.study.explore.filtration import filtration_explorer, filtration_stages
from shrink_utils.study.explore.layers import layer_explorer, layer_stages
from shrink_utils.study.explore.selection import (
    selection_explorer,
    selection_stages,
    selection_steps,
)
from shrink_utils.study.explore.words import draw_contexts, word_explorer

__all__ = [
    "CLOUDS",
    "draw_complex",
    "draw_contexts",
    "example_cloud",
    "filtration_explorer",
    "filtration_stages",
    "layer_explorer",
    "layer_stages",
    "selection_explorer",
    "selection_stages",
    "selection_steps",
    "word_explorer",
]
