"""Write the course's folder: whole, and never over answers that somebody wrote there."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import nbformat

from shrink_utils.study.publishing.course import course_notebook, read_section

__all__ = ["CourseFolder", "write_course"]

STUDENTS, INSTRUCTOR = "exercises", "instructor"


class CourseFolder(NamedTuple):
    """What `write_course` did.

    Attributes
    ----------
    folder : Path
        ``exercises/NN_….ipynb`` for students, ``exercises/instructor/NN_….ipynb`` with solutions.
    chapters : int
        Notebooks in each set.
    kept : Path or None
        Where the folder went that stood there before, when it held anything else than this.
    """

    folder: Path
    chapters: int
    kept: Path | None


def write_course(notebooks: Path) -> CourseFolder:
    """Write both sets of exercise notebooks into ``exercises`` beside the chapters.

    The folder is made beside its place and renamed when whole. A folder that stands there is
    replaced when it is what is written now, but for outputs; else it holds answers, or the
    exercises of an older chapter, and is kept as ``exercises.before-<n>``.

    Parameters
    ----------
    notebooks : Path
        Folder of the chapters, ``[0-9]*.ipynb``.

    Returns
    -------
    CourseFolder

    Raises
    ------
    FileNotFoundError
        No chapters there.
    ValueError
        A chapter whose exercises are incomplete; see `course.read_section`. Nothing is written.
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
            nbformat.write(course_notebook(section, solved=False), part / section.chapter)
            solved = course_notebook(section, solved=True)
            nbformat.write(solved, part / INSTRUCTOR / section.chapter)
        os.chmod(part, 0o755)  # mkdtemp makes it private
        kept = _make_room(folder, _sources(part))
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return CourseFolder(folder, len(chapters), kept)


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
