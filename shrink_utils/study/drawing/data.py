"""What a figure shows, as a table read off its marks: picture and numbers cannot differ."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter, ScalarFormatter

from shrink_utils.study.drawing.dark import GREY
from shrink_utils.study.drawing.marks import Mark, marks

__all__ = ["COLUMNS", "figure_data"]

PLACES = ["x", "y", "x_low", "x_high", "y_low", "y_high", "value"]
COLUMNS = ["panel", "title", "x_axis", "y_axis", "series", "kind", "mark", *PLACES]
COLUMNS += ["x_name", "y_name"]


def figure_data(fig: Figure) -> pd.DataFrame:
    """Every mark of a figure in the coordinates of its axes, one point (bar, cell) a row.

    Parameters
    ----------
    fig : Figure

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
        A mark of a kind that `marks` cannot read.
    """
    names = _names_by_look(fig)
    panels = [ax for ax in fig.axes if ax.get_label() != "<colorbar>"]
    panels += [inset for ax in panels for inset in ax.child_axes]
    tables = [_panel(ax, number, names) for number, ax in enumerate(panels, start=1)]
    drawn = [table for table in tables if len(table)]
    return pd.concat(drawn, ignore_index=True) if drawn else pd.DataFrame(columns=COLUMNS)


def _panel(ax: Axes, number: int, names: dict) -> pd.DataFrame:
    parts = [_rows(mark, i, names) for i, mark in enumerate(marks(ax), start=1)]
    parts = [part for part in parts if len(part)]  # a legend's entry can be a line without points
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)
    across, along = ax.get_shared_x_axes(), ax.get_shared_y_axes()
    return table.assign(
        panel=number,
        title=ax.get_title("left") or ax.get_title(),
        x_axis=_label([one.get_xlabel() for one in [ax, *across.get_siblings(ax)]]),
        y_axis=_label([one.get_ylabel() for one in [ax, *along.get_siblings(ax)]]),
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
    """A legend stands in one panel and holds for all: names by colour, marker and line.

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


def _label(labels: list[str]) -> str:
    """An axis's own label, or that of a panel which shares the axis."""
    return next(filter(None, labels), "")


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
