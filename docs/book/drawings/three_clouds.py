"""Make two runs of the third analysis again, and project their clouds: ``python three_clouds.py``.

A run of ten epochs on products without the regularizer, and one with selected bars at weight 1,
both with seed 407, whose PC1 shares are nearest the means. Writes ``three_clouds.csv`` beside this
file, of which ``draw.py`` draws the picture of the front page: the first two principal components
of the validation rows, before and after training. The shares beside the points are means of the
24 seeds on record over the last three epochs, as the text says them, and not of the one run that is
drawn.
"""

import csv
from pathlib import Path

import pandas as pd
import torch

from shrink_utils.study.finetuning import finetune
from shrink_utils.study.profiles import load_profile

TASK, SEED = "sentiment_products", 407
REFERENCE = Path(__file__).parents[3] / "data" / "reference"


def embeddings(arm: str) -> dict[str, torch.Tensor]:
    """``before`` and ``after``, (n, d), and ``labels`` of a run at weight 1."""
    runs = load_profile("heldout").all_runs(precision="float32")
    of = {(run.task, run.arm, run.weight, run.seed): run for run in runs}
    return finetune(of[TASK, arm, 1.0, SEED]).embeddings


def mean_shares() -> dict[str, float]:
    """Variance explained by PC1 by cloud: means of 24 seeds, late."""
    first, last = (
        pd.read_parquet(REFERENCE / name / "evaluations.parquet") for name in ("heldout", "last")
    )  # `last` has products alone
    states = pd.concat([first.query("task == @TASK"), last]).query("weight == 1")
    after = states[states.epoch >= 8].groupby("arm", observed=True).centred_1.mean()
    shares = {"before": float(states[states.epoch == 0].centred_1.mean())}
    return shares | {arm: float(after[arm]) for arm in ("none", "prominent")}


def projected(cloud: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Coordinates (n, 2), class 1 on the right, an arch with its ends below."""
    centred = cloud.double() - cloud.double().mean(dim=0)
    left, values, _ = torch.linalg.svd(centred, full_matrices=False)
    points = left[:, :2] * values[:2]
    if points[labels == 1, 0].mean() < points[labels == 0, 0].mean():
        points[:, 0] *= -1
    if points[:, 0].square() @ points[:, 1] > 0:
        points[:, 1] *= -1
    return points


def main() -> None:
    """Write a row per cloud and sentence."""
    runs = {arm: embeddings(arm) for arm in ("none", "prominent")}
    labels = runs["none"]["labels"]
    clouds = {"before": runs["none"]["before"]}
    clouds |= {arm: run["after"] for arm, run in runs.items()}
    shares = mean_shares()
    with Path(__file__).with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["cloud", "share_1", "label", "x", "y"])
        for name, cloud in clouds.items():
            points = projected(cloud, labels)
            for label, (x, y) in zip(labels.tolist(), points.tolist(), strict=True):
                rows.writerow([name, f"{shares[name]:.4f}", label, f"{x:.2f}", f"{y:.2f}"])


if __name__ == "__main__":
    main()
