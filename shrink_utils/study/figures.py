"""The house style of the figures, and how a notebook shows one: captioned, or below controls."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import ipywidgets as widgets
import matplotlib.pyplot as plt
import pandas as pd
import PIL.Image
import seaborn as sns
from IPython.display import HTML, Image, Markdown, display
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from shrink_utils.names import WIDGET_VIEW
from shrink_utils.study.results import atomic_write

if TYPE_CHECKING:
    from torch import Tensor

SHARP = 200  # pixels per inch of a saved figure; a notebook shows two of them as one
MANY = 1000  # points of a figure; so many are pictures inside an SVG, else large and slow

# Lines that are no arms (encoders, measures, layers, kinds of null): muted colours, since bright
# ones belong to arms. Black is the encoder as it is; the last one marks what a figure points at.
PALETTE = ["#000000", "#905020", "#999933", "#607080", "#d0a090", "#405030", "#4aa3d9"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
LINESTYLES = ["-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1))]


def _style(color: str, linestyle: object, marker: str) -> dict:
    return {"color": color, "linestyle": linestyle, "marker": marker}


# An arm keeps its look in every figure: colours of Okabe & Ito 2008, told apart under every common
# colour blindness; the last three are from Tol's muted scheme, far from the others in lightness.
ARM_STYLE = {
    "none": _style("#000000", LINESTYLES[0], MARKERS[0]),
    "prominent": _style("#0072B2", LINESTYLES[1], MARKERS[1]),
    "published": _style("#D55E00", LINESTYLES[2], MARKERS[2]),
    "all": _style("#009E73", LINESTYLES[3], MARKERS[3]),
    "random": _style("#E69F00", LINESTYLES[4], MARKERS[4]),
    "cosine": _style("#CC79A7", LINESTYLES[5], MARKERS[5]),
    "isoscore": _style("#332288", (0, (14, 1.5)), MARKERS[6]),
    "spectral": _style("#882255", (0, (8, 2)), "*"),
    "sigreg": _style("#88CCEE", (0, (2, 1, 1, 1)), "<"),
}

# What legends call an arm: its name is the argument's.
CONDITIONS = {
    "none": "plain", "prominent": "selected bars", "published": "paper's code", "all": "all bars",
    "random": "random bars", "cosine": "cosine", "isoscore": "IsoScore★", "spectral": "spectral",
    "sigreg": "SIGReg",
}  # fmt: skip

# Classes have two greys and two markers.
CLASS_GREYS, CLASS_MARKERS = ("0.15", "0.6"), ("o", "^")

SHUFFLED = {"color": "0.5", "linestyle": ":", "marker": "x"}  # rows dealt at random


def look(i: int) -> dict:
    """Colour, marker and line style of the i-th line of a figure, from 0."""
    return _style(PALETTE[i % 7], LINESTYLES[i % 7], MARKERS[i % 7])


def looks_of(names: Iterable[str]) -> dict[str, dict]:
    """A colour, a marker and a line style of the house per name, as options of ``Axes.plot``."""
    return {name: look(i) for i, name in enumerate(names)}


def legend_below(fig: Figure, ax: Axes, columns: int) -> None:
    """One legend for all axes, with the labels of `ax`."""
    handles = ax.get_legend_handles_labels()
    fig.legend(*handles, loc="outside lower center", ncols=columns, fontsize="small")


def heatmap(ax: Axes, grid: pd.DataFrame, **options: object) -> None:
    """Cells of a table, coloured from 0 to 1 and annotated with two decimals, without labels."""
    said = grid.round(2) + 0.0  # no -0.00; a cell without a value stays empty
    look = {"cmap": "cividis", "vmin": 0, "vmax": 1, "annot": said, "fmt": ".2f", "cbar": False}
    sns.heatmap(grid, ax=ax, **{**look, **options})
    ax.tick_params(axis="y", rotation=0)
    ax.set(xlabel="", ylabel="")


def bars_only(ax: Axes) -> None:
    """Take the vertical axis away, where bars are counted and not placed."""
    ax.set(yticks=[])
    ax.spines["left"].set_visible(False)


def draw_classes(ax: Axes, x: Tensor, labels: Tensor, **look: object) -> None:
    """Points (n, 2) of the classes 0 and 1: two markers and two greys."""
    for label in (0, 1):
        style = dict(color=CLASS_GREYS[label], markersize=4, **look)
        ax.plot(*x[labels == label].T, CLASS_MARKERS[label], **style)


class _Study(Protocol):
    """Whose results have a folder: a profile."""

    folder: Path


def use_house_style() -> None:
    """Set seaborn and matplotlib to the study's look, whatever a user's matplotlibrc says."""
    plt.rcdefaults()
    sns.set_theme(
        context="notebook",
        style="ticks",
        palette=PALETTE,
        rc={
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "axes.titlelocation": "left",
            "figure.dpi": 100,
            "savefig.dpi": 100,
            "figure.constrained_layout.use": True,
            "font.family": ["DejaVu Sans"],  # ships with matplotlib: equal on every machine
            "legend.frameon": False,
        },
    )


def show(
    fig: Figure,
    name: str,
    *,
    profile: _Study,
    alt: str,
    caption: str,
    title: str | None = None,
    widget: widgets.DOMWidget | None = None,
) -> None:
    """Save a figure, display it with alt text and caption, and close it.

    The profile's ``figures`` folder gets ``<name>.png`` and ``<name>.svg``, which the book shows.

    Parameters
    ----------
    alt : str
        One sentence for somebody who cannot see the figure.
    caption : str
        Markdown that says what to see.
    title : str, optional
        The finding in a few words, above all panels.
    widget : widgets.DOMWidget, optional
        Shown in the figure's place by a notebook that has a kernel.
    """
    if title is not None:
        fig.suptitle(title, x=0.01, ha="left", fontsize="large")
    png = _png(fig)
    fig.set_layout_engine("none")  # everything has its place
    svg = _svg(fig)
    plt.close(fig)
    for ending, content in ((".png", png), (".svg", svg)):
        with atomic_write(profile.folder / "figures" / f"{name}{ending}") as part:
            part.write_bytes(content)
    if widget is None:
        display(Image(png, format="png", alt=alt, retina=True, metadata={"figure": name}))
    else:
        shown, metadata = _with_fallback(widget, png, alt=alt)
        metadata["image/png"]["figure"] = name
        display(shown, metadata=metadata, raw=True)
    display(Markdown(caption))


def show_table(table: pd.DataFrame) -> None:
    """Display a table of sentences: every row, nothing cut off, words from the left, no index."""
    with pd.option_context("display.max_colwidth", None):
        html = table.to_html(index=False)
    display(HTML(re.sub("<(td|th)>", r'<\1 style="text-align: left">', html)))


def _with_fallback(widget: widgets.DOMWidget, png: bytes, *, alt: str) -> tuple[dict, dict]:
    """Data and metadata that IPython's `display(…, raw=True)` takes to show widget or picture.

    A frontend shows the richest kind that it knows: JupyterLab the widget; GitHub, the book and a
    notebook whose kernel has ended the picture.
    """
    data = {
        WIDGET_VIEW: {"version_major": 2, "version_minor": 0, "model_id": widget.model_id},
        "image/png": base64.b64encode(png).decode("ascii"),
        "text/plain": alt,
    }
    width, height = PIL.Image.open(io.BytesIO(png)).size
    return data, {"image/png": {"alt": alt, "width": width // 2, "height": height // 2}}


def _png(fig: Figure) -> bytes:
    """Two pixels for each of a page, in 256 colours: sharp, and a third of the size.

    Drawn once: `Figure.savefig` draws twice where there is a layout, to try it and to print.
    """
    fig.set_dpi(SHARP)
    drawn, kept = io.BytesIO(), io.BytesIO()
    FigureCanvasAgg(fig).print_png(drawn)
    # Without a step of k-means the dark quarter of a heatmap would be one colour.
    image = PIL.Image.open(drawn).convert("RGB")
    colours = image.quantize(256, kmeans=1, dither=PIL.Image.Dither.NONE)
    colours.save(kept, "png", optimize=True)
    return kept.getvalue()


def _svg(fig: Figure) -> bytes:
    """The same bytes every time; letters are shapes, equal on every machine."""
    clouds = fig.findobj(PathCollection)
    many = sum(len(points.get_offsets()) for points in clouds) > MANY
    for points in clouds:
        points.set_rasterized(many)
    drawn = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "shrink", "svg.fonttype": "path"}):
        FigureCanvasSVG(fig).print_svg(drawn, metadata={"Date": None})
    return drawn.getvalue()


# --- controls above a figure that is drawn anew when one of them changes --------------------------


def interactive_figure(
    controls: Mapping[str, widgets.ValueWidget],
    draw: Callable[..., Figure],
    describe: Callable[..., str],
) -> widgets.VBox:
    """A figure below its controls, for a notebook that somebody reads with a kernel.

    Parameters
    ----------
    controls : mapping of str to Widget
        Named as the parameters that their values are given as.
    draw : callable
        ``draw(**values)``: the figure. Its ``ValueError`` is shown in the figure's place.
    describe : callable
        ``describe(**values)``: what the figure shows, in a sentence; alt text and the line below.

    Returns
    -------
    VBox
        The row of controls, and the picture: the figure as it is now, or what is wrong with the
        values.
    """
    picture = widgets.HTML()

    def redraw(change: object = None) -> None:
        values = {name: control.value for name, control in controls.items()}
        image, buffer = "", io.BytesIO()
        try:
            figure, said = draw(**values), escape(describe(**values))
        except ValueError as problem:  # the reader typed something that cannot be shown
            said = escape(str(problem))
        else:
            figure.savefig(buffer, format="png")
            plt.close(figure)
            data = base64.b64encode(buffer.getvalue()).decode("ascii")
            fits = "max-width: 100%; height: auto"
            image = f'<img alt="{said}" style="{fits}" src="data:image/png;base64,{data}">'
        picture.value = f'{image}<p role="status">{said}</p>'

    for control in controls.values():
        control.observe(redraw, "value")
    redraw()
    row = widgets.HBox(list(controls.values()), layout={"flex_flow": "row wrap"})
    return widgets.VBox([row, picture])


def slider(values: list[float], *, name: str, start: int = 0) -> widgets.SelectionSlider:
    """A slider over ascending values, shown with two decimals or as whole numbers.

    `name` stands beside it, and a screen reader says it; `start` is the index of the first value.
    """
    whole = all(float(value).is_integer() for value in values)
    options = [(f"{value:.0f}" if whole else f"{value:.2f}", value) for value in values]
    return widgets.SelectionSlider(
        options=options,
        index=start,
        description=name,
        continuous_update=False,  # a figure takes longer than a mouse moves
        style={"description_width": "initial"},
        layout={"width": "32em"},
    )
