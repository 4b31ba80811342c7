"""The instructor's set, written as `make course` does and run in kernels of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

from shrink_utils.study.publishing.course_folder import write_course
from shrink_utils.study.publishing.notebooks import execute

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The folder of the course, beside copies of the chapters."""
    notebooks = tmp_path_factory.mktemp("notebooks")
    for chapter in CHAPTERS:
        shutil.copy(chapter, notebooks)
    return write_course(notebooks).folder


@pytest.mark.parametrize("name", [path.name for path in CHAPTERS])
def test_the_instructors_notebook_runs_without_an_error_and_without_the_chapter(
    course, name, tmp_path
):
    execute(course / "instructor" / name, tmp_path / name)
    cells = nbformat.read(tmp_path / name, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    printed = "".join(output.get("text", "") for output in outputs)
    n_checks = sum("check" in cell.metadata.get("tags", []) for cell in cells)
    assert printed.count(": right") == n_checks
