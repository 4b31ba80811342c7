"""The course as it is written: for students and teachers, and what a student wrote is kept."""

import shutil

import nbformat
import pytest

from shrink_utils.__main__ import main
from shrink_utils.sources import home
from shrink_utils.study.course import SOLUTIONS, _write_course, read_section

NAME = "04_barcodes.ipynb"


@pytest.fixture
def folder(tmp_path):
    """A checkout's ``notebooks``, with one chapter and its solutions."""
    (tmp_path / "notebooks" / SOLUTIONS).mkdir(parents=True)
    for name in (NAME, f"{SOLUTIONS}/{NAME}"):
        shutil.copy(home() / "notebooks" / name, tmp_path / "notebooks" / name)
    return tmp_path / "notebooks"


def test_an_exercise_without_its_parts_is_named(folder):
    chapter = nbformat.read(folder / NAME, as_version=4)
    last = max(i for i, c in enumerate(chapter.cells) if "check" in c.metadata.get("tags", []))
    del chapter.cells[last]
    nbformat.write(chapter, folder / NAME)
    with pytest.raises(ValueError, match=NAME):
        read_section(folder / NAME)


def test_both_sets_are_written_and_answers_that_a_student_wrote_are_kept(
    folder, monkeypatch, capsys
):
    monkeypatch.setenv("SHRINK_HOME", str(folder.parent))
    assert main(["course"]) == 0
    written = folder / "exercises"
    names = sorted(p.relative_to(written).as_posix() for p in written.rglob("*.ipynb"))
    assert names == [NAME, f"instructor/{NAME}"] and str(written) in capsys.readouterr().out
    before = [(written / name).read_bytes() for name in names]
    notebook = nbformat.read(copy := written / NAME, as_version=4)
    checks = [cell for cell in notebook.cells if cell.source.startswith("%%check")]
    assert checks and all(cell.metadata.jupyter.source_hidden for cell in checks)  # the answer
    answer = next(c for c in notebook.cells if "your answer" in c.source and c.cell_type == "code")
    answer.execution_count = 3  # outputs alone are no answer
    nbformat.write(notebook, copy)
    assert _write_course(folder)[1] is None
    assert [(written / name).read_bytes() for name in names] == before
    answer.source = "mine = lambda x: x + x"
    nbformat.write(notebook, copy)
    kept = _write_course(folder)[1]
    assert kept == folder / "exercises.before-1"
    assert "lambda x: x + x" in (kept / NAME).read_text() and "lambda" not in copy.read_text()
