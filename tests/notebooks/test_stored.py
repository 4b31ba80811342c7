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


def test_every_figure_has_alt_text_and_a_caption(notebook):
    for cell in _code(notebook):
        for i, output in enumerate(cell.outputs):
            if "image/png" in output.get("data", {}):
                assert output.metadata["image/png"]["alt"].endswith(".")
                assert "**What to see.**" in cell.outputs[i + 1].data["text/markdown"]


NOT_LESSONS = {"hide-input", "parameters", "exercise-setup", "solution", "check"}
DRAWS = re.compile(r"\bfigures\.show\(|\bplt\.|\bfig\b|\.plot\(|\.legend\(|\balt=|\bcaption=")


def test_visible_code_is_short_and_computes(notebook):
    """Drawing is folded or in the package; a long experiment is split."""
    visible = {
        cell.id: [line for line in cell.source.splitlines() if line.strip()]
        for cell in _code(notebook)
        if NOT_LESSONS.isdisjoint(cell.metadata.get("tags", []))
    }
    longest = max(visible, key=lambda name: len(visible[name]))
    assert len(visible[longest]) <= 17, longest
    drawing = [[bool(DRAWS.search(line)) for line in lines] for lines in visible.values()]
    assert 2 * sum(map(sum, drawing)) <= sum(map(len, drawing))


CORE = ("00", "01", "04", "04b", "05", "06", "07", "07b", "08", "11")


def _words(source):
    """Words of prose: no formulas, no pictures, no addresses of links, no names of numbers."""
    text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|!\[[^]]*\]\([^)]*\)|<!--.*?-->", "", source, flags=re.S)
    return len(re.sub(r"\]\([^)]*\)", "", text).split())


def test_no_cell_of_prose_is_longer_than_a_hundred_words(notebook):
    """Questions with their hint apart, and lists of sources."""
    prose = {
        cell.id: _words(cell.source)
        for cell in notebook.cells
        if cell.cell_type == "markdown" and "exercise" not in cell.metadata.get("tags", [])
        if "**Sources.**" not in cell.source
    }
    assert max(prose.values()) <= 100, {name: n for name, n in prose.items() if n > 100}


def test_every_question_has_a_folded_hint(notebook):
    """Between the question and the solution."""
    questions = [c for c in notebook.cells if c.source.startswith("### Exercise ")]
    assert questions
    assert all("<details><summary>Hint</summary>" in c.source for c in questions)


def test_a_chapter_is_no_longer_than_a_lesson(notebook, request):
    """At most 1,400 words, six figures, 40 words per caption; 20 words per visible line if core."""
    words, lines, captions = 0, 0, []
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "markdown" and "exercise" not in tags:
            words += _words(cell.source)
        elif cell.cell_type == "code":
            lines += NOT_LESSONS.isdisjoint(tags) * sum(map(bool, cell.source.split("\n")))
            texts = [output.get("data", {}).get("text/markdown", "") for output in cell.outputs]
            captions += [len(t.split()) - 3 for t in texts if "**What to see.**" in t]
    chapter = request.node.callspec.id
    print(f"{chapter}: {words} words, {lines} visible lines, {len(captions)} captions: {captions}")
    assert words <= 1400 and len(captions) <= 6 and max(captions, default=0) <= 40
    assert chapter.split("_")[0] not in CORE or words <= 20 * lines


def test_stored_metadata_is_only_what_a_reader_needs(notebook):
    assert set(notebook.metadata) <= {"kernelspec", "language_info"}
    for cell in notebook.cells:
        folded = "hide-input" in cell.metadata.get("tags", [])  # answers, drawings, appendices
        assert folded == cell.metadata.get("jupyter", {}).get("source_hidden", False), cell.id
        appendix = {"jp-MarkdownHeadingCollapsed"} if cell.id == "appendix" else set()
        assert set(cell.metadata) <= {"tags"} | ({"jupyter"} if folded else appendix)
