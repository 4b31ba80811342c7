"""A sheet on which a reader sets points, by mouse, finger or keyboard.

An `anywidget` because that is plain JavaScript in one string, which JupyterLab and VS Code load
from the kernel: nothing to build, no other server. (ipympl would draw through matplotlib at every
move of the mouse, and has no keyboard.)
"""

from __future__ import annotations

import anywidget
import torch
import traitlets
from torch import Tensor

__all__ = ["PointCanvas"]

FEWEST = 2
MOST = 60  # points: more make the triangles slow to draw

# Coordinates of the sheet are those of the cloud: 10 by 6, y upwards; 40 pixels a unit.
SCRIPT = """
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
    """A sheet of 10 by 6 on which a click sets a point.

    Attributes
    ----------
    points : list of [x, y]
        In the order in which they were set.
    """

    _esm = SCRIPT
    points = traitlets.List(traitlets.List(traitlets.Float(), minlen=2, maxlen=2)).tag(sync=True)

    def cloud(self) -> Tensor:
        """The points, float64, shape (n, 2).

        Raises
        ------
        ValueError
            If there are fewer than 2 points, or more than 60.
        """
        if not FEWEST <= len(self.points) <= MOST:
            raise ValueError(
                f"points: the sheet below has {len(self.points)}, expected {FEWEST} to {MOST}; "
                "click on it to set some, or choose another cloud"
            )
        return torch.tensor(self.points, dtype=torch.float64)
