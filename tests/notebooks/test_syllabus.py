"""The syllabus names what there is, chapters, figures and exercises; a session fits its time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SYLLABUS = (ROOT / "docs" / "syllabus.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"^## Session \d.*?(?=^## )", SYLLABUS, flags=re.MULTILINE | re.DOTALL)
ELECTIVES = re.search(r"^## Electives.*?(?=^## )", SYLLABUS, flags=re.MULTILINE | re.DOTALL)[0]
TABLES = [*SESSIONS, ELECTIVES]
ROWS = [re.findall(r"^\| (\d+) \| (.*?) \| (.*?) \|$", text, flags=re.M) for text in TABLES]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
CHAPTERS = {path.stem.split("_")[0]: path for path in NOTEBOOKS}


@pytest.mark.parametrize(
    "page", ["README.md", "docs/running.md", "docs/syllabus.md", "docs/cluster.md", "docs/plan.md"]
)
def test_every_link_of_a_page_resolves(page):
    path = ROOT / page
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8"))
    assert not [target for target in targets if not (path.parent / target).exists()]


def test_every_chapter_is_in_a_session_or_an_elective():
    for path in CHAPTERS.values():
        places = [*SESSIONS, ELECTIVES]
        assert any(f"../notebooks/{path.name}" in place for place in places), path.name


def test_every_figure_that_is_to_be_projected_is_made_by_the_chapter_it_is_named_with():
    named = 0
    for _, _, where in (row for rows in ROWS for row in rows):
        chapter = re.match(r"(\d\d[a-z]?)\b", where)
        for name in re.findall(r"\*(\w+)\*", where):
            source = CHAPTERS[chapter[1]].read_text(encoding="utf-8")
            assert re.search(rf'\\"{name}\\"', source), f"{chapter[1]} makes no figure {name}"
            named += 1
    assert named > 20


def test_the_minutes_of_a_session_add_up_to_ninety():
    assert [sum(int(minutes) for minutes, _, _ in rows) for rows in ROWS] == 5 * [90]
