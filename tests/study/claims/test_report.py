"""The claims as people see them: text and forest plot."""

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import load_profile, write_table
from shrink_utils.study.claims.claim import Claim, Verdict, adjust, evaluate
from shrink_utils.study.claims.report import (
    HEADLINES,
    PAPER_STYLE,
    PAPERS,
    VERDICT_STYLE,
    claims_as_text,
    claims_in_brief,
    forest,
    headlines,
    of_paper,
    print_brief,
    print_claims,
    print_hypotheses,
    signed,
)
from shrink_utils.study.figures import ARM_STYLE
from shrink_utils.study.full_length_figures import DECIDED_STYLE

REFERENCE = Path(__file__).resolve().parents[3] / "data" / "reference"


def _claim(name, statement, values=(-1.0, -1.5), *, direction="less", **options):
    return Claim(name, statement, direction, values, source="S", **options)


@pytest.fixture
def claims():
    made = [
        _claim("stl:a", "first", task="movies", arm="all", published=-0.1234),
        _claim("v:b", "second", direction="greater", unit="words"),
        _claim("rp:c", "third", task="movies", arm="none"),
    ]
    return evaluate(made)


def test_every_claim_belongs_to_one_paper(claims):
    found = [of_paper(claims, paper).claim.tolist() for paper in PAPERS]
    assert found == [["stl:a"], ["v:b"], [], ["rp:c"], [], [], []]


def test_numbers_are_signed_and_the_unit_is_named(claims, tmp_path):
    claims.to_csv(tmp_path / "claims.csv", index=False)
    for text in (claims_as_text(claims), claims_as_text(pd.read_csv(tmp_path / "claims.csv"))):
        assert text.paper.tolist() == ["-0.123", "", ""]
        assert text.ours.tolist() == ["-1.250"] * 3
        assert text.over.tolist() == ["2 seeds", "2 words", "2 seeds"]
        assert text.task.tolist() == ["movies", "", "movies"]


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.1234, "+0.123"), (-0.0, "+0.000"), (-0.0004, "-0.0004"), (0.00004, "+4e-05")],
)
def test_a_small_number_keeps_its_sign_and_is_not_printed_as_zero(value, said):
    assert signed(value) == said


def test_the_noise_floor_has_a_column_where_one_was_measured(claims):
    assert "noise floor" not in claims_as_text(claims)
    text = claims_as_text(claims.assign(floor=[0.25, float("nan"), float("nan")]))
    assert text["noise floor"].tolist() == ["0.250", "", ""]


def test_departures_stand_behind_the_kind_of_test_and_p_is_short(claims):
    text = claims_as_text(claims.assign(departures=["", "AdamW", None], p=[0.0004, 0.0372, None]))
    expected = ["scaled test", "scaled test (AdamW)", "scaled test"]
    assert text["kind of test"].tolist() == expected
    assert text.p.tolist() == ["< .001", ".037", ""]


def test_the_adjusted_verdict_has_a_column_where_the_whole_table_is_given(claims):
    assert "adjusted verdict" not in claims_as_text(claims)
    assert claims_as_text(adjust(claims))["adjusted verdict"].tolist() == ["inconclusive"] * 3


def test_a_page_shows_the_verdict_beside_its_claim_and_no_empty_column(claims):
    brief = claims_in_brief(claims)
    expected = ["claim", "verdict", "ours [95 % interval]", "paper", "p", "of"]
    assert brief.columns.tolist() == expected
    assert brief["of"].tolist() == [
        "movies; all; 2 seeds; S; scaled test",
        "2 words; S; scaled test",
        "movies; none; 2 seeds; S; scaled test",
    ]
    number, interval = brief["ours [95 % interval]"][0].split(" ")  # a line can end here alone
    assert number == "-1.250" and interval.startswith("[") and interval.endswith("]")
    whole = claims_in_brief(adjust(claims.assign(floor=0.25)))
    assert whole["adjusted verdict"].tolist() == ["inconclusive"] * 3
    assert whole["noise floor"].tolist() == ["0.250"] * 3


def test_headlines_are_in_their_order_and_of_the_first_task(claims):
    ids = ["v:avgsim-rises", "stl:rises-centred:m:a:none", "stl:rises-centred:m:b:none"]
    found = headlines(adjust(claims.assign(claim=ids, task=["", "a", "b"])))
    assert found.claim.tolist() == ["STL: second (a)", "V: first"]
    assert found.columns.tolist() == [
        *["claim", "verdict", "adjusted verdict", "ours", "95 % interval", "paper", "kind of test"]
    ]


def test_every_headline_is_a_row_of_a_committed_table():
    assert len(HEADLINES) <= 15
    tables = (REFERENCE / name / "claims.csv" for name in ("cohort", "quick"))
    names = [name for table in tables for name in pd.read_csv(table).claim]
    assert all(any(fnmatch(name, headline) for name in names) for headline in HEADLINES)


@pytest.fixture
def written(claims, tmp_path, monkeypatch):
    """A profile and its table of claims."""
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    profile = load_profile("smoke")
    write_table(claims, "claims", profile=profile)
    return profile


def test_a_study_ends_in_ten_lines(written, capsys):
    print_brief(written)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 12 and all(len(line) < 160 for line in lines[:-1])
    assert "  In all: 3 inconclusive" in lines
    assert lines[-1].endswith("provenance.md") and "claims`" in lines[-2]


def test_the_report_groups_by_paper_and_counts(written, capsys):
    print_claims(written)
    printed = capsys.readouterr().out
    places = [printed.index(PAPERS[paper]) for paper in ("stl", "v", "rp")]
    assert places == sorted(places)
    assert PAPERS["b"] not in printed and "nan" not in printed
    assert printed.index("In all: 3 inconclusive") < printed.index("first")  # the summary first


def test_another_program_finds_a_claim_in_one_line(claims, written, capsys):
    adjusted = claims.assign(verdict="agrees", adjusted="inconclusive", floor=0.25)
    write_table(adjusted, "claims", profile=written)
    print_claims(written)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("first")]
    said = ["(movies; all; 2 seeds; S; scaled test; noise floor 0.250)", "-1.250 [", "-0.123"]
    assert all(part in line for part in [*said, "agrees, adjusted inconclusive"])


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_verdicts_are_coloured_where_the_terminal_is(
    claims, written, monkeypatch, capsys, no_color, coloured
):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    write_table(claims.assign(verdict="agrees", adjusted=""), "claims", profile=written)
    print_claims(written)
    assert ("\x1b[32magrees" in capsys.readouterr().out) is coloured


@pytest.mark.parametrize("width", [80, 120, 200])
def test_on_a_terminal_no_line_is_wider_than_it_is(claims, written, monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm-256color")
    long = claims.assign(statement="the regularizer lowers the score " * 3)
    write_table(long, "claims", profile=written)
    print_claims(written)
    piped = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_claims(written)
    shown = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert max(map(len, piped.splitlines())) > 120
    assert max(map(len, shown.splitlines())) <= width
    assert shown.count("-1.250") == piped.count("-1.250") == 3


@pytest.mark.parametrize("width", [80, 200])
def test_the_hypotheses_are_as_wide_as_a_terminal_and_one_line_each_elsewhere(
    monkeypatch, capsys, width
):
    monkeypatch.setenv("COLUMNS", str(width))
    answer = pd.read_csv(REFERENCE / "cohort" / "hypotheses.csv", dtype=str, keep_default_na=False)
    print_hypotheses(answer)
    piped = capsys.readouterr().out.splitlines()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_hypotheses(answer)
    shown = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, shown)) <= width
    for row in answer.itertuples():
        (line,) = [line for line in piped if line.startswith(f"{row.hypothesis} ")]
        assert f" {row.verdict} " in line and row.note in line
        (first,) = [line for line in shown if line.startswith(f"{row.hypothesis.split()[0]} ")]
        assert f" {row.difference} [" in first  # the interval stands beside its difference


@pytest.fixture
def drawn():
    claimed = [
        _claim("a", "says a", [-3.0, -3.1, -2.9], published=-2.5),
        _claim("b", "says b", [-1.0, 1.0], arm="all"),
        _claim("c", "says c", [2.0, 2.1, 2.2]),
    ]
    return evaluate(claimed)


def _places(ax):
    """Where each label of a forest stands."""
    return dict(zip((t.get_text() for t in ax.get_yticklabels()), ax.get_yticks(), strict=True))


def test_every_claim_is_a_line_from_top_to_bottom_with_its_verdicts_symbol(drawn):
    ax = forest(drawn, xlabel="difference").axes[0]
    places = _places(ax)
    assert list(places) == ["says a", "says b · all", "says c"]
    assert list(places.values()) == sorted(places.values(), reverse=True)
    points = [line for line in ax.lines if len(line.get_xdata()) == 1 and line.get_marker() != "|"]
    assert [line.get_marker() for line in points] == ["o", "s", "X"]
    assert [float(line.get_xdata()[0]) for line in points] == pytest.approx([-3.0, 0.0, 2.1])
    assert [float(line.get_ydata()[0]) for line in points] == list(places.values())
    intervals = [tuple(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2][:3]
    assert intervals == [(row.low, row.high) for row in drawn.itertuples()]


def test_claims_of_one_statement_stand_below_it_and_a_task_of_all_in_the_title(drawn):
    rows = drawn.assign(statement=["one", "two", "one"], task="movies", arm=["none", "all", "all"])
    ax = forest(rows, xlabel="difference").axes[0]
    labels = [(label.get_text(), label.get_weight()) for label in ax.get_yticklabels()]
    plain = [("none", "normal"), ("all", "normal"), ("two · all", "normal")]
    assert labels == [("one", "bold"), *plain] and ax.get_title(loc="left") == "movies"
    points = [line for line in ax.lines if len(line.get_xdata()) == 1 and line.get_marker() != "|"]
    assert [float(line.get_xdata()[0]) for line in points] == pytest.approx([-3.0, 2.1, 0.0])


def test_labels_of_two_lines_are_about_equally_long(drawn):
    long = "the regularizer lowers the first centred score by so much that it takes two lines here"
    ax = forest(drawn.iloc[:1].assign(statement=long), xlabel="difference").axes[0]
    first, second = ax.get_yticklabels()[0].get_text().split("\n")
    assert abs(len(first) - len(second)) < 10 and f"{first} {second}" == long


def test_the_papers_number_is_drawn_where_there_is_one_and_explained(drawn):
    fig = forest(drawn, xlabel="difference")
    bars = [line.get_xydata() for line in fig.axes[0].lines if line.get_marker() == "|"]
    assert np.concatenate(bars).tolist() == [[-2.5, _places(fig.axes[0])["says a"]]]
    assert "the paper, or its mean" in {t.get_text() for t in fig.legends[0].get_texts()}
    without = forest(drawn.iloc[1:], xlabel="difference")
    without_verdicts = drawn.verdict.iloc[1:]
    assert {t.get_text() for t in without.legends[0].get_texts()} == set(without_verdicts)
    assert set(VERDICT_STYLE) == set(get_args(Verdict))


def test_verdicts_have_no_arms_colour_but_black():
    colours = {color for _, color in [*VERDICT_STYLE.values(), *DECIDED_STYLE.values()]}
    of_arms = {style["color"] for style in ARM_STYLE.values()}
    assert (colours | {PAPER_STYLE["color"]}) & of_arms == {"#000000"}


def test_no_claims_are_refused(drawn):
    with pytest.raises(ValueError, match="claims: empty"):
        forest(drawn.iloc[:0], xlabel="difference")
