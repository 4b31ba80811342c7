"""Where the marks of a panel are: lines, bars, bands, cells and so on, in data coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import (
    Collection,
    LineCollection,
    PatchCollection,
    PathCollection,
    PolyCollection,
    QuadMesh,
)
from matplotlib.container import BarContainer, Container, ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, StepPatch
from matplotlib.quiver import Quiver
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

__all__ = ["Mark", "marks"]

Mark = tuple[Artist | Container, str, dict]  # what was drawn, its kind, columns of its places


def marks(ax: Axes) -> Iterator[Mark]:
    """Everything that is drawn in a panel to show data, in the order of its kinds.

    Yields
    ------
    artist : Artist or Container
    kind : str
        "line", "points", "segment", "bar", "band", "cell", "shape", "arrow" or "text".
    places : dict of str to array
        Columns as `figure_data` describes them.

    Raises
    ------
    ValueError
        A mark of a kind that has no reader in this module.
    """
    read: set[Artist] = set()
    for container in ax.containers:
        if isinstance(container, ErrorbarContainer):
            yield container, _line_or_points(container.lines[0]), _error_bars(container)
        else:
            yield container, "bar", _bars(container)
        read |= set(_members(container))
    on_heatmap = any(isinstance(artist, QuadMesh) for artist in ax.collections)
    texts = [] if on_heatmap else ax.texts  # there they repeat the values
    for artist in [*ax.lines, *ax.collections, *ax.patches, *ax.images, *texts]:
        if artist not in read and artist.get_visible():
            kind, reader = _reader(artist)
            yield artist, kind, _data_only(reader(artist), artist, ax)


def _reader(artist: Artist) -> tuple[str, Callable]:
    for kind_of_artist, (kind, reader) in READERS.items():
        if isinstance(artist, kind_of_artist):
            return (_line_or_points(artist) if kind == "line" else kind), reader
    name = type(artist).__name__
    raise ValueError(f"fig: no reader for {name}: add one to drawing.marks.READERS")


def _line_or_points(line: Line2D) -> str:
    return "points" if line.get_linestyle() in ("None", "none", "", " ") else "line"


def _members(container: Container) -> Iterator[Artist]:
    for child in container:
        yield from child if isinstance(child, tuple) else (child,)


def _data_only(places: dict, artist: Artist, ax: Axes) -> dict:
    """Leave out coordinates that are fractions of the panel: a line at y = 0 has no x."""
    if isinstance(artist, Collection):  # these keep places and transformation apart
        return places
    if isinstance(artist, Annotation):
        given = artist.xycoords
        inside = [name == "data" for name in (given if isinstance(given, tuple) else [given] * 2)]
    else:
        inside = artist.get_transform().contains_branch_seperately(ax.transData)
    outside = tuple(name for name, is_data in zip("xy", inside, strict=True) if not is_data)
    return {key: places[key] for key in places if not key.startswith(outside)}


def _error_bars(container: ErrorbarContainer) -> dict:
    line, _, bars = container.lines
    places = _line(line)
    axes = [axis for axis in "xy" if getattr(container, f"has_{axis}err")]
    for axis, collection in zip(axes, bars, strict=True):
        paths = collection.get_paths()
        ends = np.array([path.vertices[:, "xy".index(axis)] for path in paths]).reshape(-1, 2)
        places[f"{axis}_low"], places[f"{axis}_high"] = ends.min(axis=1), ends.max(axis=1)
    return places


def _bars(container: BarContainer) -> dict:
    boxes = [patch.get_bbox() for patch in container.patches]
    along = "x" if container.orientation == "horizontal" else "y"
    ends = [getattr(box, f"{along}1") for box in boxes]  # from its foot, which may be above it
    return _boxes(boxes) | {along: np.array(ends)}


def _boxes(boxes: list[Bbox]) -> dict:
    """Middle and edges."""
    low = np.array([box.min for box in boxes]).reshape(-1, 2).T
    high = np.array([box.max for box in boxes]).reshape(-1, 2).T
    (x, y), (x_low, y_low), (x_high, y_high) = (low + high) / 2, low, high
    return {"x": x, "y": y, "x_low": x_low, "x_high": x_high, "y_low": y_low, "y_high": y_high}


def _line(line: Line2D) -> dict:
    return {"x": line.get_xdata(orig=False), "y": line.get_ydata(orig=False)}


def _segments(lines: LineCollection) -> dict:
    """Straight pieces, each from (``x_low``, ``y_low``) to (``x_high``, ``y_high``)."""
    ends = [(segment[0], segment[-1]) for segment in lines.get_segments() if len(segment)]
    (x_low, y_low), (x_high, y_high) = np.array(ends).reshape(-1, 2, 2).transpose(1, 2, 0)
    return {"x_low": x_low, "x_high": x_high, "y_low": y_low, "y_high": y_high}


def _band(areas: PolyCollection) -> dict:
    corners = np.concatenate([np.empty((0, 2)), *(path.vertices for path in areas.get_paths())])
    ends = pd.DataFrame(corners, columns=["x", "y"]).groupby("x").y.agg(["min", "max"])
    return {"x": ends.index, "y_low": ends["min"].array, "y_high": ends["max"].array}


def _points(points: PathCollection) -> dict:
    x, y = np.asarray(points.get_offsets()).reshape(-1, 2).T
    value = points.get_array()
    return {"x": x, "y": y} | ({} if value is None else {"value": np.asarray(value)})


def _cells(mesh: QuadMesh) -> dict:
    corners = mesh.get_coordinates()  # (rows + 1, columns + 1, 2)
    x, y = (corners[:-1, :-1] + corners[1:, 1:]).transpose(2, 0, 1) / 2
    values = np.ma.filled(np.ma.asarray(mesh.get_array(), dtype=float), np.nan)
    return {"x": x.ravel(), "y": y.ravel(), "value": values.ravel()}


def _shapes(shapes: PatchCollection) -> dict:
    return _boxes([path.get_extents() for path in shapes.get_paths()])


def _shape(patch: Patch) -> dict:
    return _boxes([patch.get_path().transformed(patch.get_patch_transform()).get_extents()])


def _steps(stairs: StepPatch) -> dict:
    values, edges, _ = stairs.get_data()
    along, across = "xy" if stairs.orientation == "horizontal" else "yx"
    low, high = edges[:-1], edges[1:]
    return {along: values, across: (low + high) / 2, f"{across}_low": low, f"{across}_high": high}


def _arrows(arrows: Quiver) -> dict:
    return {
        "x": arrows.X,
        "y": arrows.Y,
        "x_high": arrows.X + arrows.U,
        "y_high": arrows.Y + arrows.V,
    }


def _text(text: Text) -> dict:
    x, y = getattr(text, "xy", text.get_position())
    return {"x": x, "y": y}


# The first that fits: subclasses stand before what they come from.
READERS: dict[type, tuple[str, Callable]] = {
    Line2D: ("line", _line),
    LineCollection: ("segment", _segments),
    Quiver: ("arrow", _arrows),
    PolyCollection: ("band", _band),
    PathCollection: ("points", _points),
    QuadMesh: ("cell", _cells),
    PatchCollection: ("shape", _shapes),
    StepPatch: ("bar", _steps),
    Patch: ("shape", _shape),
    Text: ("text", _text),
}
