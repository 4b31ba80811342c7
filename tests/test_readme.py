"""What the README promises, run as it stands there."""

import re
from pathlib import Path

import pandas as pd
import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
REFERENCE = ROOT / "data" / "reference"
HYPOTHESES = pd.read_csv(REFERENCE / "cohort" / "hypotheses.csv").set_index("hypothesis")
HYPOTHESES.index = HYPOTHESES.index.str.partition(" ").get_level_values(0)
RUNS = pd.concat([pd.read_parquet(REFERENCE / of / "runs.parquet") for of in ("cohort", "glue")])


def test_the_three_line_example_trains_a_model_of_ones_own():
    torch.manual_seed(0)
    encoder, head = torch.nn.Linear(6, 5), torch.nn.Linear(5, 2)
    inputs, labels = torch.randn(16, 6), torch.arange(16) % 2
    embeddings = encoder(inputs)
    task_loss = torch.nn.functional.cross_entropy(head(embeddings), labels)
    names = {"embeddings": embeddings, "labels": labels, "task_loss": task_loss}
    plain = torch.autograd.grad(task_loss, encoder.weight, retain_graph=True)[0]
    exec(re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)[1], names)
    assert names["loss"] < task_loss  # the entropies were added to the goal
    assert encoder.weight.grad.isfinite().all()
    assert not torch.allclose(encoder.weight.grad, plain)


DOCS = ("running", "syllabus", "plan", "book/index", "book/use", "book/glossary", "book/notebooks")
PAGES = ["README.md", *(f"docs/{name}.md" for name in DOCS)]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_inside_the_repository_resolves(page):
    path = ROOT / page
    found = r"(?:\]\(|src=\")(?!https?:|#)([^)#\"]+)"
    targets = re.findall(found, path.read_text(encoding="utf-8"))
    assert targets
    assert not [target for target in targets if not (path.parent / target).exists()]


def _lower(task: str, epochs: int, *, arm: str, than: str) -> str:
    """By how much the mean centred score of an arm of weight 1 lies below that of another."""
    runs = RUNS[(RUNS.task == task) & (RUNS.epochs == epochs) & (RUNS.weight == 1)]
    means = runs.groupby("arm").centred_1.mean()
    return f"{means[than] - means[arm]:.2f}".removeprefix("0")


def test_the_numbers_of_the_findings_are_those_of_the_records():
    assert (ROOT / "docs" / "book" / "findings.md").read_text(encoding="utf-8") in README
    short = _lower("sentiment_products", 3, arm="prominent", than="none")
    long = _lower("sentiment_products", 10, arm="prominent", than="all")
    cola = _lower("cola", 10, arm="prominent", than="all")
    lower = (
        f"prominent bars lower the centred score by {short}, from .43 to .22; accuracy stays within"
    )
    assert f"{lower} .02" in README
    assert f"end lower in the centred score, by {long} (products)" in README
    assert f"by {cola} (CoLA) and .04 (MRPC;" in README
    verdicts = HYPOTHESES.verdict
    assert verdicts.loc[["H4", "H6"]].tolist() == ["supported", "equivalent"]
    assert (verdicts == "supported").sum() == 8 and (verdicts == "open").sum() == 1
    strong = pd.read_csv(REFERENCE / "strength" / "hypotheses.csv", dtype=str)
    lost = strong.difference.str.removeprefix("-0").tolist()
    decided = "open less supported open open equivalent not tested supported"
    assert strong.verdict.str.cat(sep=" ") == decided
    assert f"or .10, prominent bars keep {lost[1]} or {lost[2]} less accuracy" in README
