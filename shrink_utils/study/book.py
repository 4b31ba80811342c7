"""The study as a web book: gather its pages below one folder, and let Sphinx build them."""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import nbformat
import pandas as pd

from shrink_utils.sources import data_dir, home
from shrink_utils.study.claims.claim import Verdict
from shrink_utils.study.claims.report import (
    ANALYSES,
    _by_paper,
    _p_as_text,
    _read_hypotheses,
    _sentence_table,
    claims_in_brief,
    signed,
)
from shrink_utils.study.notebooks import _executed_notebooks, _store_outputs
from shrink_utils.study.profiles import Profile
from shrink_utils.study.tables import read_table

TEST_MARK = "# NBVAL_CHECK_OUTPUT\n"
RULES_TITLE = "Two decision rules, each family under both"
SENTENCES = "What each paper claims, sentence by sentence, and the rows that answer"
RECORDED = {  # profiles whose claims are on record, before and after those of the study itself
    "glue": "The tasks of *Shrink the longest*: MRPC and CoLA (profile glue)",
    "cohort": "At full length: twenty seeds (profile cohort)",
}


def _book_command(profile: Profile) -> None:
    target = profile.folder / "book"
    if (profile.folder / "provenance.json").is_file():  # what a study writes last
        of, title = profile.folder / "notebooks", f"profile {profile.name}"
        claims = read_table("claims", profile=profile)
    else:
        of, title = home() / "notebooks", "as stored in the repository"
        claims = pd.read_csv(data_dir() / "reference" / "quick" / "claims.csv")
    _build_book(of, claims, target, title=title)
    print(f"{target / 'index.html'}")


def _build_book(notebooks: Path, claims: pd.DataFrame, target: Path, *, title: str) -> None:
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

    Raises
    ------
    RuntimeError
        If Sphinx finds a fault (a broken link is one), or is not installed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as folder:
        source, built = Path(folder) / "source", Path(folder) / "html"
        _gather(notebooks, claims, source)
        command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going"]
        command += ["-d", f"{folder}/doctrees", "-D", f"html_title=shrink, {title}"]
        command += [str(source), str(built)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=home())
        if "No module named sphinx" in done.stderr:
            raise RuntimeError("the book needs Sphinx: `make book` installs it and builds the book")
        if done.returncode:
            raise RuntimeError(f"the book has faults\n{done.stderr}")
        shutil.rmtree(target, ignore_errors=True)
        built.rename(target)


def _gather(notebooks: Path, claims: pd.DataFrame, source: Path) -> None:
    """Lay the sources of the book below the new folder `source`, as they stand in the repository.

    Links between them then hold. Raises FileNotFoundError if there is no executed notebook.
    """
    executed = _executed_notebooks(notebooks)
    if not executed:
        raise FileNotFoundError(f"notebooks: none in {notebooks}; make reproduce executes them")
    shutil.copytree(home() / "docs" / "book", source)
    shutil.copytree(home() / "docs", source / "docs", ignore=shutil.ignore_patterns("book"))
    for linked in ("shrink_utils", "data/reference"):  # the book offers their files as they are
        unread = shutil.ignore_patterns("__pycache__")
        shutil.copytree(home() / linked, source / linked, ignore=unread)
    for linked in ("README.md", "hub.toml"):
        shutil.copy(home() / "data" / linked, source / "data")
    for page in (home() / "docs" / "book").rglob("*.md"):  # their links hold in the repository, too
        place = page.relative_to(home() / "docs" / "book")
        up = "../" * (len(place.parts) - 1)
        text = page.read_text(encoding="utf-8").replace(f"]({up}../../", f"]({up}")
        text = text.replace(f"]({up}../", f"]({up}docs/")
        (source / place).write_text(text, encoding="utf-8")
    front = _table(_hypotheses("cohort"), "headlines")
    (source / "headlines.md").write_text(front, encoding="utf-8")
    with (source / "claims.md").open("a", encoding="utf-8") as page:
        page.write(_claims(claims))
    (source / "notebooks").mkdir()
    for path in executed:
        _lay_notebook(path, source / "notebooks" / path.name)


def _lay_notebook(executed: Path, target: Path) -> None:
    """Show figures as the SVG that is kept of them, with alt text and width; fold plumbing.

    myst-nb looks for these two in the cell, not in the output. The pages of docs/book, such as the
    glossary, are the root of the book. Marks for tests are left out.
    """
    _store_outputs(executed, target)
    notebook = nbformat.read(target, as_version=4)
    for cell in notebook.cells:
        cell.source = cell.source.replace("](../docs/book/", "](../").removeprefix(TEST_MARK)
        if {"check", "parameters", "exercise-setup"} & set(tags := cell.metadata.get("tags", [])):
            cell.metadata["tags"] = [*tags, "hide-input"]
        for output in cell.get("outputs", []):
            shown = output.get("metadata", {}).get("image/png", {})
            if alt := shown.get("alt"):
                width = {"width": f"{shown['width']}px"} if "width" in shown else {}
                cell.metadata["mystnb"] = {"image": {"alt": alt, **width}}
            drawing = executed.parents[1] / "figures" / f"{shown.get('figure')}.svg"
            if drawing.is_file():  # not of notebooks as the repository stores them
                del output.data["image/png"]
                output.data["image/svg+xml"] = drawing.read_text("utf-8")
    nbformat.write(notebook, target)


def _hypotheses(profile: str) -> pd.DataFrame:
    """As the command ``hypotheses`` left them; the verdict stands beside its claim, for phones."""
    answer = _read_hypotheses(profile).drop(columns="kind of test")
    answer.insert(1, "verdict", answer.pop("verdict"))
    answer.insert(2, "difference", answer.pop("difference"))
    return answer


def _claims(claims: pd.DataFrame) -> str:
    """Adjusted verdicts counted by section, then tables that book.js searches and sorts."""
    glue, cohort = (pd.read_csv(data_dir() / "reference" / p / "claims.csv") for p in RECORDED)
    sections = {RECORDED["glue"]: glue, **_by_paper(claims), RECORDED["cohort"]: cohort}
    links = {title: f"[{title}](#claims-{i})" for i, title in enumerate(sections)}
    verdicts = {links[title]: rows.adjusted.value_counts() for title, rows in sections.items()}
    counts = pd.DataFrame(verdicts).T.reindex(columns=get_args(Verdict)).fillna(0).astype(int)
    counts = counts.loc[:, counts.any()].rename_axis("claims of").reset_index()
    both = pd.concat([claims, cohort]).drop_duplicates("claim", keep="last")
    order = ["sentence", "adjusted verdicts", "paper", "row", "kind of test", "note"]
    sentences = _sentence_table(both)[order]
    parts = ["", _table(counts, "headlines")]
    for name, title in ANALYSES.items():
        parts += [f"## {title}", _table(_hypotheses(name), "claims")]
    parts += [f"## {RULES_TITLE}", _table(_rules(), "claims")]
    for i, (title, rows) in enumerate(sections.items()):
        parts += [f"(claims-{i})=\n\n## {title}", *_section(rows)]
    parts += [f"## {SENTENCES}", _table(sentences, "claims")]
    return "\n\n".join(parts) + "\n"


def _rules() -> pd.DataFrame:
    """Each family under both rules; the last column says which one was planned for it."""
    rules = pd.read_csv(data_dir() / "reference" / "cohort" / "rules.csv")
    rules["estimate"] = rules.estimate.map(signed)
    rules[["p by Holm", "p by BH"]] = rules[["holm", "bh"]].map(_p_as_text)
    rules["planned"] = rules.family.map({"cohort": "one-sided, Holm", "glue": "two-sided, BH"})
    by_rule = [f"{what} by {rule}" for rule in ("Holm", "BH") for what in ("verdict", "p")]
    return rules[["hypothesis", "estimate", *by_rule, "planned"]]


def _section(rows: pd.DataFrame) -> list[str]:
    """A table of claims, after the departures from the paper's protocol, each of them said once."""
    texts = [text for text in rows.departures.dropna().unique() if text]
    notes = {text: f"note {i}" for i, text in enumerate(texts, start=1)}
    brief = claims_in_brief(rows.assign(departures=rows.departures.map(notes)))
    brief = brief.drop(columns=["verdict", "p", "noise floor"], errors="ignore")
    brief = brief.rename(columns={"adjusted verdict": "verdict"})
    said = [f"*{note.capitalize()}*: {text}." for text, note in notes.items()]
    return [*said, _table(brief, "claims")]


def _table(frame: pd.DataFrame, kind: str) -> str:
    kept = frame.loc[:, (frame.astype(str) != "").any()].to_csv(index=False)
    return f"```{{csv-table}}\n:header-rows: 1\n:class: {kind}\n\n{kept}```"
