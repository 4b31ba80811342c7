"""Project what two runs left of their clouds: ``python three_clouds.py RESULTS SEED``.

RESULTS is the folder of a profile, such as ``results/quick``, whose products were run without the
regularizer and with prominent bars. Writes ``three_clouds.csv`` beside this file, of which
``draw.py`` draws the picture of the front page: the first two principal directions of the held-out
sentences, before and after training. The shares beside the points are means of the twenty seeds on
record, as the text says them, and not of the one run that is drawn.
"""

import csv
import json
import sys
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file

TASK = "sentiment_products"
RECORDS = Path(__file__).parents[3] / "data" / "reference" / "cohort" / "evaluations.parquet"


def embeddings(results: Path, seed: int, arm: str) -> dict[str, torch.Tensor]:
    """``before`` and ``after``, (n, d), and ``labels`` of the run of an arm."""
    for path in sorted(results.glob("runs/*/config.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        if [config.get(key) for key in ("task", "arm", "seed")] == [TASK, arm, seed]:
            return load_file(path.with_name("embeddings.safetensors"))
    raise FileNotFoundError(
        f"{results}: no run of {arm} on {TASK} with seed {seed}; run them first"
    )


def mean_shares() -> dict[str, float]:
    """Share of variance along the first direction by cloud: means of twenty seeds."""
    states = pd.read_parquet(RECORDS).query("task == @TASK and epochs == 3 and weight == 1")
    after = states[states.epoch == 3].groupby("arm", observed=True).centred_1.mean()
    shares = {"before": float(states[states.epoch == 0].centred_1.mean())}
    return shares | {arm: float(after[arm]) for arm in ("none", "prominent")}


def projected(cloud: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Coordinates (n, 2), class 1 on the right."""
    centred = cloud.double() - cloud.double().mean(dim=0)
    left, values, _ = torch.linalg.svd(centred, full_matrices=False)
    points = left[:, :2] * values[:2]
    if points[labels == 1, 0].mean() < points[labels == 0, 0].mean():
        points[:, 0] *= -1
    return points


def main(results: Path, seed: int) -> None:
    """Write a row per cloud and sentence."""
    runs = {arm: embeddings(results, seed, arm) for arm in ("none", "prominent")}
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
    main(Path(sys.argv[1]), int(sys.argv[2]))
