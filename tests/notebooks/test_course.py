"""The exercises of the chapters: complete, solved by their solutions, and not by nothing."""

import ast
import os
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

from shrink_utils.study.course import (
    SETUP,
    SOLUTIONS,
    _course_notebook,
    read_section,
)
from shrink_utils.study.notebooks import _run_notebook
from tests.notebooks.traps import NULLS, TRAPS, UNUSUAL

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
EXERCISES = [
    (chapter, number)
    for chapter in CHAPTERS
    for number in range(len(read_section(chapter).exercises))
]
REGION = r"^([ ]*)### BEGIN SOLUTION\n(?:.*\n)*?[ ]*### END SOLUTION$"
SET_UP: dict[Path, dict] = {}  # what a chapter's set-up cell defines; made once


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request):
    return request.param


def test_a_chapter_has_one_to_eight_exercises_in_order_and_no_solution(chapter):
    exercises = read_section(chapter).exercises
    assert 1 <= len(exercises) <= 8
    assert "BEGIN SOLUTION" not in chapter.read_text(encoding="utf-8")
    cells = nbformat.read(chapter, as_version=4).cells
    tags = [tag for cell in cells for tag in cell.metadata.get("tags", [])]
    known = [tag for tag in tags if tag in (SETUP, "exercise", "solution", "check")]
    assert known == [SETUP, *["exercise", "solution", "check"] * len(exercises)]
    answers = nbformat.read(chapter.parent / SOLUTIONS / chapter.name, as_version=4).cells
    told = {c.id for c in answers if {*c.metadata.get("tags", [])} & {"solution", "solution-text"}}
    used = [part.id for parts in exercises for k, part in parts.items() if "solution" in k]
    assert told == {*used}


def test_a_students_copy_is_the_solution_with_its_regions_taken_out_and_tells_none(chapter):
    section = read_section(chapter)
    text = "\n".join(cell.source for cell in _course_notebook(section, solved=False).cells)
    kept = {line.strip() for line in text.splitlines()}
    for exercise in section.exercises:
        skeleton, solution = exercise["empty"].source, exercise["solution"].source
        assert skeleton == re.sub(REGION, r"\1pass  # your answer", solution, flags=re.M)
        told = {*solution.splitlines()} - {*skeleton.splitlines()}
        assert told and not {line.strip() for line in told if len(line.strip()) > 12} & kept
        assert "solution-text" not in exercise or exercise["solution-text"].source not in text
    for folder, solved in (("exercises", False), ("exercises/instructor", True)):
        prose = "\n".join(c.source for c in _course_notebook(section, solved=solved).cells)
        for link in re.findall(r"\]\((?!http)([^)#]+\.(?:ipynb|md))", prose):
            assert Path(os.path.normpath(chapter.parent / folder / link)).exists(), link


def test_a_teachers_copy_runs_without_its_chapter_and_every_check_is_right(chapter, capsys):
    section, names = read_section(chapter), {}
    for cell in _course_notebook(section, solved=True).cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
    assert capsys.readouterr().out.count(": right") == len(section.exercises)


def test_every_exercise_has_a_trap():
    assert {(path.stem.split("_")[0], k + 1) for path, k in EXERCISES} == {*TRAPS}


@pytest.mark.parametrize(
    ("chapter", "number"), EXERCISES, ids=[f"{path.stem}-{k + 1}" for path, k in EXERCISES]
)
def test_a_check_accepts_the_solution_and_rejects_the_empty_answer_and_the_trap(
    chapter, number, capsys
):
    exercises = read_section(chapter).exercises
    if chapter not in SET_UP:
        SET_UP[chapter] = {}
        exec(read_section(chapter).setup.source, SET_UP[chapter])
    names = dict(SET_UP[chapter])  # what an exercise adds stays in the copy
    for other, exercise in enumerate(exercises):  # all others are solved
        if other != number:
            exec(exercise["solution"].source, names)
    empty, solution, check = (exercises[number][k] for k in ("empty", "solution", "check"))
    exec(empty.source, names)
    with pytest.raises(AssertionError, match=r"Still empty") as complaint:
        exec(check.source, names)
    cells = {cell.id: cell for cell in nbformat.read(chapter, as_version=4).cells}
    assert cells[check.id].outputs[0].text == f"Not yet. {complaint.value}\n"
    exec(solution.source, names)
    exec(check.source, names)
    assert f"Exercise {number + 1}: right" in capsys.readouterr().out
    told = [str(complaint.value)]
    for answer in TRAPS[chapter.stem.split("_")[0], number + 1]:
        exec(solution.source, names)  # where the trap is in one part, the others are right
        exec(answer, names)
        with pytest.raises(AssertionError) as complaint:
            exec(check.source, names)
        told.append(str(complaint.value))
    assert len({*told}) == len(told), "two misunderstandings, one diagnosis"


def _set_up(number):
    """Of an exercise, as "05.5": the names that its chapter's set-up makes, and its check."""
    name, k = number.split(".")
    section = read_section(next(path for path in CHAPTERS if path.stem.split("_")[0] == name))
    names = {}
    exec(section.setup.source, names)
    return names, section.exercises[int(k) - 1]["check"].source


@pytest.mark.parametrize(("number", "answer"), UNUSUAL, ids=[k for k, _ in UNUSUAL])
def test_a_check_accepts_a_right_answer_that_is_not_the_solution(number, answer, capsys):
    names, check = _set_up(number)
    exec(answer, names)
    exec(check, names)
    assert f"Exercise {number[-1]}: right" in capsys.readouterr().out


def test_every_construction_has_a_null():
    asked = {
        f"{path.stem.split('_')[0]}.{k + 1}"
        for path, k in EXERCISES
        if "· construct:" in read_section(path).exercises[k]["exercise"].source
    }
    assert asked == {number for number, _ in NULLS}


@pytest.mark.parametrize(("number", "answer"), NULLS)
def test_a_check_accepts_at_most_one_null_in_a_hundred(number, answer):
    names, check = _set_up(number)
    code, accepted = compile(check, number, "exec"), 0
    n = 10 if number == "01.7" else 100  # its 4,000 points take a tenth of a second each
    for draw in np.random.default_rng(0).spawn(n):
        exec(answer, tried := names | {"draw": draw})
        try:
            exec(code, tried)
            accepted += 1
        except (AssertionError, StopIteration):  # no cut, among other things
            pass
    assert accepted <= n // 100


def _assigned(cell):
    """Names that a cell defines for those below it: functions, and values given with `=`."""
    found = set()
    for statement in ast.parse(cell.source.removeprefix("%%check\n")).body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found.add(statement.name)
        elif isinstance(statement, ast.Assign):
            targets = (node for target in statement.targets for node in ast.walk(target))
            found |= {node.id for node in targets if isinstance(node, ast.Name)}
    return found


def test_a_chapter_and_its_exercises_share_no_name(chapter):
    """So a solved exercise breaks no later cell, and no cell makes a right answer wrong."""
    section = read_section(chapter)
    asked = set().union(*(_assigned(parts["empty"]) for parts in section.exercises))
    own = {cell.id for parts in section.exercises for cell in parts.values()} | {section.setup.id}
    for cell in nbformat.read(chapter, as_version=4).cells:
        if cell.cell_type == "code" and cell.id not in own:
            tree = ast.walk(ast.parse(cell.source))
            used = {node.id for node in tree if isinstance(node, ast.Name)}
            assert not (used | _assigned(cell)) & asked, cell.id
            assert not _assigned(cell) & _assigned(section.setup), cell.id


def test_a_chapter_says_truthfully_how_long_it_is_read(chapter):
    """Prose, captions and visible code without the exercises, at 200 words a minute."""
    words, told = 0, None
    for cell in nbformat.read(chapter, as_version=4).cells:
        if not {"hide-input", "exercise", "solution", "check"} & {*cell.metadata.get("tags", [])}:
            words += len(cell.source.split())
            told = told or re.search(
                r"\*\*(?:Reading t|T)ime.\*\*\D+?bout (\d+) minutes", cell.source
            )
        for output in cell.get("outputs", []):
            words += len(output.get("data", {}).get("text/markdown", "").split())
    assert words / 200 <= int(told[1]) <= 35, f"{words / 200:.0f} minutes"


def test_a_section_asks_for_one_prediction_at_most(chapter):
    cells = nbformat.read(chapter, as_version=4).cells
    prose = [
        c.source
        for c in cells
        if c.cell_type == "markdown" and not c.source.startswith("### Exercise")
    ]
    sections = re.split(r"^## ", "\n".join(prose), flags=re.MULTILINE)
    asked = {text.split("\n")[0]: len(re.findall(r"\*Predict", text)) for text in sections}
    assert max(asked.values()) <= 1, asked


TIMED = """
import time

for control in explorer.children[0].children:  # each at its last values
    most = 0.5
    if hasattr(control, "min"):
        options = control.min, control.max
    elif hasattr(control, "options"):
        options = control.options
    else:  # a word is typed, and an encoder reads twelve sentences
        options, most = ("time", "work"), 2
    for option in options[-2:]:
        since = time.process_time()  # other work on the machine does not count
        control.value = option[1] if isinstance(option, tuple) else option
        print("answered" if time.process_time() - since < most else "slow", control.description)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("number", ["01", "02", "03", "04", "04b", "05", "06", "07", "07b", "13"])
def test_a_solved_chapter_runs_and_its_checks_stay_right_and_its_controls_answer(
    number, tmp_path, monkeypatch
):
    """All solutions in place; every check again in the middle and at the end, then the controls."""
    monkeypatch.setenv("SHRINK_PROFILE", "smoke")
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "results"))
    path = next(path for path in CHAPTERS if path.stem.split("_")[0] == number)
    notebook, section = nbformat.read(path, as_version=4), read_section(path)
    solutions = {parts["empty"].id: parts["solution"].source for parts in section.exercises}
    cells, checks = [], []
    for position, cell in enumerate(notebook.cells):
        cell.source = solutions.get(cell.id, cell.source)
        cells.append(cell)
        if "check" in cell.metadata.get("tags", []):
            checks.append(cell.source)
        if position in (len(notebook.cells) // 2, len(notebook.cells) - 1):
            cells += [nbformat.v4.new_code_cell(source) for source in checks]
    if any("explorer = " in cell.source for cell in cells):
        cells.append(nbformat.v4.new_code_cell(TIMED))
    notebook.cells = cells
    nbformat.write(notebook, solved := tmp_path / path.name)
    _run_notebook(solved, tmp_path / "done.ipynb")
    for cell in nbformat.read(tmp_path / "done.ipynb", as_version=4).cells:
        printed = "".join(output.get("text", "") for output in cell.get("outputs", []))
        assert not cell.source.startswith("%%check") or ": right" in printed, printed
        assert not cell.source.startswith(TIMED) or "slow" not in printed, printed


def test_the_solutions_are_stored_as_run_with_every_check_passed(chapter):
    notebook = nbformat.read(chapter.parent / SOLUTIONS / chapter.name, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert "parameters" in cells[0].metadata.tags and chapter.name in cells[0].source
    told = "".join(output.get("text", "") for output in cells[-1].outputs)
    assert told.count("right") >= len(read_section(chapter).exercises), told
