"""A figure on a dark page: black and white change places, colours stay, lightened where needed."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection, QuadMesh
from matplotlib.colors import to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.typing import ColorType

BACKGROUND, INK = "#161616", "#ececec"
GREY = 0.04  # below this spread of red, green and blue, a colour is a grey
INSTEAD = {"#332288": "#8a6cff"}  # lightened, it would be too near to the blue of `PALETTE`
MARK, WRITING = 3.0, 4.5  # contrast that WCAG 2.2 asks of marks and of text


def contrast(one: ColorType, other: ColorType) -> float:
    """Contrast ratio of two opaque colours, 1 (none) to 21 (WCAG 2.2, "contrast ratio")."""
    lower, higher = sorted(_luminance(color) for color in (one, other))
    return (higher + 0.05) / (lower + 0.05)


def on_dark(color: ColorType, *, least: float = 0.0) -> tuple[float, float, float, float]:
    """The colour (red, green, blue, opacity) that replaces `color` on the dark background.

    Greys are turned around first, white into the background and black into `INK`. Then the colour
    is mixed with white until it has at least this contrast with the background; its opacity stays.
    """
    *rgb, opacity = to_rgba(color)
    rgb = np.array(to_rgb(INSTEAD.get(to_hex(rgb), rgb)))
    if np.ptp(rgb) < GREY:
        rgb = np.array(to_rgb(INK)) + rgb * (np.array(to_rgb(BACKGROUND)) - to_rgb(INK))
    while contrast(tuple(rgb), BACKGROUND) < least:
        rgb = rgb + 0.05 * (1 - rgb)
    return (*rgb.tolist(), opacity)


def darken(fig: Figure) -> None:
    """Recolour a finished figure in place; heatmaps and the writing on them stay as they are."""
    maps = {ax for ax in fig.axes if any(isinstance(c, QuadMesh) for c in ax.collections)}
    kept = {text for ax in maps for text in ax.texts}
    for artist in dict.fromkeys(fig.findobj()):  # some are found twice
        if artist not in kept:
            _recolour(artist)
    for ax in fig.axes:  # ticks that are made when it is drawn again
        ax.tick_params(which="both", color=INK, labelcolor=INK)


def _recolour(artist: Artist) -> None:
    if isinstance(artist, Text):
        artist.set_color(on_dark(artist.get_color(), least=WRITING))
        for part in (artist.get_bbox_patch(), getattr(artist, "arrow_patch", None)):
            if part is not None:
                _recolour(part)
    elif isinstance(artist, Line2D):
        markers = artist.get_markerfacecolor(), artist.get_markeredgecolor()
        artist.set_color(_mark(artist.get_color()))
        artist.set_markerfacecolor(_mark(markers[0]))
        artist.set_markeredgecolor(_mark(markers[1]))
    elif isinstance(artist, Patch):
        face, edge = artist.get_facecolor(), artist.get_edgecolor()
        artist.set_facecolor(_mark(face))
        artist.set_edgecolor(_mark(edge))
    elif isinstance(artist, Collection) and artist.get_array() is None:
        faces, edges = artist.get_facecolor(), artist.get_edgecolor()
        artist.set_facecolor([_mark(color) for color in faces])
        artist.set_edgecolor([_mark(color) for color in edges])


def _mark(color: ColorType) -> tuple[float, float, float, float]:
    """Greys may be faint, as they are on white (grid lines, bands); colours have to be seen."""
    rgb = to_rgba(color)[:3]
    return on_dark(color, least=0.0 if np.ptp(rgb) < GREY else MARK)


def _luminance(color: ColorType) -> float:
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))
