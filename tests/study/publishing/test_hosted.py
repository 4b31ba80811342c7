"""The hosted pair: made of the stored chapters, able to stand alone, saying what is stored."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import nbformat
import pytest

from shrink_utils.__main__ import main
from shrink_utils.study.publishing.hosted import (
    CHAPTERS,
    INSTALL,
    STORED,
    hosted_notebook,
    write_hosted,
)

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"


@pytest.fixture(params=CHAPTERS)
def pair(request):
    """A chapter's cells by id, and its hosted notebook."""
    path = NOTEBOOKS / f"{request.param}.ipynb"
    cells = {cell.id: cell for cell in nbformat.read(path, as_version=4).cells}
    return cells, hosted_notebook(path)


def test_the_committed_pair_is_that_of_the_committed_chapters(tmp_path):
    for name in CHAPTERS:
        shutil.copy(NOTEBOOKS / f"{name}.ipynb", tmp_path)
    made = {path.name: path.read_bytes() for path in write_hosted(tmp_path).iterdir()}
    committed = {path.name: path.read_bytes() for path in (NOTEBOOKS / "hosted").glob("*.ipynb")}
    assert made == committed, "make hosted writes them anew"


def test_nothing_that_runs_reads_a_run_of_the_study(pair):
    reads = re.compile(r"\b(run_grid|run_sweep|default_run|run_or_load|load_\w+)\(")
    _, hosted = pair
    assert not [c.id for c in hosted.cells if c.cell_type == "code" and reads.search(c.source)]


def test_every_cell_of_the_chapter_is_there_in_its_order(pair):
    chapter, hosted = pair
    assert [cell.id for cell in hosted.cells if not cell.id.startswith("install")] == [*chapter]
    assert [cell.id for cell in hosted.cells[:3]] == ["goal", "install-text", "install"]


def test_papermill_finds_the_parameters(pair):
    _, hosted = pair
    marked = [cell.id for cell in hosted.cells if "parameters" in cell.metadata.get("tags", [])]
    assert marked == ["parameters"]


def test_what_the_study_showed_is_stored_and_says_so(pair):
    chapter, hosted = pair
    stored = {cell.id: cell.source for cell in hosted.cells if cell.source.startswith(STORED)}
    tagged = [id_ for id_, cell in chapter.items() if "study" in cell.metadata.get("tags", [])]
    assert [*stored] == tagged != []
    for id_, text in stored.items():
        folded = "hide-input" in chapter[id_].metadata.tags
        assert (chapter[id_].source in text) != folded
        for output in chapter[id_].outputs:
            data = output.get("data", {"text/plain": output.get("text")})
            assert "".join(data.get("image/png", "").split()) in text
            assert set(re.findall(r"<td>.*?</td>", data.get("text/html", ""))) <= set(
                re.findall(r"<td>.*?</td>", text)
            )
            assert {"image/png", "text/html", "text/markdown"} & set(data) or (
                data["text/plain"].strip() in text
            )
    assert any("data:image/png" in text for text in stored.values())
    assert any("<table" in text for text in stored.values())


def test_links_lead_to_the_web_or_to_the_other_notebook(pair):
    _, hosted = pair
    text = "\n".join(cell.source for cell in hosted.cells if cell.cell_type == "markdown")
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    beside = {f"{name}.ipynb" for name in CHAPTERS}
    assert beside & set(targets)
    assert not [t for t in targets if t not in beside and not re.match("https?:|data:image", t)]


def test_no_outputs_travel_and_answers_stay_folded(pair):
    _, hosted = pair
    code = {cell.id: cell for cell in hosted.cells if cell.cell_type == "code"}
    assert not any(cell.outputs for cell in code.values())
    answer = code["exercise-1-answer"].metadata
    assert answer.jupyter.source_hidden and answer.cellView == "form"
    assert code["parameters"].metadata == {"tags": ["parameters"]}  # and not folded


def test_the_cell_that_installs_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    python, _, magic = INSTALL.rpartition("\n")
    with pytest.raises(AssertionError, match="REPOSITORY"):
        exec(python, {})
    (tmp_path / "shrink_utils-9-py3-none-any.whl").touch()
    names: dict = {}
    exec(python, names)
    assert magic.format(**names).endswith(f'@ {tmp_path.as_uri()}/shrink_utils-9-py3-none-any.whl"')
    exec(python.replace('REPOSITORY = ""', 'REPOSITORY = "https://a.b/c"'), names)
    assert magic.format(**names).endswith('"shrink-utils[notebook] @ git+https://a.b/c"')


def test_the_command_says_where_it_wrote_or_in_a_line_what_is_missing(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("SHRINK_HOME", str(tmp_path))
    (tmp_path / "notebooks").mkdir()
    assert main(["hosted"]) == 1
    assert "shrink: chapter: no notebook" in capsys.readouterr().err
    for name in CHAPTERS:
        shutil.copy(NOTEBOOKS / f"{name}.ipynb", tmp_path / "notebooks")
    assert main(["hosted"]) == 0
    folder = tmp_path / "notebooks" / "hosted"
    assert capsys.readouterr().out == f"{folder}\n" and len([*folder.iterdir()]) == 2
