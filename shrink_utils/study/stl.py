"""The claims of *Shrink the longest* (STL), and the paired differences that test them."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.claims import Claim, Direction, evaluate

__all__ = ["MARGIN", "stl_claims"]

MARGIN = 0.02  # loss of the task's metric that still counts as "does not suffer"
SELECTED = ("prominent", "published")  # the two readings of the arm that STL calls selected


def stl_claims(summary: pd.DataFrame) -> pd.DataFrame:
    """Test every claim on every model and task of the ablation.

    Parameters
    ----------
    summary : DataFrame
        Of `tables.summarize`: one row a run.

    Returns
    -------
    DataFrame
        Of `claims.evaluate`.
    """
    pairs = [
        pair
        for _, cell in summary.groupby(["model", "task"], sort=False)
        for pair in _claims_of(cell)
    ]
    differences = {claim.id: values for claim, values in pairs}
    return evaluate([claim for claim, _ in pairs], lambda claim: differences[claim.id])


def _claims_of(cell: pd.DataFrame) -> Iterator[tuple[Claim, pd.Series]]:
    """Claims about one model on one task, each with one difference a seed."""
    by_arm = {arm: rows.set_index("seed") for arm, rows in cell.groupby("arm", sort=False)}
    model, task = cell.model.iloc[0], cell.task.iloc[0]
    metric = cell.metric.iloc[0]
    published = _Published(model, task)

    def claim(
        arm: str,
        name: str,
        source: str,
        statement: str,
        quantity: str,
        direction: Direction,
        **options,
    ) -> Claim:
        return Claim(
            id=f"stl:{name}:{model}:{task}:{arm}",
            source=source,
            statement=statement,
            task=task,
            arm=arm,
            quantity=quantity,
            direction=direction,
            **options,
        )

    none = by_arm["none"]
    yield (
        claim(
            "none",
            "rises",
            "STL §4",
            "anisotropy rises in plain fine-tuning",
            "centred_1 of the validation rows, after − before",
            "greater",
        ),
        none.after - none.before,
    )
    for arm in (arm for arm in by_arm if arm != "none"):
        rows = by_arm[arm]
        for space in ("centred", "raw"):
            yield (
                claim(
                    arm,
                    f"lowers-{space}",
                    "STL Table 3",
                    f"regularization lowers the first {space} score",
                    f"{space}_1",
                    "less",
                    published=published.difference(space, arm, "none"),
                ),
                rows[f"{space}_1"] - none[f"{space}_1"],
            )
        yield (
            claim(
                arm,
                "metric-kept",
                "STL Table 2",
                f"{metric} does not suffer (by {MARGIN})",
                metric,
                "no_worse",
                margin=MARGIN,
            ),
            rows.value - none.value,
        )
    for arm in (arm for arm in SELECTED if arm in by_arm):
        yield (
            claim(
                arm, "metric-grows", "STL Table 2", f"{metric} grows slightly", metric, "greater"
            ),
            by_arm[arm].value - none.value,
        )
        if "all" in by_arm:
            yield (
                claim(
                    arm,
                    "beats-all",
                    "STL Table 3",
                    "selected bars lower it more than all bars",
                    "centred_1",
                    "less",
                    published=published.difference("centred", arm, "all"),
                ),
                by_arm[arm].centred_1 - by_arm["all"].centred_1,
            )


class _Published:
    """STL's Table 3: the paper's own cell where it has the model and task, else its mean."""

    def __init__(self, model: str, task: str) -> None:
        table = pd.read_csv(data_dir() / "published" / "stl_table3.csv")
        same_model = table[table.model == model.rsplit("/", 1)[-1]]
        table = same_model if len(same_model) else table
        same_task = table[table.task == task]
        self.table = same_task if len(same_task) else table

    def difference(self, space: str, arm: str, baseline: str) -> float:
        """First score of `arm` minus that of `baseline`."""
        return self._mean(space, arm) - self._mean(space, baseline)

    def _mean(self, space: str, arm: str) -> float:
        name = "selected" if arm in SELECTED else arm
        table = self.table
        rows = table[(table.space == space) & (table.k == 1) & (table.arm == name)]
        return float(rows.score.mean())
