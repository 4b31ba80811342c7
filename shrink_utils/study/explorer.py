"""Controls above a figure that is drawn anew when one of them changes."""

import base64
import io
from collections.abc import Callable, Mapping
from html import escape

import ipywidgets as widgets
import matplotlib.pyplot as plt
from matplotlib.figure import Figure


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
