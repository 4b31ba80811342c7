"""What a figure leaves behind, and that its lines can be told apart."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from shrink_utils.study import figures
from shrink_utils.study.drawing import live
from shrink_utils.study.drawing.live import LiveCurves, run_curves
from shrink_utils.training import ARMS


@pytest.fixture(autouse=True)
def _style():
    figures.use_house_style()
    yield
    plt.close("all")


def test_show_saves_displays_with_alt_text_and_closes(finished, monkeypatch):
    shown = []
    monkeypatch.setattr(figures, "display", shown.append)
    fig, ax = plt.subplots()
    ax.plot([0, 1])
    figures.show(fig, "line", profile=finished, alt="A line.", caption="**See.** A line.")
    saved = (finished.folder / "figures" / "line.png").read_bytes()
    assert saved.startswith(b"\x89PNG")
    image, caption = shown
    assert image.alt == "A line." and image.data == saved
    assert caption.data == "**See.** A line."
    assert not plt.get_fignums()


def test_beside_the_picture_are_its_numbers_and_a_dark_one(finished, monkeypatch):
    monkeypatch.setattr(figures, "display", lambda shown: None)
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0.25, 1 / 3], label="mean")
    figures.show(fig, "both", profile=finished, alt="A line.", caption="")
    folder = finished.folder / "figures"
    table = pd.read_csv(folder / "both.csv")
    assert table.y.tolist() == [0.25, 0.333333333] and table.series.eq("mean").all()
    light, dark = (plt.imread(folder / f"both{kind}.png")[..., :3] for kind in ("", ".dark"))
    assert light.shape == dark.shape
    assert light[0, 0].min() == 1 and dark[0, 0].max() < 0.1


def test_each_page_is_drawn_once_with_everything_in_the_same_place(finished, monkeypatch):
    monkeypatch.setattr(figures, "display", lambda shown: None)
    drawn, draw = [], Figure.draw

    def counted(fig, renderer):
        draw(fig, renderer)
        drawn.append([ax.get_position().bounds for ax in fig.axes])

    fig, axes = plt.subplots(1, 2)
    axes[1].set_ylabel("a label that takes room")
    monkeypatch.setattr(Figure, "draw", counted)
    figures.show(fig, "twice", profile=finished, alt="Empty.", caption="")
    light, dark = drawn
    assert light == dark


def test_a_figure_that_cannot_be_written_whole_leaves_the_old_one(finished, monkeypatch):
    def fail(table, path, **options):
        path.write_text("panel,ti")
        raise OSError("No space left on device")

    monkeypatch.setattr(figures, "display", lambda shown: None)
    folder = finished.folder / "figures"
    for height in (1, 2):
        fig, ax = plt.subplots()
        ax.plot([0, height])
        if height == 1:
            figures.show(fig, "half", profile=finished, alt="A line.", caption="")
            old = {path.name: path.read_bytes() for path in folder.glob("half*")}
    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(OSError, match="No space"):
        figures.show(fig, "half", profile=finished, alt="A line.", caption="")
    assert {path.name: path.read_bytes() for path in folder.glob("half*")} == old


def test_a_figure_that_cannot_be_read_leaves_no_file(finished, monkeypatch):
    fig, ax = plt.subplots()
    ax.imshow([[0.0]])
    with pytest.raises(ValueError, match="no reader"):
        figures.show(fig, "image", profile=finished, alt="", caption="")
    assert not list((finished.folder / "figures").glob("image*"))


def test_the_same_figure_gives_the_same_bytes(finished, monkeypatch):
    monkeypatch.setattr(figures, "display", lambda shown: None)
    files = []
    for name in ("one", "two"):
        fig, ax = plt.subplots()
        ax.plot([0, 1, 4])
        figures.show(fig, name, profile=finished, alt="A curve.", caption="")
        files.append((finished.folder / "figures" / f"{name}.png").read_bytes())
    assert files[0] == files[1]


def test_every_arm_has_a_look_that_needs_no_colour():
    assert set(figures.ARM_STYLE) == set(ARMS)
    for key in ("color", "linestyle", "marker"):
        assert len({str(style[key]) for style in figures.ARM_STYLE.values()}) == len(ARMS)


def test_arm_colours_differ_in_grey():
    greys = sorted(
        float(np.dot(to_rgb(s["color"]), (0.299, 0.587, 0.114))) for s in figures.ARM_STYLE.values()
    )
    assert min(np.diff(greys)) > 0.03


def test_curves_draw_the_mean_over_seeds():
    frame = pd.DataFrame(
        [
            {"arm": "none", "seed": seed, "step": step, "x": step + seed}
            for seed in (0, 2)
            for step in (1, 2, 3)
        ]
    )
    _, ax = plt.subplots()
    figures.curves(ax, frame, "x", arms=["none"], label="x (m)")
    (line,) = ax.get_lines()
    assert line.get_ydata().tolist() == [2, 3, 4]
    assert ax.get_ylabel() == "x (m)"


def test_live_curves_redraw_one_display(tiny_runs, monkeypatch):
    updates = []

    class Handle:
        def update(self, fig):
            updates.append(fig)

    monkeypatch.setattr(live, "display", lambda fig, display_id: Handle())
    watch = LiveCurves("run", every=1)
    for row in tiny_runs[0].history.to_dict("records"):
        watch(row)
    assert len(updates) == len(tiny_runs[0].history) - 1
    assert not plt.get_fignums()


def test_run_curves_have_a_panel_for_each_quantity(tiny_runs):
    fig = run_curves(tiny_runs[0].history, title="run")
    assert [ax.get_title(loc="left") for ax in fig.axes] == list(live.PANELS)


def test_a_name_that_is_no_arm_is_named():
    frame = pd.DataFrame({"arm": ["none"], "seed": [0], "step": [1], "x": [1.0]})
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match="arms: no arm 'promnent', did you mean 'prominent'"):
        figures.curves(ax, frame, "x", arms=["none", "promnent"], label="x (m)")
