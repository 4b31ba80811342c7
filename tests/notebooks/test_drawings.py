"""The drawings of ideas: what the script beside them draws, and shown by a chapter."""

import importlib.util
import re
from pathlib import Path

import nbformat
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "book" / "drawings"
spec = importlib.util.spec_from_file_location("draw", FOLDER / "draw.py")
draw = importlib.util.module_from_spec(spec)
spec.loader.exec_module(draw)


def test_a_drawing_is_what_its_script_draws_and_one_chapter_shows_it():
    chapters = [p.read_text(encoding="utf-8") for p in (ROOT / "notebooks").glob("[0-9]*.ipynb")]
    for name, drawing in draw.drawings().items():
        assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == drawing
        assert sum(f".](../docs/book/drawings/{name}.svg)" in text for text in chapters) == 1, name
    assert draw.TALL.read_text(encoding="utf-8") == draw.three_clouds_tall()[1]


def test_the_shares_written_into_the_picture_are_said_to_readers_who_cannot_see_it():
    shares = [f"{share:.0%}".replace("%", " %") for share, _ in draw.points_of_clouds().values()]
    for page in ("README.md", "docs/book/index.md", "notebooks/00_setup_and_data.ipynb"):
        text = (ROOT / page).read_text(encoding="utf-8")
        before, plain, regularized = shares
        assert re.search(rf"(?s)\b{before}.*\b{plain}.*\b{regularized}", text), page


def test_the_points_of_the_picture_belong_to_the_shares_beside_them():
    shares = {}
    for name, (share, points) in draw.points_of_clouds().items():
        along, across = (sum(point[k] ** 2 for point in points) for k in (1, 2))
        assert along / (along + across) > share  # the other directions hold the rest
        assert len(points) == 599 and abs(sum(x for _, x, _ in points)) < 0.01 * 599
        shares[name] = share
    assert shares["before"] < shares["prominent"] < shares["none"]


def test_the_six_words_of_02_are_drawn_where_its_cell_puts_them():
    chapter = ROOT / "notebooks" / "02_contextuality.ipynb"
    cells = {cell.id: cell.source for cell in nbformat.read(chapter, as_version=4).cells}
    exec(cells["toy-rows"], names := {"np": np})
    places = zip(names["word"], names["sentence"], names["rows"].tolist(), strict=True)
    assert {(str(w), int(s)): tuple(place) for w, s, place in places} == draw.WORDS
