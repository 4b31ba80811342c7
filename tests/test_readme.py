"""What the README promises, run as it stands there."""

import re
import runpy
from pathlib import Path

import pandas as pd
import pytest
import torch

from shrink_utils.paths import data_dir

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ON_A_LINE = " ".join(README.split())
REFERENCE = ROOT / "data" / "reference"
HYPOTHESES = pd.read_csv(REFERENCE / "cohort" / "hypotheses.csv").set_index("hypothesis")
HYPOTHESES.index = HYPOTHESES.index.str.partition(" ").get_level_values(0)
RUNS = pd.read_parquet(REFERENCE / "cohort" / "runs.parquet")
EVALUATIONS = pd.read_parquet(REFERENCE / "cohort" / "evaluations.parquet")


def _block(kind: str, number: int = 0) -> str:
    return re.findall(rf"```{kind}\n(.*?)```", README, flags=re.DOTALL)[number]


def test_the_example_prints_what_stands_below_it_and_trains(capsys):
    names = {}
    exec(_block("python"), names)
    assert f"# prints: {capsys.readouterr().out}" in README
    embeddings, added, task_loss = (names[key] for key in ("embeddings", "added", "task_loss"))
    assert added.loss < 0 and task_loss > 0  # the entropies were added to the goal
    task_alone = 2 * embeddings.detach() / embeddings.numel()
    assert embeddings.grad.isfinite().all()
    assert not torch.allclose(embeddings.grad, task_alone)


@pytest.mark.parametrize("name", ["SpectralEntropy", "IsoScoreStar", "SIGReg"])
def test_the_other_rewards_that_are_named_stand_behind_the_same_call(name):
    assert f"`{name}" in README
    code = _block("python").replace("shrink_utils.topology", "shrink_utils.training.penalties")
    code = code.replace('BarcodeRegularizer("prominent", ', f"{name}(")
    code = code.replace("BarcodeRegularizer", name)
    names = {}
    exec(code[: code.index("print(")], names)
    assert names["embeddings"].grad.isfinite().all()


@pytest.mark.nightly
def test_a_diagnosis_prints_the_lines_that_are_shown():
    from shrink_utils.study.diagnose import diagnose  # transformers: seconds

    if not (data_dir() / "raw" / "minilm").is_dir():
        pytest.skip("minilm has not been fetched")
    path = data_dir() / "raw" / "vader_sentiment" / "amazonReviewSnippets_GroundTruth.txt"
    lines = path.read_text(encoding="utf-8").splitlines()[:300]
    table = diagnose("minilm", [line.split("\t")[2] for line in lines])
    shown = _block("text")
    assert all(name in shown for name in table.columns)
    for layer, *row in re.findall(
        r"^(\d)" + r" +(\d+\.\d{3})" * table.shape[1], shown, re.MULTILINE
    ):
        assert [float(x) for x in row] == pytest.approx(table.loc[int(layer)].tolist(), abs=2e-3)


DOCS = ("running", "syllabus", "plan", "verdicts", "book/index", "book/use", "book/glossary")
DOCS += ("book/notebooks", "book/evidence", "book/findings", "book/one_number")
PAGES = ["README.md", *(f"docs/{name}.md" for name in DOCS)]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_inside_the_repository_resolves(page):
    path = ROOT / page
    found = r"(?:\]\(|src=\")(?!https?:|#)([^)#\"]+)"
    targets = re.findall(found, path.read_text(encoding="utf-8"))
    assert targets
    assert not [target for target in targets if not (path.parent / target).exists()]


def test_readme_holds_the_findings_and_nothing_else_of_them():
    findings = (ROOT / "docs" / "book" / "findings.md").read_text(encoding="utf-8")
    assert findings.replace("](../../", "](").replace("](../", "](docs/") in README
    assert ".047" not in README and "4.7 points" not in README


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"


def test_the_findings_of_twenty_seeds_are_those_of_the_records():
    runs = RUNS[(RUNS.task == "sentiment_products") & (RUNS.weight == 1)]
    means = runs.groupby(["epochs", "arm"])[["centred_1", "accuracy"]].mean()
    keys = ["epochs", "arm", "weight", "epoch"]
    held_out = EVALUATIONS[EVALUATIONS.task == "sentiment_products"].groupby(keys).centred_1.mean()
    none, bars = (_percent(means.centred_1[3, arm]) for arm in ("none", "prominent"))
    assert f"In training batches: {none} → {bars}." in README
    none, bars = (_percent(held_out[3, arm, 1, 3]) for arm in ("none", "prominent"))
    assert f"Variance along direction 1: {none} → {bars}, after ten epochs" in README
    start = _percent(held_out[3, "none", 1, 0])
    headline = f"holds {bars} of the variance of held-out sentences instead of {none}"
    assert f"{headline} (before training: {start})" in ON_A_LINE
    short = " → ".join(_percent(means.accuracy[3, arm], 1) for arm in ("none", "prominent"))
    assert f"After 24 steps: {short}. After ten epochs: " in README  # these: test_findings.py


def test_the_verdicts_that_are_counted_are_those_of_the_records():
    verdicts = HYPOTHESES.verdict
    assert verdicts.loc[["H1", "H2", "H3", "H4"]].tolist() == ["supported"] * 4
    assert verdicts.loc[["H5", "H6", "H7"]].tolist() == ["equivalent"] * 3
    assert (verdicts == "supported").sum() == 8 and (verdicts == "open").sum() == 1
    strong = pd.read_csv(REFERENCE / "strength" / "hypotheses.csv", dtype=str)
    decided = "open less supported open open equivalent not tested supported"
    assert strong.verdict.str.cat(sep=" ") == decided
    third = pd.read_csv(REFERENCE / "heldout" / "hypotheses.csv").verdict
    strength, uses = third[:6].value_counts(), third[6:].value_counts()
    assert dict(strength) == {"equivalent": 2, "open": 3, "not tested": 1}
    six, eight = (
        "two equivalent, three open, one not tested",
        "two *good for*, one worse, five open (U7, U8: below a free control)",
    )
    assert f"| {six}; {eight} |" in README
    assert dict(uses) == {"good for": 2, "worse": 1, "open": 5}
    fourth = pd.read_csv(REFERENCE / "objectives" / "hypotheses.csv").verdict.value_counts()
    assert dict(fourth) == {"as the paper": 1, "opposite": 2, "open": 9}
    assert "| one as the paper (B4), two opposite (V2, R1; both barely), nine open |" in README


def test_the_page_of_verdicts_is_written_from_the_tables():
    names = runpy.run_path(str(REFERENCE / "verdicts.py"))
    assert names["PAGE"].read_text(encoding="utf-8") == names["page"]()
    for profile in ("cohort", "strength"):
        for row in pd.read_csv(REFERENCE / profile / "hypotheses.csv", dtype=str).itertuples():
            assert f"| {row.hypothesis} | {row.verdict} | {row.difference} |" in names["page"]()
    third = pd.read_csv(REFERENCE / "heldout" / "hypotheses.csv")
    assert len(third) == 14
    for row in third.itertuples():
        start = f"| {row.id} · {row.statement} | {row.verdict} | {row.estimate:+.3f} |"
        assert start in names["page"]()
