"""The course: the exercises of each chapter, as notebooks for students and for teachers.

The chapters are the source. Their exercises are told by tags, wherever they stand: a cell
``exercise-setup`` makes everything they need, then each has its task (``exercise``), a cell to
answer in (``solution``) and a self-check (``check``). The answers are in ``solutions/``, in a
notebook of the chapter's name and in cells of the same ids; a worked text has the id of its task
and ``-worked``. A chapter contains an answer without what stands between ``### BEGIN SOLUTION`` and
``### END SOLUTION``.
"""

import re
from itertools import count
from pathlib import Path
from typing import NamedTuple

import nbformat
from IPython import get_ipython
from nbformat import NotebookNode

from shrink_utils.sources import home

SOLUTIONS, SETUP = "solutions", "exercise-setup"
# In a chapter a check says what is wrong and lets the cells below run; see `setup_notebook`.
PATIENT = "%%check\n"
PARTS = ("exercise", "empty", "solution", "solution-text", "check")  # of an exercise, in order
HOW_TO = """The exercises of [{title}]({link}).
That chapter is needed to answer them, not to run them.

Run the first code cell. Then, exercise by exercise, write in the place of `pass  # your answer`,
run that cell, and run the folded check below it: it prints *right*, or says what it found."""
# A student's check says so in a sentence, as in a chapter; a teacher's stops with an error.
PATIENTLY = "from shrink_utils.study.course import check_in_sentences\n\ncheck_in_sentences()\n\n"


class _Section(NamedTuple):
    """The exercises of a chapter: cells by what they are."""

    chapter: str  # file name of the notebook
    title: str  # its first heading
    setup: NotebookNode  # the code cell that the exercises rest on
    exercises: list[dict[str, NotebookNode]]  # of each its `PARTS`; not all have a worked text
    metadata: NotebookNode  # of the chapter: which kernel runs it


def _write_course(notebooks: Path) -> tuple[Path, Path | None]:
    """Write the exercises into a folder beside the chapters, and those with solutions below it.

    Returns that folder, ``exercises``, and where an earlier one is kept. That is written over if it
    holds the same but for outputs; else it holds answers, or the exercises of an older chapter, and
    is kept as ``exercises.before-<n>``. Raises FileNotFoundError without chapters.
    """
    sections = [read_section(chapter) for chapter in sorted(notebooks.glob("[0-9]*.ipynb"))]
    if not sections:
        raise FileNotFoundError(f"notebooks: no chapters in {notebooks}")
    folder, kept, new = notebooks / "exercises", None, {}
    for section in sections:
        new[folder / section.chapter] = _course_notebook(section, solved=False)
        new[folder / "instructor" / section.chapter] = _course_notebook(section, solved=True)

    def is_as_made(path: Path) -> bool:  # but for what running its cells leaves
        old = nbformat.read(path, as_version=4)
        return path in new and [c.source for c in old.cells] == [c.source for c in new[path].cells]

    old = [path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts]
    if not all(map(is_as_made, old)):
        names = (folder.with_name(f"{folder.name}.before-{n}") for n in count(1))
        kept = folder.rename(next(name for name in names if not name.exists()))
    for path, notebook in new.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
    return folder, kept


def _course_command(profile: object) -> None:
    folder, kept = _write_course(home() / "notebooks")
    print(f"For students: {folder}\nWith solutions, for teachers: {folder / 'instructor'}")
    if kept:
        print(f"The earlier folder is kept, with any answers in it: {kept}")


def read_section(chapter: Path) -> _Section:
    """The exercises of a chapter with their solutions; `tests/notebooks` holds them complete.

    Raises FileNotFoundError if there is no such notebook, or none of its name in ``solutions``, and
    ValueError for an exercise without its parts.
    """
    notebook = nbformat.read(chapter, as_version=4)
    answers = nbformat.read(chapter.parent / SOLUTIONS / chapter.name, as_version=4).cells
    solved = {cell.id: cell for cell in answers}
    setup, tasks, empties, checks = (
        [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]
        for tag in (SETUP, "exercise", "solution", "check")
    )
    if not len(tasks) == len(empties) == len(checks) or {c.id for c in empties} - solved.keys():
        raise ValueError(f"{chapter.name}: an exercise lacks its answer, its check or its solution")
    exercises = []
    for task, empty, check in zip(tasks, empties, checks, strict=True):
        check.source = check.source.removeprefix(PATIENT)
        parts = (task, empty, solved[empty.id], solved.get(f"{task.id}-worked"), check)
        exercises.append({k: cell for k, cell in zip(PARTS, parts, strict=True) if cell})
    title = notebook.cells[0].source.splitlines()[0].removeprefix("# ")
    return _Section(chapter.name, title, setup[0], exercises, notebook.metadata)


def _course_notebook(section: _Section, *, solved: bool) -> NotebookNode:
    """The exercises of a chapter as a notebook of their own, without outputs.

    `solved`: with answers and worked texts; else with empty answers.
    """
    for_whom, up = ("Exercises with solutions", "../../") if solved else ("Exercises", "../")
    text = HOW_TO.format(title=section.title, link=section.chapter)
    title = nbformat.v4.new_markdown_cell(f"# {for_whom}: {section.title}\n\n{text}", id="title")
    left_out = {"empty"} if solved else {"solution", "solution-text"}
    kept = [cell for parts in section.exercises for k, cell in parts.items() if k not in left_out]
    cells = []
    for cell in (title, section.setup, *kept):
        source = cell.source
        if cell.cell_type == "markdown":
            source = re.sub(r"\]\((?=\d\d[a-z]?_\w+\.ipynb)", f"]({up}", source)
        elif not solved and cell is section.setup:
            source = PATIENTLY + source
        elif not solved and "check" in cell.metadata.get("tags", []):
            source = PATIENT + source
        new = getattr(nbformat.v4, f"new_{cell.cell_type}_cell")
        folded = {"jupyter": cell.metadata.jupyter} if "jupyter" in cell.metadata else {}
        cells.append(new(source, id=cell.id, metadata=folded))
    return nbformat.v4.new_notebook(cells=cells, metadata=section.metadata)


# --- checks in a chapter ------------------------------------------------------------------------


def check_in_sentences() -> None:
    """Make ``%%check``, in a notebook, the first line of a check that stops nothing."""
    if shell := get_ipython():
        shell.register_magic_function(_check, "cell", "check")


def _check(line: str, cell: str) -> None:
    """Cell magic of an exercise's check: say what an answer lacks, and let the chapter go on.

    Whatever the answer raises is said in a sentence: no wrong answer stops *Run All*.

    A name of the chapter that the check uses as well keeps its value.
    """
    shell = get_ipython()
    before = dict(shell.user_ns)
    try:
        shell.ex(cell)
    except AssertionError as error:
        print(f"Not yet. {error}")
    except Exception as error:  # an answer that cannot be run or measured is one more wrong answer
        print(f"Not yet. Your answer ends with {type(error).__name__}: {error}")
    finally:
        shell.user_ns.update(before)
