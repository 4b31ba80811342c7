"""The claims as people see them: tables of text, and whether models agree."""

import math
from pathlib import Path

import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.claims.claim import COLUMNS, _judged, adjust
from shrink_utils.study.claims.report import (
    PAPERS,
    _print_claims,
    _read_hypotheses,
    _sentence_table,
    claims_in_brief,
    counted,
    reworded_hypotheses,
    signed,
)
from tests.study.claims.golden import GOLDEN

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "data" / "reference"


@pytest.fixture
def claims():
    known = {"source": "S", "kind": "scaled test", "floor": math.nan}
    row = known | {"task": "", "arm": "", "published": math.nan, "unit": "seeds", "departures": ""}
    of_stl = {"task": "movies", "arm": "all", "published": -0.1234, "departures": "AdamW"}
    less, greater = (_judged((-1.0, -1.5), direction) for direction in ("less", "greater"))
    rows = [
        row | {"claim": "stl:a", "statement": "first"} | of_stl | less,
        row | {"claim": "v:b", "statement": "second", "unit": "words"} | greater,
        row | {"claim": "rp:c", "statement": "third", "task": "movies", "arm": "none"} | less,
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_a_page_shows_the_verdict_beside_its_claim_and_no_empty_column(claims, tmp_path):
    claims.to_csv(tmp_path / "claims.csv", index=False)
    for table in (claims, pd.read_csv(tmp_path / "claims.csv")):
        brief = claims_in_brief(table)
        assert list(brief) == ["claim", "verdict", "ours [95 % interval]", "paper", "p", "of"]
        assert brief.paper.tolist() == ["-0.123", "", ""]
        assert brief["of"].tolist() == [
            "movies; all; 2 seeds; S; scaled test (AdamW)",
            "2 words; S; scaled test",
            "movies; none; 2 seeds; S; scaled test",
        ]
    number, interval = brief["ours [95 % interval]"][0].split(" ")  # a line can end here alone
    assert number == "-1.250" and interval.startswith("[") and interval.endswith("]")
    whole = claims_in_brief(adjust(claims.assign(floor=0.25, p=[0.0004, 0.0372, None])))
    assert whole["adjusted verdict"].tolist() == ["inconclusive"] * 3
    assert whole["noise floor"].tolist() == ["0.250"] * 3
    assert whole.p.tolist() == ["< .001", ".037", ""]
    values = {0.1234: "+0.123", -0.0: "0.000", -0.0004: "0.000", 0.0005001: "+0.001"}
    assert list(map(signed, values)) == list(values.values())


def test_the_report_groups_by_paper_and_has_a_claim_in_one_line(claims, capsys):
    _print_claims(claims.assign(adjusted="inconclusive", floor=0.25), load_profile("smoke"))
    printed = capsys.readouterr().out
    places = [printed.index(PAPERS[paper]) for paper in ("stl", "v", "rp")]
    assert places == sorted(places) and PAPERS["b"] not in printed and "nan" not in printed
    (line,) = [line for line in printed.splitlines() if line.startswith("first")]
    assert all(part in line for part in ("noise floor 0.250", "-0.123", "-1.250 [", "inconclusive"))


@pytest.mark.parametrize("profile", ["cohort", "strength", "heldout", "objectives", "papers"])
def test_chapters_show_every_registered_row_in_their_words_and_with_its_numbers(profile):
    registered, shown = _read_hypotheses(profile), reworded_hypotheses(profile)
    ids = [table.hypothesis.str.partition(" ")[0].tolist() for table in (registered, shown)]
    assert ids[0] == ids[1]
    tested = registered.verdict != "not tested"
    for column in ("difference", "simultaneous interval", "p (Holm)"):
        printed = shown[column].str.replace("0.", ".") if column == "p (Holm)" else shown[column]
        assert printed[tested].equals(registered[column][tested])
        assert (shown[column][~tested] == "–").all()
    assert shown.verdict.equals(registered.verdict) and shown.seeds.equals(registered.seeds)
    assert ("difference of" in shown) == (profile not in ("objectives", "papers"))
    assert ("paper" in shown) == (profile == "cohort")


def test_what_a_row_subtracts_gives_the_difference_that_it_prints():
    """Recomputed from the runs: a swapped pair would turn the sign."""
    runs = pd.read_parquet(REFERENCE / "cohort" / "runs.parquet")
    short = runs[(runs.epochs == 3) & (runs.weight == 1)]
    scores = short.groupby(["task", "arm"]).centred_1.mean()
    shown, arm = reworded_hypotheses("cohort"), {"selected": "prominent", "plain": "none"}
    for i, task in enumerate(["movies", "products", "movies", "products"]):
        row = shown.iloc[[0, 1, 4, 5][i]]  # H1, H2, H5, H6
        assert row.hypothesis.endswith(task)
        pair = [arm.get(name, name) for name in row["difference of"].split(" − ")]
        first, second = scores[f"sentiment_{task}"][pair]
        assert first - second == pytest.approx(float(row.difference), abs=5e-4)


def test_a_sentence_that_fixed_hypotheses_answer_shows_their_verdicts():
    fixed = pd.read_csv(REFERENCE / "papers" / "hypotheses.csv")
    verdicts = fixed.set_index("id").verdict.replace("not decided", "open")
    table = _sentence_table(pd.read_csv(GOLDEN)).set_index("row")
    row = table.loc["papers:P1, papers:P2, papers:P4, papers:P5"]
    assert row["kind of test"] == "fixed before its runs"
    assert row["adjusted verdicts"] == counted(verdicts[["P1", "P2", "P4", "P5"]])
    both = table.loc[table.index.str.startswith("papers:P7, v:lca-peaks-upper")].iloc[0]
    found = both["adjusted verdicts"]
    assert verdicts["P7"] in found and "inconclusive" in found


def test_a_stronger_weight_of_all_bars_is_what_selected_bars_are_taken_from():
    """The statement names the weight; the record says which arm is taken from which."""
    shown = pd.concat(map(reworded_hypotheses, ("cohort", "strength", "heldout")))
    weight = shown.hypothesis.str.extract(r"all bars at (?:weight )?(\d)", expand=False)
    stronger = "all at " + weight + " − selected at 1"
    assert weight.notna().sum() == 5
    assert shown["difference of"][weight.notna()].equals(stronger.dropna())
    assert not shown["difference of"][weight.isna()].str.startswith("all").any()
