"""The course on a made-up chapter: what students and teachers see, and what is kept."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from shrink_utils.__main__ import main
from shrink_utils.study.course import (
    PATIENT,
    SOLUTIONS,
    _course_notebook,
    _write_course,
    read_section,
)


def _cell(kind, source, name, *tags):
    new = new_markdown_cell if kind == "markdown" else new_code_cell
    return new(source, id=name, metadata={"tags": list(tags)})


CELLS = [
    new_markdown_cell("# 00 · Numbers\n\n**Goal.** Count.", id="goal"),
    new_code_cell("chapter_only = 1", id="chapter"),
    _cell("code", "start = 1", "exercise-setup", "exercise-setup"),
    _cell("markdown", "### Double it, see [01](01_next.ipynb)", "exercise-1", "exercise"),
    _cell("code", "def double(x):\n    pass  # your answer", "exercise-1-answer", "solution"),
    _cell("code", f"{PATIENT}assert double(2) == 4, 'empty'", "exercise-1-check", "check"),
]
SOLVED = [
    _cell("code", "def double(x):\n    return 2 * x", "exercise-1-answer", "solution"),
    _cell("markdown", "Because.", "exercise-1-worked", "solution-text"),
]


@pytest.fixture
def folder(tmp_path):
    """A checkout's ``notebooks``, with one chapter and its solutions."""
    folder = tmp_path / "notebooks"
    (folder / SOLUTIONS).mkdir(parents=True)
    nbformat.write(new_notebook(cells=CELLS), folder / "00_numbers.ipynb")
    nbformat.write(new_notebook(cells=SOLVED), folder / SOLUTIONS / "00_numbers.ipynb")
    return folder


@pytest.mark.parametrize("solved", [False, True])
def test_a_copy_has_tasks_and_checks_and_only_the_teachers_have_solutions(folder, solved):
    copy = _course_notebook(read_section(folder / "00_numbers.ipynb"), solved=solved)
    nbformat.validate(copy)
    worked = ["exercise-1-worked"] if solved else []
    ids = ["title", "exercise-setup", "exercise-1", "exercise-1-answer", *worked]
    assert [cell.id for cell in copy.cells] == [*ids, "exercise-1-check"]
    text = "\n".join(cell.source for cell in copy.cells)
    assert ("return 2 * x" in text) == ("\n    pass  # your answer" not in text) == solved
    assert f"]({'../../' if solved else '../'}01_next.ipynb)" in text
    assert "chapter_only" not in text and (PATIENT in text) == (not solved)


def test_an_exercise_without_its_parts_is_named(folder):
    nbformat.write(new_notebook(cells=CELLS[:-1]), folder / "00_numbers.ipynb")
    with pytest.raises(ValueError, match=r"00_numbers\.ipynb: an exercise lacks its answer"):
        read_section(folder / "00_numbers.ipynb")


def test_both_sets_are_written_and_answers_that_a_student_wrote_are_kept(folder):
    written, kept = _write_course(folder)
    names = sorted(p.relative_to(folder).as_posix() for p in written.rglob("*.ipynb"))
    assert names == ["exercises/00_numbers.ipynb", "exercises/instructor/00_numbers.ipynb"]
    before = [(folder / name).read_bytes() for name in names]
    copy = written / "00_numbers.ipynb"
    notebook = nbformat.read(copy, as_version=4)
    notebook.cells[1].execution_count = 3  # outputs alone are no answer
    nbformat.write(notebook, copy)
    assert _write_course(folder)[1] is None
    assert [(folder / name).read_bytes() for name in names] == before
    notebook.cells[3].source = "double = lambda x: x + x"
    nbformat.write(notebook, copy)
    kept = _write_course(folder)[1]
    assert kept == folder / "exercises.before-1"
    assert "lambda" in (kept / copy.name).read_text() and "lambda" not in copy.read_text()


def test_the_command_says_what_it_wrote(folder, monkeypatch, capsys):
    monkeypatch.setenv("SHRINK_HOME", str(folder.parent))
    assert main(["course"]) == 0
    said = capsys.readouterr().out
    assert "For students: " in said and "exercises/instructor" in said
