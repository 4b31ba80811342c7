"""What a figure shows, as a table read off its marks; and the same figure on a dark page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import (
    Collection,
    LineCollection,
    PatchCollection,
    PathCollection,
    PolyCollection,
    QuadMesh,
)
from matplotlib.colors import to_hex, to_rgb, to_rgba
from matplotlib.container import BarContainer, Container, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, StepPatch
from matplotlib.quiver import Quiver
from matplotlib.text import Annotation, Text
from matplotlib.ticker import LogFormatter, ScalarFormatter
from matplotlib.transforms import Bbox
from matplotlib.typing import ColorType

BACKGROUND, INK = "#161616", "#ececec"
GREY = 0.04  # below this spread of red, green and blue, a colour is a grey
INSTEAD = {"#332288": "#8a6cff"}  # lightened, it would be too near to the blue of arm prominent
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


PLACES = ["x", "y", "x_low", "x_high", "y_low", "y_high", "value"]
COLUMNS = ["panel", "title", "x_axis", "y_axis", "series", "kind", "mark", *PLACES]
COLUMNS += ["x_name", "y_name"]
Mark = tuple[Artist | Container, str, dict]  # what was drawn, its kind, columns of its places


def figure_data(fig: Figure) -> pd.DataFrame:
    """Every mark of a figure in the coordinates of its axes, one point (bar, cell) per row.

    Returns
    -------
    DataFrame
        With the columns of `COLUMNS`:

        - ``panel`` (from 1), its ``title``, and what its axes measure (``x_axis``, ``y_axis``);
        - ``series``: the mark's name in a legend, or that of the legend's entry that looks the
          same, else its ``gid``, else the entry of its colour; of a text, what it says; or empty;
        - ``kind``: "line", "points", "segment", "bar", "band", "cell" (of a heatmap), "shape",
          "arrow" or "text";
        - ``mark`` counts the marks of a panel, so that two nameless lines can be told apart;
        - ``x``, ``y``: where the point is. A line across the whole panel lacks one of them;
        - ``x_low``, ``x_high``, ``y_low``, ``y_high``: ends of an interval, a band or a segment,
          edges of a bar or a shape; of an arrow from (``x``, ``y``), the ``_high`` ones are its
          head before it was scaled;
        - ``value``: what a colour stands for;
        - ``x_name``, ``y_name``: the word that stands on the axis there.

    Raises
    ------
    ValueError
        A mark of a kind that has no reader in `READERS`.
    """
    names = _names_by_look(fig)
    panels = [ax for ax in fig.axes if ax.get_label() != "<colorbar>"]
    panels += [inset for ax in panels for inset in ax.child_axes]
    tables = [_panel(ax, number, names) for number, ax in enumerate(panels, start=1)]
    drawn = [table for table in tables if len(table)]
    return pd.concat(drawn, ignore_index=True) if drawn else pd.DataFrame(columns=COLUMNS)


def _panel(ax: Axes, number: int, names: dict) -> pd.DataFrame:
    parts = [_rows(mark, i, names) for i, mark in enumerate(_marks(ax), start=1)]
    parts = [part for part in parts if len(part)]  # a legend's entry can be a line without points
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)
    # Panels that share an axis share its label.
    xlabels = [one.get_xlabel() for one in [ax, *ax.get_shared_x_axes().get_siblings(ax)]]
    ylabels = [one.get_ylabel() for one in [ax, *ax.get_shared_y_axes().get_siblings(ax)]]
    return table.assign(
        panel=number,
        title=ax.get_title("left") or ax.get_title(),
        x_axis=next(filter(None, xlabels), ""),
        y_axis=next(filter(None, ylabels), ""),
        x_name=_words(ax.xaxis, table.x),
        y_name=_words(ax.yaxis, table.y),
    )


def _rows(mark: Mark, number: int, names: dict) -> pd.DataFrame:
    artist, kind, places = mark
    columns = {name: np.atleast_1d(np.asarray(p, dtype=float)) for name, p in places.items()}
    rows = pd.DataFrame(columns).assign(series=_series(artist, names), kind=kind, mark=number)
    return rows.head(1) if kind == "line" and len(places) == 1 else rows  # across the panel


def _series(artist: object, names: dict) -> str:
    if isinstance(artist, Text):
        return artist.get_text()
    own = str(artist.get_label() or "")
    if own and not own.startswith("_"):
        return own
    line = artist.lines[0] if isinstance(artist, ErrorbarContainer) else artist
    gid = line.get_gid() if hasattr(line, "get_gid") else None
    look = _look(line)
    return names.get(look) or gid or names.get(look[:1]) or ""


def _names_by_look(fig: Figure) -> dict[tuple, str]:
    """Names by colour, marker and line: the legend of one panel holds for all of them.

    Where one name alone has a colour, the colour is enough, but for greys, which mean many things.
    """
    named = [line for line in fig.findobj(Line2D) if not str(line.get_label()).startswith("_")]
    by_look = {_look(line): line.get_label() for line in reversed(named)}
    by_colour: dict[str, set[str]] = {}
    for (color, *_), name in by_look.items():
        by_colour.setdefault(color, set()).add(name)
    alone = {(c,): min(found) for c, found in by_colour.items() if len(found) == 1}
    return by_look | {color: name for color, name in alone.items() if np.ptp(to_rgb(*color)) > GREY}


def _look(artist: object) -> tuple:
    if isinstance(artist, Line2D):
        face = to_hex(artist.get_markerfacecolor(), keep_alpha=True)
        style = artist.get_marker(), str(artist.get_linestyle()), face
        return to_hex(artist.get_color()), *style
    colors = artist.get_facecolor() if isinstance(artist, PolyCollection) else []
    return (to_hex(colors[0]),) if len(colors) == 1 else ()


def _words(axis: Axis, at: pd.Series) -> list[str]:
    """The words on an axis at these places; empty where it has numbers, or no word is near."""
    formatter, ticks = axis.get_major_formatter(), np.asarray(axis.get_majorticklocs(), float)
    if isinstance(formatter, ScalarFormatter | LogFormatter) or not len(ticks):
        return [""] * len(at)
    words = formatter.format_ticks(ticks)
    reach = np.diff(np.sort(ticks)).min() / 2 if len(ticks) > 1 else 0.5
    distance = np.abs(ticks[:, None] - at.to_numpy(float)[None, :])  # (ticks, rows)
    distance[np.isnan(distance)] = np.inf
    near = distance.min(axis=0) < reach
    return [words[i] if close else "" for i, close in zip(distance.argmin(0), near, strict=True)]


def _marks(ax: Axes) -> Iterator[Mark]:
    """Everything that is drawn in a panel to show data, in the order of its kinds."""
    read: set[Artist] = set()
    for container in ax.containers:
        if isinstance(container, ErrorbarContainer):
            yield container, _line_or_points(container.lines[0]), _error_bars(container)
        else:
            yield container, "bar", _bars(container)
        for child in container:
            read.update(child if isinstance(child, tuple) else (child,))
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
    raise ValueError(f"fig: no reader for {name}: add one to drawing.READERS")


def _line_or_points(line: Line2D) -> str:
    return "points" if line.get_linestyle() in ("None", "none", "", " ") else "line"


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


def _shapes(shapes: PatchCollection | Patch) -> dict:
    if isinstance(shapes, Patch):
        paths = [shapes.get_path().transformed(shapes.get_patch_transform())]
    else:
        paths = shapes.get_paths()
    return _boxes([path.get_extents() for path in paths])


def _steps(stairs: StepPatch) -> dict:
    values, edges, _ = stairs.get_data()
    along, across = "xy" if stairs.orientation == "horizontal" else "yx"
    low, high = edges[:-1], edges[1:]
    return {along: values, across: (low + high) / 2, f"{across}_low": low, f"{across}_high": high}


def _arrows(arrows: Quiver) -> dict:
    x, y = arrows.X, arrows.Y
    return {"x": x, "y": y, "x_high": x + arrows.U, "y_high": y + arrows.V}


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
    Patch: ("shape", _shapes),
    Text: ("text", _text),
}
