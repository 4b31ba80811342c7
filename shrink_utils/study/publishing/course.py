"""The course: the exercises of each chapter, as notebooks for students and for instructors.

The chapters are the source. Their exercises are told by tags, wherever they stand: a cell
``exercise-setup`` makes everything they need, then each has its task (``exercise``), a cell to
answer in (``solution``) and a self-check (``check``).

The answers are in ``solutions/``, in a notebook of the chapter's name and in cells of the same
ids; a worked text has the id of its task and ``-worked``. A chapter contains an answer without what
stands between ``### BEGIN SOLUTION`` and ``### END SOLUTION``, as in nbgrader. That package is not
needed here; the instructor's set carries its metadata, so that instructors who have it can release,
collect and grade the same files.
"""

import ast
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
EMPTY = "pass  # your answer"  # a bare ... would be echoed by the notebook
SETUP = "exercise-setup"
# In a chapter a check says what is wrong and lets the cells below run; see `session.begin`.
PATIENT = "%%check\n"
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
SOLUTIONS, STUDENTS, INSTRUCTOR = "solutions", "exercises", "instructor"

HOW_TO = """The exercises of [{title}]({link}).
That chapter is needed to answer them, not to run them.

Run the first code cell. Then, exercise by exercise, write in the place of `pass  # your answer`,
run that cell, and run the check below it: it prints *right*, or stops with what it found."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: its cells, with the answer and a check that raises."""

    task: NotebookNode
    solution: NotebookNode
    check: NotebookNode
    worked: NotebookNode | None = None


@dataclass(frozen=True)
class Section:
    """The exercises of a chapter."""

    chapter: str  # file name of the notebook
    title: str  # its first heading
    setup: NotebookNode  # the code cell that the exercises rest on
    exercises: tuple[Exercise, ...]
    metadata: NotebookNode  # of the chapter: which kernel runs it


class CourseFolder(NamedTuple):
    """What `write_course` did."""

    folder: Path  # exercises/NN_….ipynb for students, …/instructor/NN_….ipynb with solutions
    chapters: int  # notebooks in each set
    kept: Path | None  # where an earlier folder went that held anything else than this


def write_course(notebooks: Path) -> CourseFolder:
    """Write both sets of exercise notebooks into ``exercises`` beside the chapters.

    The folder is made beside its place and renamed when whole. An earlier folder is replaced if it
    holds the same but for outputs; else it holds answers, or the exercises of an older chapter, and
    is kept as ``exercises.before-<n>``.

    Parameters
    ----------
    notebooks
        Folder of the chapters, ``[0-9]*.ipynb``.

    Raises
    ------
    FileNotFoundError
        No chapters there.
    ValueError
        A chapter whose exercises are incomplete; see `read_section`. Nothing is written.
    """
    chapters = sorted(notebooks.glob("[0-9]*.ipynb"))
    if not chapters:
        raise FileNotFoundError(f"notebooks: no chapters in {notebooks}")
    sections = [read_section(chapter) for chapter in chapters]
    folder = notebooks / STUDENTS
    part = Path(tempfile.mkdtemp(prefix=f"{STUDENTS}.", suffix=".part", dir=notebooks))
    try:
        (part / INSTRUCTOR).mkdir()
        for section in sections:
            for place, solved in ((part, False), (part / INSTRUCTOR, True)):
                nbformat.write(course_notebook(section, solved=solved), place / section.chapter)
        os.chmod(part, 0o755)  # mkdtemp makes it private
        kept = _make_room(folder, _sources(part))
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return CourseFolder(folder, len(chapters), kept)


def read_section(chapter: Path) -> Section:
    """The exercises of a chapter with their solutions, checked for completeness.

    Raises
    ------
    FileNotFoundError
        If there is no such notebook, or none of that name in ``solutions``.
    ValueError
        No exercises, a cell in the wrong place or without its tag, an exercise that lacks its
        answer or its check, or whose solution is another one's. The message names the notebook
        and the cell.
    """
    solutions = chapter.parent / SOLUTIONS / chapter.name
    for path in (chapter, solutions):
        if not path.is_file():
            raise FileNotFoundError(f"chapter: no notebook {path}")
    notebook = nbformat.read(chapter, as_version=4)
    solved = {cell.id: cell for cell in nbformat.read(solutions, as_version=4).cells[1:]}
    cells = [cell for cell in notebook.cells if _tag(cell)]
    if not cells or _tag(cells[0]) != SETUP or cells[0].cell_type != "code":
        raise ValueError(f"{chapter.name}: its exercises begin with a code cell tagged {SETUP!r}")
    title = notebook.cells[0].source.splitlines()[0].removeprefix("# ")
    try:
        exercises = _exercises(cells[1:], solved)
    except ValueError as error:
        raise ValueError(f"{chapter.name}, {error}") from None
    return Section(chapter.name, title, cells[0], exercises, notebook.metadata)


def without_solution(source: str) -> str:
    """An answer cell as the student gets it: each marked region replaced by one line to write at.

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

    `solved`: with answers and worked texts, for the instructor; else with empty answers.
    """
    up = "../../" if solved else "../"
    for_whom = "Exercises with solutions" if solved else "Exercises"
    text = HOW_TO.format(title=section.title, link=section.chapter)
    title = nbformat.v4.new_markdown_cell(f"# {for_whom}: {section.title}\n\n{text}", id="title")
    cells = [title, _copy(section.setup)]
    for exercise in section.exercises:
        cells += [_copy(exercise.task), _copy(exercise.solution), _copy(exercise.check)]
        if not solved:
            cells[-2].source = without_solution(exercise.solution.source)
        elif exercise.worked is not None:
            cells.append(_copy(exercise.worked))
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\]\((?=\d\d[a-z]?_\w+\.ipynb)", f"]({up}", cell.source)
        if not solved:
            cell.metadata = NotebookNode()
        elif _tag(cell) in NBGRADER:
            marks = {"grade_id": cell.id, "schema_version": 3, "task": False}
            cell.metadata["nbgrader"] = NotebookNode(NBGRADER[_tag(cell)] | marks)
    return nbformat.v4.new_notebook(cells=cells, metadata=section.metadata)


def _exercises(cells: list[NotebookNode], solved: dict[str, NotebookNode]) -> tuple[Exercise, ...]:
    """Cells after the set-up, put together; each exercise begins with its task."""
    starts = [i for i, cell in enumerate(cells) if _tag(cell) == TASK]
    if not starts or starts[0] != 0:
        place = cells[0].id if cells else SETUP
        raise ValueError(f"cell {place}: the first cell after the set-up is tagged {TASK!r}")
    ends = [*starts[1:], len(cells)]
    exercises = [_exercise(cells[i:j], solved) for i, j in zip(starts, ends, strict=True)]
    used = {cell.id for e in exercises for cell in (e.solution, e.worked) if cell is not None}
    if lost := solved.keys() - used:
        raise ValueError(f"cell {min(lost)}: a solution of no exercise")
    return tuple(exercises)


def _exercise(cells: list[NotebookNode], solved: dict[str, NotebookNode]) -> Exercise:
    expected = [(TASK, "markdown"), (SOLUTION, "code"), (CHECK, "code")]
    for i, (tag, kind) in enumerate(expected):
        if i >= len(cells):
            raise ValueError(f"cell {cells[0].id}: the exercise has no cell tagged {tag!r}")
        if (_tag(cells[i]), cells[i].cell_type) != (tag, kind):
            raise ValueError(f"cell {cells[i].id}: expected a {kind} cell tagged {tag!r}")
    if len(cells) > len(expected):
        raise ValueError(f"cell {cells[3].id}: a cell that belongs to no exercise")
    task, empty, check = cells
    if empty.id not in solved:
        raise ValueError(f"cell {empty.id}: no cell of this id in {SOLUTIONS}")
    try:
        skeleton = without_solution(solved[empty.id].source)
    except ValueError as error:
        raise ValueError(f"cell {empty.id}: {error}") from None
    if empty.source != skeleton:
        raise ValueError(f"cell {empty.id}: it is not its solution with the regions taken out")
    check.source = check.source.removeprefix(PATIENT)
    return Exercise(task, solved[empty.id], check, solved.get(f"{task.id}-worked"))


def _tag(cell: NotebookNode) -> str | None:
    """Which of the course's tags a cell has."""
    known = (SETUP, TASK, SOLUTION, CHECK, WORKED)
    return next((tag for tag in cell.metadata.get("tags", []) if tag in known), None)


def _copy(cell: NotebookNode) -> NotebookNode:
    """The cell without outputs and unfolded; its id and its tag stay."""
    new = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
    return new(cell.source, id=cell.id, metadata=NotebookNode(tags=[_tag(cell)]))


def _make_room(folder: Path, new: dict[str, list[str]]) -> Path | None:
    """Take an older folder out of the way; returns where it is kept, None if it is not."""
    if not folder.exists():
        return None
    if _sources(folder) == new:
        shutil.rmtree(folder)
        return None
    n = 1
    while (kept := folder.with_name(f"{folder.name}.before-{n}")).exists():
        n += 1
    return folder.rename(kept)


def _sources(folder: Path) -> dict[str, list[str]]:
    """The cells of every notebook, without what running them leaves; other files by name."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and ".ipynb_checkpoints" not in path.parts:
            found[name] = _cells(path) if path.suffix == ".ipynb" else []
    return found


def _cells(path: Path) -> list[str]:
    try:
        return [cell.source for cell in nbformat.read(path, as_version=4).cells]
    except ValueError:  # no notebook any more: that is not what is written now
        return [f"unreadable: {path.name}"]
