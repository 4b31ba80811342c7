"""The notebooks as readers open them: executed in order, whole, readable without running."""

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_every_cell_was_executed_in_order(notebook):
    counts = [cell.execution_count for cell in _code(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_checked_cells_print_text_and_nothing_else(notebook):
    for cell in _code(notebook):
        if "NBVAL_CHECK_OUTPUT" in cell.source:
            for output in cell.outputs:
                assert output.output_type in ("stream", "execute_result")
                assert output.get("name", "stdout") == "stdout"
                assert not any(kind.startswith("image/") for kind in output.get("data", {}))


def test_outputs_are_free_of_errors_warnings_progress_bars_and_places_of_the_machine(notebook):
    for output in (output for cell in _code(notebook) for output in cell.outputs):
        assert output.output_type != "error"
        assert output.get("name") != "stderr", output.text
        shown = [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
        for text in (output.get("text", ""), *shown):
            assert not re.search(r"Traceback|Warning:|it/s\]|\d+%\|", text)
            assert not re.search(r"/(home|root|tmp|Users|work)/", text)


def test_a_table_of_verdicts_has_one_in_every_row(notebook):
    for output in (output for cell in _code(notebook) for output in cell.outputs):
        html = output.get("data", {}).get("text/html", "")
        assert ">verdict<" not in html or ">NaN<" not in html


def test_every_figure_has_alt_text_and_a_caption(notebook):
    for cell in _code(notebook):
        for i, output in enumerate(cell.outputs):
            if "image/png" in output.get("data", {}):
                assert output.metadata["image/png"]["alt"].endswith(".")
                assert "**What to see.**" in cell.outputs[i + 1].data["text/markdown"]


NOT_LESSONS = {"hide-input", "parameters", "exercise-setup", "solution", "check"}


def test_a_chapter_has_six_figures_and_seventeen_lines_of_code_per_visible_cell_at_most(notebook):
    cells = _code(notebook)
    lessons = [c for c in cells if NOT_LESSONS.isdisjoint(c.metadata.get("tags", []))]
    assert max(sum(map(bool, cell.source.split("\n"))) for cell in lessons) <= 17
    shown = [output.get("data", {}) for cell in cells for output in cell.outputs]
    assert sum("image/png" in data for data in shown) <= 6


def test_stored_metadata_is_only_what_a_reader_needs(notebook):
    assert set(notebook.metadata) <= {"kernelspec", "language_info"}
    for cell in notebook.cells:
        # Drawings, appendices, and what gives an answer away.
        folded = not {"hide-input", "check"}.isdisjoint(cell.metadata.get("tags", []))
        assert folded == cell.metadata.get("jupyter", {}).get("source_hidden", False), cell.id
        appendix = {"jp-MarkdownHeadingCollapsed"} if cell.id == "appendix" else set()
        assert set(cell.metadata) <= {"tags"} | ({"jupyter"} if folded else appendix)
