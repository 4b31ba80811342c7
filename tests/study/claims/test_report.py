"""The claims as people read them, paper by paper."""

from __future__ import annotations

import pandas as pd
import pytest

from shrink_utils.study import load_profile, write_table
from shrink_utils.study.claims.claim import Claim, evaluate
from shrink_utils.study.claims.report import PAPERS, claims_as_text, of_paper, print_claims


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
    assert found == [["stl:a"], ["v:b"], [], ["rp:c"], []]


def test_numbers_are_signed_and_the_unit_is_named(claims):
    text = claims_as_text(claims)
    assert text.paper.tolist() == ["-0.123", "", ""]
    assert text.ours.tolist() == ["-1.250"] * 3
    assert text.over.tolist() == ["2 seeds", "2 words", "2 seeds"]


def test_the_noise_floor_has_a_column_where_one_was_measured(claims):
    assert "noise floor" not in claims_as_text(claims)
    text = claims_as_text(claims.assign(floor=[0.25, float("nan"), float("nan")]))
    assert text["noise floor"].tolist() == ["0.250", "", ""]


def test_the_report_groups_by_paper_and_counts(claims, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    profile = load_profile("smoke")
    write_table(claims, "claims", profile=profile)
    print_claims(profile)
    printed = capsys.readouterr().out
    places = [printed.index(PAPERS[paper]) for paper in ("stl", "v", "rp")]
    assert places == sorted(places)
    assert PAPERS["b"] not in printed
    assert "nan" not in printed
    assert "In all: 3 inconclusive" in printed


def test_an_empty_task_stays_empty_when_the_table_is_read_back(claims, tmp_path):
    claims.to_csv(tmp_path / "claims.csv", index=False)
    assert claims_as_text(pd.read_csv(tmp_path / "claims.csv")).task.tolist() == [
        *["movies", "", "movies"]
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_no_line_is_wider_than_it_is(claims, tmp_path, monkeypatch, capsys, width):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", str(width))
    profile = load_profile("smoke")
    long = claims.assign(statement="the regularizer lowers the score " * 3)
    write_table(long, "claims", profile=profile)
    print_claims(profile)
    piped = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_claims(profile)
    shown = capsys.readouterr().out
    assert max(map(len, piped.splitlines())) > 120
    assert max(map(len, shown.splitlines())) <= width
    assert shown.count("-1.250") == piped.count("-1.250") == 3
