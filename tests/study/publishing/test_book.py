"""What Sphinx is given to build the book of, and that a faulty book replaces no good one."""

import subprocess

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from shrink_utils.study.figures import WIDGET_VIEW
from shrink_utils.study.publishing import book
from shrink_utils.study.publishing.book import build_book, gather


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
        new_markdown_cell("# 00 · First\n\n[code](../shrink_utils/paths.py) [lost](../nothing.py)"),
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


def test_the_sources_are_pages_notebooks_claims_and_linked_files(notebooks, claims, tmp_path):
    gather(notebooks, claims, tmp_path / "source")
    found = {path.name for path in (tmp_path / "source").rglob("*") if path.is_file()}
    assert {"conf.py", "index.md", "reference.rst", "claims.md", "plan.md"} <= found
    assert "00_first.ipynb" in found and "01_second.failed.ipynb" not in found
    assert (tmp_path / "source" / "shrink_utils" / "paths.py").is_file()
    assert not (tmp_path / "source" / "nothing.py").exists()


def test_a_link_to_the_glossary_holds_in_the_repository_and_in_the_book(
    notebooks, claims, tmp_path
):
    gather(notebooks, claims, tmp_path / "source")
    notebook = nbformat.read(tmp_path / "source" / "notebooks" / "00_first.ipynb", as_version=4)
    assert notebook.cells[1].source == "An [arm](../glossary.md#arm)."
    assert (tmp_path / "source" / "glossary.md").is_file()


def test_a_figure_keeps_its_alt_text_and_a_widget_goes(notebooks, claims, tmp_path):
    gather(notebooks, claims, tmp_path / "source")
    notebook = nbformat.read(tmp_path / "source" / "notebooks" / "00_first.ipynb", as_version=4)
    cell, _ = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = {"alt": "A long bar and two short ones.", "width": "640px"}
    assert cell.metadata["mystnb"]["image"] == shown
    assert set(cell.outputs[0].data) == {"image/png", "text/plain"}


def test_without_the_drawing_the_picture_stays(notebooks, claims, tmp_path):
    (tmp_path / "figures" / "curve.svg").unlink()
    gather(notebooks, claims, tmp_path / "source")
    notebook = nbformat.read(tmp_path / "source" / "notebooks" / "00_first.ipynb", as_version=4)
    _, cell = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert set(cell.outputs[0].data) == {"image/png", "text/plain"}


def test_a_saved_figure_is_shown_as_its_drawing(notebooks, claims, tmp_path):
    gather(notebooks, claims, tmp_path / "source")
    notebook = nbformat.read(tmp_path / "source" / "notebooks" / "00_first.ipynb", as_version=4)
    _, cell = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cell.metadata["mystnb"]["image"]["alt"] == "A curve that rises."
    assert cell.outputs[0].data == {"text/plain": "x", "image/svg+xml": "<svg/>"}


def test_the_page_of_claims_begins_with_the_hypotheses_and_the_papers_own_tasks(
    notebooks, claims, tmp_path
):
    gather(notebooks, claims, tmp_path / "source")
    page = (tmp_path / "source" / "claims.md").read_text(encoding="utf-8")
    first, *sections = page.split("\n## ")
    assert [section.splitlines()[0].split(" (")[0] for section in sections] == [
        "The twelve hypotheses",
        "Two decision rules, each family under both",
        "What each paper claims, sentence by sentence, and the rows that answer",
        "The tasks of *Shrink the longest*: MRPC and CoLA",
        "Shrink the longest",
        "Contextuality and training",
        "At full length: twenty seeds",
    ]
    # Its verdicts are one inconclusive and one that agrees, which does not survive the adjustment.
    assert "claims of,agrees,inconclusive,disagrees" in first
    assert "\nShrink the longest (Kudriashov et al. 2025),0,2,0," in first
    assert 'rises,"stl:metric-rises, stl:metric-rises-best"' in sections[2]
    assert "no row, because" in sections[2]
    assert sections[4].count("[-1.000,\N{NO-BREAK SPACE}0.000]") == 2
    assert "supported" in sections[0] and "mrpc" in sections[1] and "mrpc" in sections[3]
    # What book.js makes searchable and sortable: one table of this class per section, few columns.
    assert [section.count(":class: claims\n") for section in sections] == [1] * 7
    for section in sections[3:]:
        header = section.split("\n\n")[2].splitlines()[0]
        assert header.startswith("claim,verdict,ours [95 % interval],") and header.count(",") <= 4


def test_the_front_page_has_findings_a_figure_and_at_most_fifteen_rows(notebooks, claims, tmp_path):
    source = tmp_path / "source"
    gather(notebooks, claims, source)
    front = (source / "index.md").read_text(encoding="utf-8")
    for name in ("findings.md", "headlines.md"):
        assert f"{{include}} {name}" in front and (source / name).is_file()
    assert (source / "data" / "reference" / "quick" / "full_long_runs.png").is_file()
    assert len((source / "headlines.md").read_text(encoding="utf-8").splitlines()) <= 15 + 5
    assert len((source / "findings.md").read_text(encoding="utf-8").splitlines()) == 3


def test_no_notebook_is_an_error_that_says_what_to_do(claims, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"notebooks: none in .*make reproduce"):
        gather(tmp_path / "empty", claims, tmp_path / "source")


def test_a_faulty_book_leaves_the_last_good_one(notebooks, claims, tmp_path, monkeypatch):
    target = tmp_path / "out" / "book"
    target.mkdir(parents=True)
    (target / "index.html").write_text("good")

    def faulty(command, **options):
        return subprocess.CompletedProcess(command, 1, "", "index.md:3: WARNING: no such page")

    monkeypatch.setattr(book.subprocess, "run", faulty)
    with pytest.raises(RuntimeError, match="no such page"):
        build_book(notebooks, claims, target, title="profile smoke")
    assert (target / "index.html").read_text() == "good"


def test_without_sphinx_the_error_says_how_to_get_it(notebooks, claims, tmp_path, monkeypatch):
    def missing(command, **options):
        return subprocess.CompletedProcess(command, 1, "", "python: No module named sphinx")

    monkeypatch.setattr(book.subprocess, "run", missing)
    with pytest.raises(RuntimeError, match="needs Sphinx: `make book` installs it"):
        build_book(notebooks, claims, tmp_path / "book", title="profile smoke")
