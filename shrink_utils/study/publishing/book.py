"""The study as a web book: gather its pages below one folder, and let Sphinx build them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import nbformat
import pandas as pd

from shrink_utils.paths import data_dir, home
from shrink_utils.study.claims.claim import Verdict
from shrink_utils.study.claims.report import PAPERS, claims_in_brief, of_paper
from shrink_utils.study.publishing.notebooks import executed_notebooks, store

PAGES = (".md", ".ipynb")
CLAIMS_TITLE = """# Claims and verdicts

Every claim of the study, by paper. Type to search. Click a column's header to sort its table. The
first table counts the column *adjusted verdict*, which accounts for the length of the whole table.
The [glossary](glossary.md#verdict) explains *adjusted*, *described* and the kinds of test.
A section *at full length* has the claims of another study, with more seeds and adjusted by
themselves. STL, V, B and RP are the papers of the first four sections."""
FULL_TITLE = "At full length (profile cohort)"
FRONT_FIGURES = ("quick/full_long_runs.png", "regularizer.png")  # of index.md and use.md
# The verdict stands beside its claim, so that a narrow screen shows both.
ANSWER = ["hypothesis", "verdict", "difference"]


def build_book(
    notebooks: Path,
    claims: pd.DataFrame,
    target: Path,
    *,
    title: str,
    at_full_length: pd.DataFrame | None = None,
) -> None:
    """Build the book of executed notebooks, whole or not at all.

    Parameters
    ----------
    notebooks
        Folder of the executed notebooks.
    claims
        The claims table of the same study: a page of its own.
    target
        Folder of the book; what stood there is replaced.
    title
        Below the name of the project, such as "profile quick".
    at_full_length
        The claims of ``cohort``: a section of that page, once its runs are on record.

    Raises
    ------
    RuntimeError
        If Sphinx finds a fault (a broken link is one), or is not installed.
    """
    source, part = target.with_name("book.source"), target.with_name("book.part")
    for folder in (source, part):
        shutil.rmtree(folder, ignore_errors=True)
    gather(notebooks, claims, source, at_full_length=at_full_length)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going"]
    command += ["-d", str(part / "doctrees"), "-D", f"html_title=shrink, {title}"]
    command += [str(source), str(part / "html")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=home())
    if "No module named sphinx" in done.stderr:
        raise RuntimeError("the book needs Sphinx: `make book` installs it and builds the book")
    if done.returncode:
        raise RuntimeError(f"the book has faults, its sources are in {source}\n{done.stderr}")
    shutil.rmtree(target, ignore_errors=True)
    (part / "html").rename(target)
    for folder in (source, part):
        shutil.rmtree(folder)


def gather(
    notebooks: Path,
    claims: pd.DataFrame,
    source: Path,
    *,
    at_full_length: pd.DataFrame | None = None,
) -> None:
    """Lay the sources of the book below the new folder `source`, as they stand in the repository.

    Links between them then hold. Raises FileNotFoundError if there is no executed notebook.
    """
    executed = executed_notebooks(notebooks)
    if not executed:
        raise FileNotFoundError(f"notebooks: none in {notebooks}; make reproduce executes them")
    shutil.copytree(home() / "docs" / "book", source)
    page = _claims_page(claims, at_full_length)
    (source / "claims.md").write_text(page, encoding="utf-8")
    (source / "headlines.md").write_text(_front(), encoding="utf-8")
    for figure in FRONT_FIGURES:
        _copy(Path("data/reference") / figure, source)
    (source / "docs").mkdir()
    for page in (home() / "docs").glob("*.md"):
        shutil.copy(page, source / "docs")
    (source / "notebooks").mkdir()
    for path in executed:
        store(path, source / "notebooks" / path.name)
        _finish_figures(source / "notebooks" / path.name, notebooks.parent / "figures")
        _point_to_root(source / "notebooks" / path.name)
    for page in [*source.glob("docs/*.md"), *source.glob("notebooks/*.ipynb")]:
        _bring_linked_files(page, source)


def _front() -> str:
    """The hypotheses and their verdicts, as the command ``hypotheses`` left them."""
    path = data_dir() / "reference" / "cohort" / "hypotheses.csv"
    answer = pd.read_csv(path, dtype=str, keep_default_na=False)
    columns = answer.columns.drop([*ANSWER, "kind of test"])
    return _table(answer[[*ANSWER, *columns]], kind="headlines")


def _claims_page(claims: pd.DataFrame, at_full_length: pd.DataFrame | None) -> str:
    """A table of adjusted verdicts by section, then the claims of each: by paper, and the cohort's.

    book.js searches and sorts every table of the class ``claims``, one per section.
    """
    sections = {title: of_paper(claims, paper) for paper, title in PAPERS.items()}
    if at_full_length is not None:
        sections[FULL_TITLE] = at_full_length
    sections = {title: rows for title, rows in sections.items() if len(rows)}
    verdicts = {title: rows.adjusted.value_counts() for title, rows in sections.items()}
    counts = pd.DataFrame(verdicts).T.reindex(columns=get_args(Verdict)).fillna(0).astype(int)
    parts = [CLAIMS_TITLE, _table(counts.rename_axis("claims of").reset_index())]
    for title, rows in sections.items():
        parts += [f"## {title}", _table(claims_in_brief(rows), kind="claims")]
    return "\n\n".join(parts) + "\n"


def _table(frame: pd.DataFrame, *, kind: str = "") -> str:
    kept = frame.loc[:, (frame.astype(str) != "").any()]
    options = ":header-rows: 1\n" + (f":class: {kind}\n" if kind else "")
    return f"```{{csv-table}}\n{options}\n{kept.to_csv(index=False)}```"


def _finish_figures(path: Path, figures: Path) -> None:
    """Show figures as the SVG that is kept of them, with alt text and width.

    myst-nb looks for these two in the cell, not in the output.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown = output.get("metadata", {}).get("image/png", {})
            if alt := shown.get("alt"):
                width = {"width": f"{shown['width']}px"} if "width" in shown else {}
                cell.metadata["mystnb"] = {"image": {"alt": alt, **width}}
            drawing = figures / f"{shown.get('figure')}.svg"
            if drawing.is_file():  # not of notebooks as the repository stores them
                del output.data["image/png"]
                output.data["image/svg+xml"] = drawing.read_text("utf-8")
    nbformat.write(notebook, path)


def _point_to_root(path: Path) -> None:
    """The pages of docs/book, such as the glossary, are the root of the book."""
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("](../docs/book/", "](../"), encoding="utf-8")


def _bring_linked_files(page: Path, source: Path) -> None:
    """Copy the files of the repository that a page links to; the book offers them as they are."""
    for link in re.findall(r"\]\((\.\./[\w./-]+)\)", page.read_text(encoding="utf-8")):
        path = (page.parent / link).resolve().relative_to(source.resolve())
        wanted = (home() / path).is_file() and path.suffix not in PAGES
        if wanted and not (source / path).exists():
            _copy(path, source)


def _copy(path: Path, source: Path) -> None:
    """A file of the repository, to the same place below `source`."""
    (source / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(home() / path, source / path)
