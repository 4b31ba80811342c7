"""The course: the exercises of each chapter, as notebooks for students and for teachers.

The chapters are the source. Their exercises are told by tags, wherever they stand: a cell
``exercise-setup`` makes everything they need, then each has its task (``exercise``), a cell to
answer in (``solution``) and a self-check (``check``).

The answers are in ``solutions/``, in a notebook of the chapter's name and in cells of the same
ids; a worked text has the id of its task and ``-worked``. A chapter contains an answer without what
stands between ``### BEGIN SOLUTION`` and ``### END SOLUTION``, as in nbgrader. That package is not
needed here; the teachers' set carries its metadata, so that those who have it can release, collect
and grade the same files.
"""

import ast
import re
from itertools import count
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
SOLUTIONS, SETUP = "solutions", "exercise-setup"
# In a chapter a check says what is wrong and lets the cells below run; see `session.begin`.
PATIENT = "%%check\n"
# Tags of an exercise's cells, in their order, and what nbgrader (schema 3) does with them: students
# write answers, a check is worth a point, and a worked text gives way to room for one's own.
NBGRADER = {
    "exercise": None,
    "solution": {"solution": True, "grade": False, "locked": False},
    "check": {"solution": False, "grade": True, "locked": True, "points": 1},
    "solution-text": {"solution": True, "grade": True, "locked": False, "points": 0},
    SETUP: {"solution": False, "grade": False, "locked": True},
}
ANSWERS = ("solution", "solution-text")  # what else is in `solutions` makes them run
ORDER = rf"{SETUP}( exercise solution check)+"
HOW_TO = """The exercises of [{title}]({link}).
That chapter is needed to answer them, not to run them.

Run the first code cell. Then, exercise by exercise, write in the place of `pass  # your answer`,
run that cell, and run the check below it: it prints *right*, or stops with what it found."""


class Section(NamedTuple):
    """The exercises of a chapter, each with its answer and a check that raises: cells by tag."""

    chapter: str  # file name of the notebook
    title: str  # its first heading
    setup: NotebookNode  # the code cell that the exercises rest on
    exercises: list[dict[str, NotebookNode]]
    metadata: NotebookNode  # of the chapter: which kernel runs it


def write_course(notebooks: Path) -> tuple[Path, Path | None]:
    """Write the exercises into a folder beside the chapters, and those with solutions below it.

    Returns that folder, ``exercises``, and where an earlier one is kept. That is written over if it
    holds the same but for outputs; else it holds answers, or the exercises of an older chapter, and
    is kept as ``exercises.before-<n>``.

    Raises
    ------
    FileNotFoundError
        No chapters, ``[0-9]*.ipynb``, in the folder.
    ValueError
        A chapter whose exercises are incomplete; the message names it. Nothing is written.
    """
    sections = [read_section(chapter) for chapter in sorted(notebooks.glob("[0-9]*.ipynb"))]
    if not sections:
        raise FileNotFoundError(f"notebooks: no chapters in {notebooks}")
    folder, kept = notebooks / "exercises", None
    new = {}
    for section in sections:
        new[folder / section.chapter] = course_notebook(section, solved=False)
        new[folder / "instructor" / section.chapter] = course_notebook(section, solved=True)
    old = [path for path in folder.rglob("*") if ".ipynb_checkpoints" not in path.parts]
    old = filter(Path.is_file, old)
    if any(path not in new or _sources(path) != _sources(new[path]) for path in old):
        free = (folder.with_name(f"{folder.name}.before-{n}") for n in count(1))
        kept = folder.rename(next(path for path in free if not path.exists()))
    for path, notebook in new.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
    return folder, kept


def read_section(chapter: Path) -> Section:
    """The exercises of a chapter with their solutions, checked for completeness.

    Raises
    ------
    FileNotFoundError
        If there is no such notebook, or none of that name in ``solutions``.
    ValueError
        No exercises, cells whose tags do not follow each other as they should, or solutions that
        are not those of the exercises. The message names the notebook and the cell.
    """
    solutions = chapter.parent / SOLUTIONS / chapter.name
    for path in (chapter, solutions):
        if not path.is_file():
            raise FileNotFoundError(f"chapter: no notebook {path}")
    notebook = nbformat.read(chapter, as_version=4)
    answered = nbformat.read(solutions, as_version=4).cells
    solved = {c.id: c for c in answered if {*c.metadata.get("tags", [])} & {*ANSWERS}}
    tagged = [(t, cell) for cell in notebook.cells for t in cell.metadata.get("tags", [])]
    tags, cells = zip(
        *[pair for pair in tagged if pair[0] in NBGRADER] or [("", None)], strict=True
    )
    if not re.fullmatch(ORDER, " ".join(tags)):
        found = ", ".join(
            f"{cell.id} ({tag})" for tag, cell in zip(tags, cells, strict=True) if tag
        )
        raise ValueError(
            f"{chapter.name}: its exercises are a cell tagged {SETUP}, then exercise, solution and "
            f"check of each; found {found or 'none'}"
        )
    exercises = []
    for task, empty, check in zip(cells[1::3], cells[2::3], cells[3::3], strict=True):
        name = f"{chapter.name}, cell {empty.id}"
        if empty.id not in solved:
            raise ValueError(f"{name}: no cell of this id in {SOLUTIONS}")
        answer, worked = solved.pop(empty.id), solved.pop(f"{task.id}-worked", None)
        if without_solution(answer.source, name=name) != empty.source:
            raise ValueError(f"{name}: it is not its solution with the regions taken out")
        check.source = check.source.removeprefix(PATIENT)
        exercises.append({"exercise": task, "solution": answer, "check": check})
        exercises[-1] |= {"solution-text": worked} if worked else {}
    if solved:
        raise ValueError(f"{chapter.name}, cell {min(solved)}: a solution of no exercise")
    title = notebook.cells[0].source.splitlines()[0].removeprefix("# ")
    return Section(chapter.name, title, cells[0], exercises, notebook.metadata)


def without_solution(source: str, *, name: str = "source") -> str:
    """An answer cell as the student gets it: each marked region replaced by one line to write at.

    Raises
    ------
    ValueError
        No region, markers that do not pair, or code that does not parse once they are gone. The
        message begins with the `name` of the cell.
    """
    region = rf"^([ ]*){BEGIN}\n(?:(?!.*{BEGIN}).*\n)*?[ ]*{END}$"
    # A bare ... would be echoed by the notebook.
    kept, regions = re.subn(region, r"\1pass  # your answer", source, flags=re.MULTILINE)
    if not regions or BEGIN in kept or END in kept:
        raise ValueError(f"{name}: an answer needs regions from {BEGIN!r} to {END!r}, in pairs")
    try:
        ast.parse(kept)
    except SyntaxError as error:
        raise ValueError(f"{name}: without its solution it does not parse: {error}") from None
    return kept


def course_notebook(section: Section, *, solved: bool) -> NotebookNode:
    """The exercises of a chapter as a notebook of their own, without outputs.

    `solved`: with answers, worked texts and nbgrader's marks; else with empty answers.
    """
    for_whom, up = ("Exercises with solutions", "../../") if solved else ("Exercises", "../")
    text = HOW_TO.format(title=section.title, link=section.chapter)
    title = nbformat.v4.new_markdown_cell(f"# {for_whom}: {section.title}\n\n{text}", id="title")
    tagged = [(None, title), (SETUP, section.setup)]
    tagged += [pair for exercise in section.exercises for pair in exercise.items()]
    cells = []
    for tag, cell in tagged:
        if tag == "solution-text" and not solved:
            continue
        source = cell.source
        if cell.cell_type == "markdown":
            source = re.sub(r"\]\((?=\d\d[a-z]?_\w+\.ipynb)", f"]({up}", source)
        elif tag == "solution" and not solved:
            source = without_solution(source)
        metadata = NotebookNode(tags=[tag]) if solved and tag else NotebookNode()
        if solved and NBGRADER.get(tag):
            marks = {"grade_id": cell.id, "schema_version": 3, "task": False}
            metadata["nbgrader"] = NotebookNode(NBGRADER[tag] | marks)
        new = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
        cells.append(new(source, id=cell.id, metadata=metadata))
    return nbformat.v4.new_notebook(cells=cells, metadata=section.metadata)


def _sources(notebook: NotebookNode | Path) -> list[str] | None:
    """What the cells hold without what running them leaves; None of what is no notebook."""
    if isinstance(notebook, Path):
        try:
            notebook = nbformat.read(notebook, as_version=4)
        except ValueError:
            return None
    return [cell.source for cell in notebook.cells]
