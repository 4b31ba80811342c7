"""The course: the exercises that end each chapter, as notebooks for students and for instructors.

The chapters are the one source. Their last section is told by tags: after the heading (cell id
``exercises``) comes a cell ``exercise-setup`` that makes everything the section needs, then for
each exercise its task (``exercise``), the answer (``solution``), a self-check (``check``) and,
where there is something to derive, the worked text (``solution-text``).

What an answer keeps from the student stands between ``### BEGIN SOLUTION`` and
``### END SOLUTION``, as in nbgrader. That package is not needed here; the instructor's set carries
its metadata, so that who has it can release, collect and grade the same files.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

__all__ = ["Exercise", "Section", "course_notebook", "read_section", "without_solution"]

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
EMPTY = "pass  # your answer"  # a bare ... would be echoed by the notebook
HEADING, SETUP = "exercises", "exercise-setup"
# Tags of an exercise's cells, in their order.
TASK, SOLUTION, CHECK, WORKED = "exercise", "solution", "check", "solution-text"
# What nbgrader (schema 3) does with them: students write answers, a check is worth a point, and a
# worked text gives way to room for the student's own, which a person may read.
NBGRADER = {
    SETUP: {"solution": False, "grade": False, "locked": True},
    SOLUTION: {"solution": True, "grade": False, "locked": False},
    CHECK: {"solution": False, "grade": True, "locked": True, "points": 1},
    WORKED: {"solution": True, "grade": True, "locked": False, "points": 0},
}

HOW_TO = """The exercises of [{title}]({link}).
That chapter is needed to answer them, not to run them.

Run the first code cell. Then, exercise by exercise, write in the place of `pass  # your answer`,
run that cell, and run the check below it: it prints *right*, or stops with what it found."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: its cells, as they stand in the chapter."""

    task: NotebookNode
    solution: NotebookNode
    check: NotebookNode
    worked: NotebookNode | None = None


@dataclass(frozen=True)
class Section:
    """The exercises of a chapter.

    Attributes
    ----------
    chapter : str
        File name of the notebook.
    title : str
        Its first heading.
    setup : NotebookNode
        The code cell that the exercises rest on.
    exercises : tuple of Exercise
    metadata : NotebookNode
        Of the chapter: which kernel runs it.
    """

    chapter: str
    title: str
    setup: NotebookNode
    exercises: tuple[Exercise, ...]
    metadata: NotebookNode


def read_section(chapter: Path) -> Section:
    """The exercises at the end of a chapter, checked for completeness.

    Parameters
    ----------
    chapter : Path
        A notebook.

    Raises
    ------
    FileNotFoundError
        If there is no such notebook.
    ValueError
        No section of exercises, a cell in the wrong place or without its tag, an exercise that
        lacks its answer or its check, or an answer without a region to take out. The message names
        the notebook and the cell.
    """
    if not chapter.is_file():
        raise FileNotFoundError(f"chapter: no notebook {chapter}")
    notebook = nbformat.read(chapter, as_version=4)
    starts = [i for i, cell in enumerate(notebook.cells) if cell.id == HEADING]
    if len(starts) != 1:
        raise ValueError(f"{chapter.name}: needs one cell with the id {HEADING!r}, the heading")
    cells = notebook.cells[starts[0] + 1 :]
    if not cells or _tag(cells[0]) != SETUP or cells[0].cell_type != "code":
        raise ValueError(f"{chapter.name}: after {HEADING!r} comes a code cell tagged {SETUP!r}")
    title = notebook.cells[0].source.splitlines()[0].removeprefix("# ")
    try:
        exercises = _exercises(cells[1:])
    except ValueError as error:
        raise ValueError(f"{chapter.name}, {error}") from None
    return Section(chapter.name, title, cells[0], exercises, notebook.metadata)


def without_solution(source: str) -> str:
    """An answer cell as the student gets it: each marked region replaced by one line to write at.

    Parameters
    ----------
    source : str
        Of an answer cell.

    Raises
    ------
    ValueError
        No region, markers that do not pair, or code that does not parse once they are gone.
    """
    lines, inside, regions = [], False, 0
    for line in source.splitlines():
        marker = line.strip()
        if marker in (BEGIN, END):
            if (marker == BEGIN) == inside:
                raise ValueError(f"the markers {BEGIN!r} and {END!r} do not pair")
            inside = not inside
            if inside:
                lines.append(line.replace(BEGIN, EMPTY))
                regions += 1
        elif not inside:
            lines.append(line)
    if inside or not regions:
        raise ValueError(f"an answer needs a region from {BEGIN!r} to {END!r}")
    kept = "\n".join(lines)
    try:
        ast.parse(kept)
    except SyntaxError as error:
        raise ValueError(f"without its solution the code does not parse: {error}") from None
    return kept


def course_notebook(section: Section, *, solved: bool) -> NotebookNode:
    """The exercises of a chapter as a notebook of their own, without outputs.

    Parameters
    ----------
    section : Section
    solved : bool
        With answers and worked texts, for the instructor; else with empty answers, for the student.
    """
    up = "../../" if solved else "../"
    for_whom = "Exercises with solutions" if solved else "Exercises"
    text = HOW_TO.format(title=section.title, link=section.chapter)
    title = nbformat.v4.new_markdown_cell(f"# {for_whom}: {section.title}\n\n{text}", id="title")
    cells = [title, _copy(section.setup)]
    for exercise in section.exercises:
        cells.append(_copy(exercise.task))
        answer = exercise.solution.source
        cells.append(_copy(exercise.solution, answer if solved else without_solution(answer)))
        cells.append(_copy(exercise.check))
        if solved and exercise.worked is not None:
            cells.append(_copy(exercise.worked))
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\]\((?=\d\d_\w+\.ipynb)", f"]({up}", cell.source)
        if not solved:
            cell.metadata = NotebookNode()
        elif _tag(cell) in NBGRADER:
            marks = {"grade_id": cell.id, "schema_version": 3, "task": False}
            cell.metadata["nbgrader"] = NotebookNode(NBGRADER[_tag(cell)] | marks)
    return nbformat.v4.new_notebook(cells=cells, metadata=section.metadata)


def _exercises(cells: list[NotebookNode]) -> tuple[Exercise, ...]:
    """Cells after the set-up, put together; each exercise begins with its task."""
    starts = [i for i, cell in enumerate(cells) if _tag(cell) == TASK]
    if not starts or starts[0] != 0:
        raise ValueError(f"{_place(cells)}: the first cell after the set-up is tagged {TASK!r}")
    ends = [*starts[1:], len(cells)]
    return tuple(_exercise(cells[i:j]) for i, j in zip(starts, ends, strict=True))


def _exercise(cells: list[NotebookNode]) -> Exercise:
    expected = [(TASK, "markdown"), (SOLUTION, "code"), (CHECK, "code"), (WORKED, "markdown")]
    for i, (tag, kind) in enumerate(expected[: max(3, len(cells))]):
        if i >= len(cells):
            raise ValueError(f"{_place(cells)}: the exercise has no cell tagged {tag!r}")
        if (_tag(cells[i]), cells[i].cell_type) != (tag, kind):
            raise ValueError(f"{_place(cells[i:])}: expected a {kind} cell tagged {tag!r}")
    if len(cells) > len(expected):
        raise ValueError(f"{_place(cells[4:])}: a cell that belongs to no exercise")
    try:
        without_solution(cells[1].source)
    except ValueError as error:
        raise ValueError(f"{_place(cells[1:])}: {error}") from None
    return Exercise(*cells)


def _tag(cell: NotebookNode) -> str | None:
    """Which of the course's tags a cell has."""
    known = (SETUP, TASK, SOLUTION, CHECK, WORKED)
    return next((tag for tag in cell.metadata.get("tags", []) if tag in known), None)


def _place(cells: list[NotebookNode]) -> str:
    return f"cell {cells[0].id}" if cells else f"cell {HEADING}"


def _copy(cell: NotebookNode, source: str | None = None) -> NotebookNode:
    """The cell without outputs and unfolded; its id and its tag stay."""
    new = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
    tags = NotebookNode(tags=[_tag(cell)])
    return new(cell.source if source is None else source, id=cell.id, metadata=tags)
