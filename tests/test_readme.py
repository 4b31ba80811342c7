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


PAGES = ["README.md", *(f"docs/{name}.md" for name in ("running", "syllabus", "plan"))]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_inside_the_repository_resolves(page):
    path = ROOT / page
    found = r"(?:\]\(|src=\")(?!https?:|#)([^)#\"]+)"
    targets = re.findall(found, path.read_text(encoding="utf-8"))
    assert targets
    assert not [target for target in targets if not (path.parent / target).exists()]


def _printed(number: float, digits: int = 2) -> str:
    return f"{number:.{digits}f}".removeprefix("0")


def _means(task: str, epochs: int) -> pd.DataFrame:
    """Of a task's runs: centred and raw score and metric by arm and weight."""
    runs = RUNS[(RUNS.task == task) & (RUNS.epochs == epochs)]
    return runs.groupby(["arm", "weight"])[["centred_1", "raw_1", "value"]].mean()


SHORT, LONG = _means("sentiment_products", 3), _means("sentiment_products", 10)
MOVIES, COLA = _means("sentiment_movies", 3), _means("cola", 10)
PROMINENT, ALL, NONE = ("prominent", 1.0), ("all", 1.0), ("none", 1.0)


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        (
            "lower the centred score by {} on products, {} on movies, where accuracy falls by {}.",
            [
                _printed(SHORT.centred_1[NONE] - SHORT.centred_1[PROMINENT]),
                _printed(MOVIES.centred_1[NONE] - MOVIES.centred_1[PROMINENT]),
                _printed(MOVIES.value[NONE] - MOVIES.value[PROMINENT], 3),
            ],
        ),
        (
            "score {} lower at weight 1; at weight 3, equal score, they keep {} more accuracy",
            [
                _printed(SHORT.centred_1[PROMINENT] - SHORT.centred_1[ALL]),
                _printed(SHORT.value["all", 3.0] - SHORT.value["prominent", 3.0], 3),
            ],
        ),
        (
            "selected bars end {} lower than all bars on products, {} on CoLA",
            [_printed(of.centred_1[ALL] - of.centred_1[PROMINENT]) for of in (LONG, COLA)],
        ),
    ],
)
def test_the_numbers_of_the_findings_are_those_of_the_records(sentence, numbers):
    assert sentence.format(*numbers) in README
