"""What Sphinx is given to build the book of, and that a faulty book replaces no good one."""

import subprocess

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from shrink_utils.names import WIDGET_VIEW
from shrink_utils.study import book
from shrink_utils.study.book import _build_book, _gather


@pytest.fixture
def notebooks(tmp_path):
    """One executed notebook with a figure, and one that failed."""
    folder = tmp_path / "executed"
    folder.mkdir()
    shown = {"image/png": "aGk=", "text/plain": "x", WIDGET_VIEW: {"model_id": "1"}}
    meta = {"image/png": {"alt": "A long bar and two short ones.", "width": 640}}
    named = {"image/png": {"alt": "A curve that rises.", "width": 640, "figure": "curve"}}
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "curve.svg").write_text("<svg/>")
    cells = [
        new_markdown_cell("# 00 · First\n\n[code](../shrink_utils/sources.py) [lost](../no.py)"),
        new_markdown_cell("An [arm](../docs/book/glossary.md#arm)."),
        new_code_cell("1", outputs=[new_output("display_data", data=shown, metadata=meta)]),
        new_code_cell("2", outputs=[new_output("display_data", data=shown, metadata=named)]),
    ]
    nbformat.write(new_notebook(cells=cells), folder / "00_first.ipynb")
    (folder / "01_second.failed.ipynb").write_text("{}")
    return folder


@pytest.fixture
def claims():
    row = {"statement": "it, “falls”", "task": "", "arm": None, "source": "§4", "published": None}
    row |= {"estimate": -0.5, "low": -1.0, "high": 0.0, "n": 3, "unit": "seeds", "floor": None}
    row |= {"kind": "scaled test", "p": 0.2, "departures": "", "adjusted": "inconclusive"}
    verdicts = ("agrees", "inconclusive", "replicated")
    ids = ("stl:a", "stl:b", "v:c")
    rows = [
        {"claim": i, **row, "verdict": verdict} for i, verdict in zip(ids, verdicts, strict=True)
    ]
    return pd.DataFrame(rows)


def test_the_sources_are_pages_notebooks_and_linked_files(notebooks, claims, tmp_path):
    source = tmp_path / "source"
    _gather(notebooks, claims, source)
    found = {path.name for path in source.rglob("*") if path.is_file()}
    assert {"conf.py", "index.md", "findings.md", "headlines.md", "reference.rst"} <= found
    assert "00_first.ipynb" in found and "01_second.failed.ipynb" not in found
    assert (source / "shrink_utils" / "sources.py").is_file()
    assert not (source / "no.py").exists()
    _, link, picture, drawing = nbformat.read(
        source / "notebooks" / "00_first.ipynb", as_version=4
    ).cells
    assert link.source == "An [arm](../glossary.md#arm)." and "glossary.md" in found
    shown = {"alt": "A long bar and two short ones.", "width": "640px"}
    assert picture.metadata["mystnb"]["image"] == shown
    assert set(picture.outputs[0].data) == {"image/png", "text/plain"}  # the widget goes
    assert drawing.metadata["mystnb"]["image"]["alt"] == "A curve that rises."
    assert drawing.outputs[0].data == {"text/plain": "x", "image/svg+xml": "<svg/>"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("index.md:3: WARNING: no such page", "no such page"),
        ("python: No module named sphinx", "needs Sphinx: `make book` installs it"),
    ],
)
def test_a_faulty_book_leaves_the_last_good_one(
    notebooks, claims, tmp_path, monkeypatch, said, told
):
    target = tmp_path / "out" / "book"
    target.mkdir(parents=True)
    (target / "index.html").write_text("good")
    failed = subprocess.CompletedProcess("", 1, "", said)
    monkeypatch.setattr(book.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RuntimeError, match=told):
        _build_book(notebooks, claims, target, title="profile smoke")
    assert (target / "index.html").read_text() == "good"
