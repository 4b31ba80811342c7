"""Numbers of the pages are those of the records, written there by ``make tables``."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from shrink_utils.study import pages
from shrink_utils.study.profiles import load_profile, profile_names

ROOT = Path(__file__).resolve().parents[1]


def test_what_is_rendered_is_what_is_committed():
    for path, rendered in pages._rendered_pages().items():
        assert rendered == path.read_text(encoding="utf-8"), f"{path}: run `make tables`"
        assert rendered.count("<!--n ") == rendered.count("<!--/n-->"), path
        if path.suffix == ".ipynb":
            json.loads(rendered)


def test_a_number_that_is_changed_by_hand_is_put_right():
    page = ROOT / "docs" / "verdicts.md"
    text = page.read_text(encoding="utf-8")
    wrong = text.replace("+0.212", "+0.312")
    assert wrong != text and pages._fill_page(wrong) == text


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("p1", "−11.2 [−13.7, −8.8]"), ("-p1", "11.2 [8.8, 13.7]"), ("d3e", "−.112"),
        ("-d2", ".11 [.09, .14]"), ("%0e", "−11 %"), ("n2i", "[−0.14, −0.09]"),
    ],
)  # fmt: skip
def test_a_form_says_how_a_number_is_written(form, shown):
    assert pages._written("late.selected_all.products", form) == shown


@pytest.mark.parametrize(
    ("mark", "named"),
    [("<!--n no.such p1--><!--/n-->", "no.such"), ("<!--n late.share.mrpc x9--><!--/n-->", "x9")],
)
def test_a_name_or_form_that_is_unknown_is_refused_by_name(mark, named):
    with pytest.raises(ValueError, match=re.escape(named)):
        pages._fill_page(mark)


def test_no_number_stands_for_a_row_that_was_not_tested_and_one_letter_is_one_family():
    every = pages._all_rows().set_index("hypothesis")
    text = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")
    for name in ("S7", "E2"):
        (line,) = re.findall(rf"^\| {name} · .*$", text, re.MULTILINE)
        assert not re.search(r"\d\.\d", line.partition("| not tested |")[2])
    families = every.groupby([every.index.str[0]]).analysis.nunique()
    assert (families == 1).all() and len(every) == 72


def test_the_table_of_costs_counts_the_runs_of_every_profile():
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \| [^|]* \| ([\d,]+) \|", page, re.MULTILINE)
    assert {name for name, _ in told} == {*profile_names()}
    for name, runs in told:
        assert int(runs) == len(load_profile(name).all_runs()), name


def test_the_number_that_is_followed_once_is_what_its_code_prints(monkeypatch, capsys):
    page = (ROOT / "docs" / "book" / "one_number.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], {})
    assert f"```text\n{capsys.readouterr().out}```" in page


def test_numbers_beside_published_ones_are_those_of_the_records():
    published = pd.read_csv(ROOT / "data" / "published" / "lca_positive_steps.csv")
    theirs = published.groupby("objective")[["positive", "updates"]].sum()
    names = {"clm": "causal", "mlm": "masked", "mt": "translation"}
    times = [
        pages._value(f"hurts.{name}").estimate / (row.positive / (6 * row.updates))  # six layers
        for row, name in ((theirs.loc[key], name) for key, name in names.items())
    ]
    least, most = (f"{float(f'{x:.2g}'):,.0f}" for x in (min(times), max(times)))
    text = (ROOT / "notebooks" / "10_training_dynamics.ipynb").read_text(encoding="utf-8")
    assert f"of 100 hurt: {least} to {most} times the paper's totals" in text


WORDED = ["README.md", "docs/verdicts.md"]
WORDED += [f"docs/book/{n}.md" for n in ("index", "findings", "evidence", "one_number", "claims")]


WORDED += [f"notebooks/{p.name}" for p in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))][8:]


def _prose(path):
    """A page; of a chapter, its prose, and its figures' titles, captions and alternative texts."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    sources = {kind: [] for kind in ("markdown", "code")}
    for cell in cells:
        sources[cell["cell_type"]].append("".join(cell["source"]))
    shown = re.compile(r'(?:title|alt|caption|[xy]?label)=f?((?:"[^"]*"\s*)+)')
    return "\n".join(sources["markdown"] + shown.findall("\n".join(sources["code"])))


@pytest.mark.parametrize("page", WORDED)
def test_words_that_the_glossary_gives_up_are_not_used(page):
    """Registered statements, code and addresses keep theirs; a stitch has a penalty of its own."""
    glossary = (ROOT / "docs" / "book" / "glossary.md").read_text(encoding="utf-8")
    rows = glossary.partition("| not any more | but |\n|---|---|\n")[2].partition("\n\n")[0]
    gone = [w for row in rows.splitlines() for w in row.split("|")[1].strip().split(", ")]
    assert len(gone) > 10
    text = _prose(ROOT / page)
    if page.startswith("notebooks/09"):
        gone.remove("penalty")
    for kept in (r"```\w*\n.*?```", r"<!--n .*?<!--/n-->", r"`[^`]*`", r"\]\([^)]*\)"):
        text = re.sub(kept, " ", text, flags=re.DOTALL)
    found = [w for w in gone if re.search(rf"\b{w}(s|ed)?\b", text, re.IGNORECASE)]
    assert not found
