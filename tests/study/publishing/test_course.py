"""The course on made-up chapters: what students see, what a bad source says, what is kept."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from shrink_utils.__main__ import main
from shrink_utils.study.publishing.course import (
    PATIENT,
    SOLUTIONS,
    course_notebook,
    read_section,
    without_solution,
    write_course,
)

ANSWER = '''
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION
'''.strip()
CHECK = "assert double(2) == 4, 'empty'"


def _cell(kind, source, name, *tags):
    new = new_markdown_cell if kind == "markdown" else new_code_cell
    return new(source, id=name, metadata={"tags": list(tags)})


def _exercise():
    return [
        _cell("markdown", "### Double it, see [01](01_next.ipynb)", "exercise-1", "exercise"),
        _cell("code", without_solution(ANSWER), "exercise-1-answer", "solution"),
        _cell("code", PATIENT + CHECK, "exercise-1-check", "check"),
    ]


def _head():
    return [
        new_markdown_cell("# 00 · Numbers\n\n**Goal.** Count.", id="goal"),
        new_code_cell("chapter_only = 1", id="chapter"),
        _cell("code", "start = 1", "exercise-setup", "exercise-setup"),
    ]


@pytest.fixture
def section(chapter):
    return read_section(chapter(*_head(), *_exercise()))


@pytest.fixture
def chapter(tmp_path):
    """Writes a chapter of these cells, and gives its path."""

    def write(*cells, name="00_numbers.ipynb", answer=ANSWER, more=()):
        path = tmp_path / name
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        nbformat.write(new_notebook(cells=[*cells], metadata=kernel), path)
        solved = [
            new_markdown_cell("# Solutions", id="title"),
            _cell("code", answer, "exercise-1-answer", "solution"),
            _cell("markdown", "Because.", "exercise-1-worked", "solution-text"),
            *more,
        ]
        solutions = path.parent / SOLUTIONS / path.name
        solutions.parent.mkdir(exist_ok=True)
        nbformat.write(new_notebook(cells=solved), solutions)
        return path

    return write


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("x = 1", "needs regions"),
        ("### BEGIN SOLUTION\nx = 1", "needs regions"),
        ("### END SOLUTION\nx = 1\n### BEGIN SOLUTION", "needs regions"),
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "in pairs"),
        ("if True:\n### BEGIN SOLUTION\n    x = 1\n### END SOLUTION", "does not parse"),
    ],
)
def test_an_answer_that_cannot_be_emptied_is_refused(answer, message):
    with pytest.raises(ValueError, match=message):
        without_solution(answer)


def test_a_students_copy_has_tasks_and_checks_and_no_solution(section):
    copy = course_notebook(section, solved=False)
    ids = [cell.id for cell in copy.cells]
    assert ids[:2] == ["title", "exercise-setup"]
    assert ids[2:] == ["exercise-1", "exercise-1-answer", "exercise-1-check"]
    text = "\n".join(cell.source for cell in copy.cells)
    assert "return 2 * x" not in text and "Because." not in text and "chapter_only" not in text
    assert not any(cell.metadata for cell in copy.cells)
    nbformat.validate(copy)


def test_an_instructors_copy_has_everything_and_nbgraders_marks(section):
    copy = course_notebook(section, solved=True)
    cells = {cell.id: cell for cell in copy.cells}
    assert "return 2 * x" in cells["exercise-1-answer"].source
    assert cells["exercise-1-worked"].source == "Because."
    answer, check = (cells[f"exercise-1-{kind}"].metadata for kind in ("answer", "check"))
    assert answer.nbgrader.solution and not answer.nbgrader.grade and not answer.nbgrader.locked
    assert check.nbgrader.grade and check.nbgrader.points == 1 and check.nbgrader.locked
    worked = cells["exercise-1-worked"].metadata.nbgrader
    assert worked.solution and worked.points == 0, "nbgrader has to take the worked text out, too"
    assert "jupyter" not in answer, "an instructor reads the solutions unfolded"
    nbformat.validate(copy)


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ([], "none"),
        (_head()[:2], "none"),
        (_head(), r"exercise-setup \(exercise-setup\)"),
        ([*_head(), *_exercise()[1:]], r"exercise-1-answer \(solution\)"),
        ([*_head(), *_exercise()[:2]], r"exercise-1-answer \(solution\)$"),
        ([*_head(), _exercise()[0], *_exercise()[2:]], r"exercise-1 \(exercise\), .*\(check\)"),
        ([*_head(), *_exercise(), _cell("code", "1", "lost", "check")], r"lost \(check\)"),
    ],
)
def test_an_incomplete_source_is_refused_with_the_cells_that_were_found(chapter, cells, found):
    with pytest.raises(ValueError, match=rf"00_numbers\.ipynb: its exercises .*; found .*{found}"):
        read_section(chapter(*cells))


def test_both_sets_are_written_and_again_the_same_bytes(chapter, tmp_path):
    chapter(*_head(), *_exercise())
    folder, _ = write_course(tmp_path)
    files = sorted(p.relative_to(tmp_path).as_posix() for p in folder.rglob("*.ipynb"))
    assert files == ["exercises/00_numbers.ipynb", "exercises/instructor/00_numbers.ipynb"]
    before = [(tmp_path / name).read_bytes() for name in files]
    _, kept = write_course(tmp_path)
    assert [(tmp_path / name).read_bytes() for name in files] == before
    assert kept is None
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "00_numbers.ipynb",
        "exercises",
        "solutions",
    ]


def test_answers_that_a_student_wrote_are_kept_and_outputs_alone_are_none(chapter, tmp_path):
    chapter(*_head(), *_exercise())
    copy = write_course(tmp_path)[0] / "00_numbers.ipynb"
    notebook = nbformat.read(copy, as_version=4)
    notebook.cells[1].execution_count = 3
    nbformat.write(notebook, copy)
    assert write_course(tmp_path)[1] is None
    notebook.cells[3].source = "double = lambda x: x + x"
    nbformat.write(notebook, copy)
    kept = write_course(tmp_path)[1]
    assert kept == tmp_path / "exercises.before-1"
    assert "lambda" in (kept / copy.name).read_text()
    assert "lambda" not in copy.read_text()


def test_a_bad_chapter_leaves_what_was_written_before(chapter, tmp_path):
    chapter(*_head(), *_exercise())
    folder = write_course(tmp_path)[0]
    before = (folder / "00_numbers.ipynb").read_bytes()
    chapter(*_head(), name="01_bad.ipynb")
    with pytest.raises(ValueError, match=r"01_bad\.ipynb"):
        write_course(tmp_path)
    assert (folder / "00_numbers.ipynb").read_bytes() == before
    assert not list(tmp_path.glob("*.part"))


def test_the_command_says_what_it_wrote_or_in_a_line_what_a_chapter_lacks(
    chapter, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("SHRINK_HOME", str(tmp_path))
    (tmp_path / "notebooks").mkdir()
    chapter(*_head(), name="notebooks/00_numbers.ipynb")
    assert main(["course"]) == 1
    assert "shrink: 00_numbers.ipynb: its exercises are" in capsys.readouterr().err
    chapter(*_head(), *_exercise(), name="notebooks/00_numbers.ipynb")
    assert main(["course"]) == 0
    said = capsys.readouterr().out
    assert "For students: " in said and "exercises/instructor" in said
    assert (tmp_path / "notebooks" / "exercises" / "instructor" / "00_numbers.ipynb").is_file()
