"""The claims as people see them: text, forest plot, comparison with the committed tables."""

import re
from dataclasses import replace
from fnmatch import fnmatch
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import load_profile, stl_claims, summarize, write_table
from shrink_utils.study.claims.claim import ROWS, Claim, Verdict, adjust, evaluate
from shrink_utils.study.claims.report import (
    FIGURES,
    HEADLINES,
    PAPERS,
    TABLES,
    VERDICT_STYLE,
    changed_verdicts,
    claims_as_text,
    commit_reference,
    compare_with_reference,
    forest,
    headlines,
    of_paper,
    print_brief,
    print_claims,
    print_comparison,
)
from shrink_utils.study.tables import read_table, score_table, task_table


def _claim(name, statement, *, direction="less", **options):
    return Claim(id=name, source="S", statement=statement, direction=direction, **options)


@pytest.fixture
def claims():
    made = [
        _claim("stl:a", "first", task="movies", arm="all", published=-0.1234),
        _claim("v:b", "second", direction="greater", unit="words"),
        _claim("rp:c", "third", task="movies", arm="none"),
    ]
    return evaluate(made, lambda claim: [-1.0, -1.5])


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


def test_headlines_are_in_their_order_and_of_the_first_task(claims):
    ids = ["v:avgsim-rises", "stl:rises-centred:m:a:none", "stl:rises-centred:m:b:none"]
    found = headlines(adjust(claims.assign(claim=ids, task=["", "a", "b"])))
    assert found.claim.tolist() == ["STL: second (a)", "V: first"]
    assert found.columns.tolist() == [
        *["claim", "paper", "ours", "95 % interval", "verdict", "adjusted verdict", "kind of test"]
    ]


def test_every_headline_is_a_row_of_the_table():
    assert len(HEADLINES) <= 15
    names = _names(ROWS)
    for headline in HEADLINES:
        parts = headline.removeprefix("b:generalization-").removeprefix("v:lca-").split(":")
        name = parts[min(1, len(parts) - 1)]
        assert any(fnmatch(name, known) for known in names), headline


def _names(node):
    """Of all rows, with a star for every brace."""
    if isinstance(node, dict):
        own = {re.sub(r"{\w+}", "*", node["name"]).split(":")[0]} if "name" in node else set()
        return own.union(*map(_names, node.values()))
    return set().union(*map(_names, node)) if isinstance(node, list) else set()


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
    assert "In all: 3 inconclusive" in printed


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_no_line_is_wider_than_it_is(claims, written, monkeypatch, capsys, width):
    monkeypatch.setenv("COLUMNS", str(width))
    long = claims.assign(statement="the regularizer lowers the score " * 3)
    write_table(long, "claims", profile=written)
    print_claims(written)
    piped = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_claims(written)
    shown = capsys.readouterr().out
    assert max(map(len, piped.splitlines())) > 120
    assert max(map(len, shown.splitlines())) <= width
    assert shown.count("-1.250") == piped.count("-1.250") == 3


@pytest.fixture
def drawn():
    differences = {"a": [-3.0, -3.1, -2.9], "b": [-1.0, 1.0], "c": [2.0, 2.1, 2.2]}
    claimed = [
        _claim("a", "says a", published=-2.5),
        _claim("b", "says b", arm="all"),
        _claim("c", "says c"),
    ]
    return evaluate(claimed, lambda c: differences[c.id])


def test_every_claim_is_a_line_from_top_to_bottom_with_its_verdicts_symbol(drawn):
    ax = forest(drawn, xlabel="difference").axes[0]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["says c", "says b · all", "says a"]
    points = [line for line in ax.lines if len(line.get_xdata()) == 1 and line.get_marker() != "|"]
    assert [line.get_marker() for line in points] == ["X", "s", "o"]
    assert [float(line.get_xdata()[0]) for line in points] == pytest.approx([2.1, 0.0, -3.0])
    intervals = [tuple(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2][:3]
    assert intervals == [(row.low, row.high) for row in drawn[::-1].itertuples()]


def test_the_papers_number_is_drawn_where_there_is_one_and_explained(drawn):
    fig = forest(drawn, xlabel="difference")
    bars = [line.get_xydata() for line in fig.axes[0].lines if line.get_marker() == "|"]
    assert np.concatenate(bars).tolist() == [[-2.5, 2]]
    assert "the paper, or its mean" in {t.get_text() for t in fig.legends[0].get_texts()}
    without = forest(drawn.iloc[1:], xlabel="difference")
    without_verdicts = drawn.verdict.iloc[1:]
    assert {t.get_text() for t in without.legends[0].get_texts()} == set(without_verdicts)
    assert set(VERDICT_STYLE) == set(get_args(Verdict))


def test_no_claims_are_refused(drawn):
    with pytest.raises(ValueError, match="claims: empty"):
        forest(drawn.iloc[:0], xlabel="difference")


@pytest.fixture
def compared(finished, tiny_runs, tmp_path, monkeypatch):
    """The finished profile with its tables, committed as the reference of a data folder."""
    summary = summarize(tiny_runs)
    write_table(stl_claims(summary), "claims", profile=finished)
    write_table(task_table(summary), "task_metric", profile=finished)
    write_table(score_table(summary), "anisotropy", profile=finished)
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "tolerances.toml").write_text(
        "".join(
            f"[{column}]\nabsolute = 0.01\nrelative = 0.15\n"
            for column in ("task_metric.mean", "anisotropy.mean", "claims.estimate")
        )
    )
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    for name in FIGURES:
        (finished.folder / "figures").mkdir(exist_ok=True)
        (finished.folder / "figures" / f"{name}.png").write_bytes(b"a figure")
    commit_reference(finished)
    return finished


def _change(profile, name, column, by, row=0):
    table = read_table(name, profile=profile)
    table.loc[row, column] += by
    write_table(table, name, profile=profile)


def test_equal_tables_are_within(compared):
    table = compare_with_reference(compared)
    assert table.within.all() and set(table.table) == set(TABLES)
    assert changed_verdicts(compared).empty


def test_a_number_within_tolerance_passes_and_one_outside_is_named(compared, capsys):
    _change(compared, "anisotropy", "mean", 0.1)  # of a score of about 0.9
    assert print_comparison(compared)
    _change(compared, "anisotropy", "mean", 0.1)
    assert not print_comparison(compared)
    row = "tiny-random · sentiment_movies · none · raw · 1"
    assert row in capsys.readouterr().out


def test_a_small_score_has_a_small_tolerance(compared):
    smallest = read_table("anisotropy", profile=compared)["mean"].idxmin()
    _change(compared, "anisotropy", "mean", 0.02, smallest)
    assert not compare_with_reference(compared).within.all()


def test_an_estimate_may_move_by_a_share_of_its_interval(compared, tmp_path):
    tolerances = tmp_path / "reference" / "tolerances.toml"
    claims = read_table("claims", profile=compared)
    half = (claims.high - claims.low)[0] / 2
    _change(compared, "claims", "estimate", 0.4 * half + 0.2 * abs(claims.estimate[0]) + 0.01)
    assert not compare_with_reference(compared).within.all()
    tolerances.write_text(tolerances.read_text() + "interval = 1e9\n")  # ends with [claims.…]
    assert compare_with_reference(compared).within.all()


def test_a_changed_verdict_is_named_and_no_failure(compared, capsys):
    assert changed_verdicts(compared).empty
    table = read_table("claims", profile=compared)
    table.loc[0, "verdict"] = "another"
    write_table(table, "claims", profile=compared)
    assert print_comparison(compared)
    assert table.claim[0] in capsys.readouterr().out


def test_a_missing_row_is_outside(compared):
    write_table(read_table("claims", profile=compared).iloc[1:], "claims", profile=compared)
    outside = compare_with_reference(compared).query("not within")
    assert len(outside) == 1 and outside.ours.isna().all()


def test_there_is_nothing_to_compare_without_a_reference_or_with_another_seed(compared):
    for profile in (replace(compared, base_seed=1), replace(compared, name="unknown")):
        assert compare_with_reference(profile) is None and changed_verdicts(profile).empty


def test_records_alone_are_no_reference_tables(written, tmp_path, monkeypatch):
    folder = tmp_path / "reference" / written.name
    folder.mkdir(parents=True)
    (folder / "runs.parquet").touch()
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    assert compare_with_reference(written) is None and changed_verdicts(written).empty


def test_a_copy_that_fails_leaves_the_reference_of_before(compared, tmp_path, full_disk):
    folder = tmp_path / "reference" / compared.name
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    full_disk("shutil.copyfile")
    with pytest.raises(OSError, match="No space"):
        commit_reference(compared)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
