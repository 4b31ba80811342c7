"""What the README promises, run as it stands there."""

import re
from pathlib import Path

import pytest
import torch

from shrink_utils.sources import data_dir

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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


@pytest.mark.nightly
def test_a_diagnosis_prints_the_lines_that_are_shown():
    from shrink_utils.study.diagnosis import diagnose  # transformers: seconds

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
DOCS += ("book/notebooks", "book/evidence", "book/findings", "book/one_number", "book/claims")
PAGES = ["README.md", *(f"docs/{name}.md" for name in DOCS)]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_inside_the_repository_resolves(page):
    path = ROOT / page
    found = r"(?:\]\(|src=\")(?!https?:|#)([^)#\"]+)"
    targets = re.findall(found, path.read_text(encoding="utf-8"))
    assert targets
    assert not [target for target in targets if not (path.parent / target).exists()]
