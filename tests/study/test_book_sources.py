"""What Sphinx is given to build the book of, and that a faulty book replaces no good one."""

import subprocess

import nbformat
import pandas as pd
import pytest

from shrink_utils.names import WIDGET_VIEW
from shrink_utils.sources import data_dir, home
from shrink_utils.study import book
from shrink_utils.study.book import _build_book, _gather

CHAPTER = "04_barcodes.ipynb"


@pytest.fixture
def given(tmp_path):
    """A chapter as it is stored, with a widget and a drawing of a figure, and one that failed."""
    chapter = nbformat.read(home() / "notebooks" / CHAPTER, as_version=4)
    shown = [
        o for c in chapter.cells for o in c.get("outputs", []) if "image/png" in o.get("data", "")
    ]
    shown[0].data[WIDGET_VIEW] = {"model_id": "1"}
    shown[-1].metadata["image/png"]["figure"] = "curve"
    (folder := tmp_path / "executed").mkdir()
    nbformat.write(chapter, folder / CHAPTER)
    (folder / "05_second.failed.ipynb").write_text("{}")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "curve.svg").write_text("<svg/>")
    return folder, pd.read_csv(data_dir() / "reference" / "quick" / "claims.csv")


def test_the_sources_are_pages_notebooks_and_linked_files(given, tmp_path):
    _gather(*given, source := tmp_path / "source")
    found = {path.name for path in source.rglob("*") if path.is_file()}
    assert {"conf.py", "index.md", "findings.md", "headlines.md", "reference.rst"} <= found
    assert CHAPTER in found and "05_second.failed.ipynb" not in found
    cells = nbformat.read(source / "notebooks" / CHAPTER, as_version=4).cells
    assert not [cell.id for cell in cells if "](../docs/book/" in cell.source]
    outputs = [(c, o) for c in cells for o in c.get("outputs", []) if "data" in o]
    assert not [output for _, output in outputs if WIDGET_VIEW in output.data]
    images = [(c, o) for c, o in outputs if {"image/png", "image/svg+xml"} & {*o.data}]
    assert all(cell.metadata["mystnb"]["image"]["alt"] for cell, _ in images)
    assert [o.data["image/svg+xml"] for _, o in images if "image/svg+xml" in o.data] == ["<svg/>"]


@pytest.mark.parametrize("said", ["index.md:3: WARNING: no such page", "No module named sphinx"])
def test_a_faulty_book_leaves_the_last_good_one(given, tmp_path, monkeypatch, said):
    target = tmp_path / "out" / "book"
    target.mkdir(parents=True)
    (target / "index.html").write_text("good")
    failed = subprocess.CompletedProcess("", 1, "", said)
    monkeypatch.setattr(book.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RuntimeError, match=r"no such page|make book"):
        _build_book(*given, target, title="profile smoke")
    assert (target / "index.html").read_text() == "good"
