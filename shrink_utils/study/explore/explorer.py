"""Controls above a figure that is drawn anew whenever one of them changes."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from html import escape

import ipywidgets as widgets
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

__all__ = ["Explorer", "slider"]


class Explorer:
    """A figure with controls, for a notebook that somebody reads with a kernel.

    Parameters
    ----------
    controls : mapping of str to Widget
        By the name of the parameter that their value is given as.
    draw : callable
        ``draw(**values)``: the figure. A ``ValueError`` of it is shown in the figure's place.
    describe : callable
        ``describe(**values)``: what the figure shows, in a sentence; alt text and the line below.
    extra : Widget, optional
        Shown below the figure.

    Attributes
    ----------
    widget : VBox
        What a notebook displays.
    picture : HTML
        The figure as it is now, or what is wrong with the values.
    """

    def __init__(
        self,
        controls: Mapping[str, widgets.ValueWidget],
        draw: Callable[..., Figure],
        describe: Callable[..., str],
        *,
        extra: widgets.Widget | None = None,
    ) -> None:
        self.controls = dict(controls)
        self.draw = draw
        self.describe = describe
        self.picture = widgets.HTML()
        row = widgets.HBox(list(self.controls.values()), layout={"flex_flow": "row wrap"})
        below = [self.picture] if extra is None else [self.picture, extra]
        self.widget = widgets.VBox([row, *below])
        for control in self.controls.values():
            control.observe(self.redraw, "value")
        self.redraw()

    def redraw(self, change: object = None) -> None:
        """Draw the figure for the values that the controls have now."""
        values = {name: control.value for name, control in self.controls.items()}
        try:
            figure, said = self.draw(**values), self.describe(**values)
        except ValueError as problem:  # of what was typed or drawn: said, and nothing else lost
            self.picture.value = f'<p role="status">{escape(str(problem))}</p>'
            return
        self.picture.value = _as_html(figure, said)


def slider(values: list[float], *, name: str, start: int = 0) -> widgets.SelectionSlider:
    """A slider over values as they are read: two decimals, or whole numbers.

    Parameters
    ----------
    values : list of float
        Ascending.
    name : str
        What stands beside it, and what a screen reader says.
    start : int
        Index of the first value.
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


def _as_html(figure: Figure, said: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    plt.close(figure)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    fits = "max-width: 100%; height: auto"
    image = f'<img alt="{escape(said)}" style="{fits}" src="data:image/png;base64,{data}">'
    return f'{image}<p role="status">{escape(said)}</p>'
