"""What the README promises, run as it stands there."""

from __future__ import annotations

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
LONG = RUNS[RUNS.epochs == 10].groupby(["task", "arm"])[["centred_1", "value"]].mean()
THREE_TASKS = ("sentiment_products", "mrpc", "cola")


def _example() -> str:
    (text,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)[:1]
    return text


def test_the_three_line_example_trains_a_model_of_ones_own():
    torch.manual_seed(0)
    encoder, head = torch.nn.Linear(6, 5), torch.nn.Linear(5, 2)
    inputs, labels = torch.randn(16, 6), torch.arange(16) % 2
    embeddings = encoder(inputs)
    task_loss = torch.nn.functional.cross_entropy(head(embeddings), labels)
    names = {"embeddings": embeddings, "labels": labels, "task_loss": task_loss}
    plain = torch.autograd.grad(task_loss, encoder.weight, retain_graph=True)[0]
    exec(_example(), names)
    assert names["loss"] < task_loss  # the entropies were added to the goal
    assert encoder.weight.grad.isfinite().all()
    assert not torch.allclose(encoder.weight.grad, plain)


def test_every_link_inside_the_repository_resolves():
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", README)
    targets += re.findall(r'src="(?!https?:)([^"]+)"', README)
    assert targets
    missing = [target for target in targets if not (ROOT / target).exists()]
    assert not missing


def test_the_findings_are_those_of_the_books_front_page():
    findings = (ROOT / "docs" / "book" / "findings.md").read_text(encoding="utf-8")
    assert findings in README


def _lower(*hypotheses: str) -> list[str]:
    return [_printed(-HYPOTHESES.difference.astype(float)[name]) for name in hypotheses]


def _below(arm: str, *tasks: str) -> list[str]:
    """How far long runs with prominent bars end below those of another arm."""
    score = LONG.centred_1
    return [_printed(score[task, arm] - score[task, "prominent"]) for task in tasks]


def _printed(number: float) -> str:
    return f"{number:.2f}".removeprefix("0")


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        ("by {} on movie and {} on product reviews", _lower("H1", "H2")),
        ("on product reviews even {} more", [_printed(float(HYPOTHESES.difference["H6"]))]),
        ("it is {} lower on product reviews", _lower("H11")),
        ("and {} and {} lower on the paper's MRPC and CoLA", _below("none", "mrpc", "cola")),
        ("selected bars end {}, {} (undecided) and {} below all bars", _below("all", *THREE_TASKS)),
        ("and {}, {} and {} below random ones", _below("random", *THREE_TASKS)),
    ],
)
def test_the_numbers_of_the_findings_are_those_of_the_records(sentence, numbers):
    assert sentence.format(*numbers) in README


def test_the_verdicts_of_the_findings_are_those_of_the_records():
    verdicts = HYPOTHESES.verdict.value_counts()
    assert verdicts.to_dict() == {"supported": 8, "equivalent": 3, "open": 1}
    assert "eight are supported, three differences lie within their margins, one is open" in README
    assert (HYPOTHESES.verdict[["H3", "H4"]] == "supported").all()  # falls by less than .02
    of_task = LONG.loc[list(THREE_TASKS), "value"].groupby("task")
    assert (of_task.max() - of_task.min()).max() < 0.015  # "by .01 at most"
    order = LONG.centred_1["sentiment_products"].sort_values().index
    assert (order[0], order[-1]) == ("prominent", "none")  # what the figure's caption says
