"""The drawings of ideas: what the script beside them draws, and shown by a chapter."""

import importlib.util
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "book" / "drawings"
spec = importlib.util.spec_from_file_location("draw", FOLDER / "draw.py")
draw = importlib.util.module_from_spec(spec)
spec.loader.exec_module(draw)


@pytest.mark.parametrize("name", draw.drawings())
def test_a_drawing_is_what_its_script_draws(name):
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == draw.drawings()[name]


def test_the_phone_s_picture_is_the_front_page_s():
    kept = Image.open(draw.TALL)
    assert kept.size == draw.three_clouds_tall().size
    assert kept.tobytes() == draw.three_clouds_tall().tobytes()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.[sp][vn]g")), ids=lambda path: path.stem)
def test_a_chapter_shows_the_drawing_with_words_for_readers_who_cannot_see_it(path):
    chapters = [p.read_text(encoding="utf-8") for p in (ROOT / "notebooks").glob("[0-9]*.ipynb")]
    shown = [text for text in chapters if f".](../docs/book/drawings/{path.name})" in text]
    assert len(shown) == 1
