"""Controls above a figure that is drawn anew when one of them changes, and a sheet for points."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from html import escape

import anywidget
import ipywidgets as widgets
import matplotlib.pyplot as plt
import torch
import traitlets
from matplotlib.figure import Figure
from torch import Tensor


class Explorer:
    """A figure with controls, for a notebook that somebody reads with a kernel.

    Parameters
    ----------
    controls : mapping of str to Widget
        Named as the parameters that their values are given as.
    draw : callable
        ``draw(**values)``: the figure. Its ``ValueError`` is shown in the figure's place.
    describe : callable
        ``describe(**values)``: what the figure shows, in a sentence; alt text and the line below.
    extra : Widget, optional
        Shown below the figure.
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
        self.picture = widgets.HTML()  # the figure as it is now, or what is wrong with the values
        row = widgets.HBox(list(self.controls.values()), layout={"flex_flow": "row wrap"})
        below = [self.picture] if extra is None else [self.picture, extra]
        self.widget = widgets.VBox([row, *below])  # what a notebook displays
        for control in self.controls.values():
            control.observe(self.redraw, "value")
        self.redraw()

    def redraw(self, change: object = None) -> None:
        """Draw the figure for the values that the controls have now."""
        values = {name: control.value for name, control in self.controls.items()}
        try:
            figure, said = self.draw(**values), self.describe(**values)
        except ValueError as problem:  # the reader typed or drew something that cannot be shown
            self.picture.value = f'<p role="status">{escape(str(problem))}</p>'
            return
        self.picture.value = _as_html(figure, said)


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


def _as_html(figure: Figure, said: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    plt.close(figure)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    fits = "max-width: 100%; height: auto"
    image = f'<img alt="{escape(said)}" style="{fits}" src="data:image/png;base64,{data}">'
    return f'{image}<p role="status">{escape(said)}</p>'


FEWEST = 2
MOST = 60  # points: more make the triangles slow to draw

# Coordinates of the sheet are those of the cloud: 10 by 6, y upwards; 40 pixels a unit.
CANVAS_SCRIPT = """
const UNIT = 40, WIDTH = 10, HEIGHT = 6, STEP = 0.25;

function render({ model, el }) {
  const sheet = document.createElement("canvas");
  sheet.width = WIDTH * UNIT;
  sheet.height = HEIGHT * UNIT;
  sheet.tabIndex = 0;
  sheet.setAttribute("role", "application");
  sheet.setAttribute("aria-label",
    "Sheet for points: click to set one; or move the cross with the arrow keys and press Enter");
  sheet.style.cssText = "border: 1px solid #595959; background: #fff; cursor: crosshair";
  const clear = document.createElement("button");
  clear.textContent = "Remove all points";
  clear.style.cssText = "display: block; margin: 4px 0";
  let cross = null;

  function draw() {
    const pen = sheet.getContext("2d");
    pen.clearRect(0, 0, sheet.width, sheet.height);
    for (const [x, y] of model.get("points")) {
      pen.beginPath();
      pen.arc(x * UNIT, (HEIGHT - y) * UNIT, 4, 0, 2 * Math.PI);
      pen.fill();
    }
    if (cross) pen.fillText("✛", cross[0] * UNIT - 4, (HEIGHT - cross[1]) * UNIT + 4);
  }
  function add(x, y) {
    model.set("points", [...model.get("points"), [x, y]]);
    model.save_changes();
  }
  sheet.addEventListener("click", (event) => {
    add(event.offsetX / UNIT, HEIGHT - event.offsetY / UNIT);
  });
  sheet.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.key === "Enter") add(...(cross ??= [WIDTH / 2, HEIGHT / 2]));
    else if (event.key in by) {
      const [x, y] = cross ?? [WIDTH / 2, HEIGHT / 2];
      const [right, up] = by[event.key];
      cross = [Math.min(WIDTH, Math.max(0, x + STEP * right)),
               Math.min(HEIGHT, Math.max(0, y + STEP * up))];
    } else return;
    event.preventDefault();
    event.stopPropagation();  // JupyterLab's own shortcuts
    draw();
  });
  clear.addEventListener("click", () => { model.set("points", []); model.save_changes(); });
  model.on("change:points", draw);
  el.append(sheet, clear);
  draw();
}
export default { render };
"""


class PointCanvas(anywidget.AnyWidget):
    """A sheet of 10 by 6 on which a reader sets points by mouse, finger or keyboard.

    An `anywidget`, because that is plain JavaScript in one string, which JupyterLab and VS Code
    load from the kernel. (ipympl would draw through matplotlib at every move of the mouse, and has
    no keyboard.)
    """

    _esm = CANVAS_SCRIPT
    points = traitlets.List(traitlets.List(traitlets.Float(), minlen=2, maxlen=2)).tag(sync=True)

    def cloud(self) -> Tensor:
        """The points in the order in which they were set, float64, shape (n, 2).

        Raises
        ------
        ValueError
            There are fewer than 2 points, or more than 60.
        """
        if not FEWEST <= len(self.points) <= MOST:
            raise ValueError(
                f"points: the sheet below has {len(self.points)}, expected {FEWEST} to {MOST}; "
                "click on it to set some, or choose another cloud"
            )
        return torch.tensor(self.points, dtype=torch.float64)
