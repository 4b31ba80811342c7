"""The claims of *Shrink the longest* (STL), and the paired differences that test them."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.claims.claim import Claim, Direction, evaluate

__all__ = ["MARGIN", "stl_claims"]

MARGIN = 0.02  # loss of the task's metric that still counts as "does not suffer"
SELECTED = ("prominent", "published")  # the two readings of the arm that STL calls selected
SPACES = ("centred", "raw")

Tested = tuple[Claim, pd.Series]  # a claim and its differences, one a seed


def stl_claims(summary: pd.DataFrame) -> pd.DataFrame:
    """Test every claim on every model and task of the ablation.

    Parameters
    ----------
    summary : DataFrame
        Of `tables.summarize`: one row a run.

    Returns
    -------
    DataFrame
        Of `claim.evaluate`.
    """
    cells = [_Cell(rows) for _, rows in summary.groupby(["model", "task"], sort=False)]
    tested = dict(pair for cell in cells for pair in cell.tested())
    return evaluate(tested, tested.__getitem__)


class _Cell:
    """The runs of one model on one task, by arm and seed."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.model, self.task = rows.model.iloc[0], rows.task.iloc[0]
        self.metric = rows.metric.iloc[0]
        self.arms = dict(iter(rows.set_index("seed").groupby("arm", sort=False)))
        self.published = _Published(self.model, self.task)

    def tested(self) -> Iterator[Tested]:
        """Every claim with its differences."""
        for space in SPACES:
            yield self._rises(space)
        for arm in (arm for arm in self.arms if arm != "none"):
            for space in SPACES:
                yield self._lowers(space, arm, "none", "regularization lowers the first {} score")
            yield self._metric_kept(arm)
            if arm in SELECTED:
                yield self._metric_grows(arm)
            if arm in SELECTED and "all" in self.arms:
                for space in SPACES:
                    yield self._lowers(
                        space, arm, "all", "the {} score is lower with selected bars than with all"
                    )

    def _rises(self, space: str) -> Tested:
        none = self.arms["none"]
        statement = f"plain fine-tuning raises the first {space} score"
        claim = self._claim(f"rises-{space}", "none", "STL §4", statement, "greater")
        return claim, none[f"{space}_after"] - none[f"{space}_before"]  # of the validation rows

    def _lowers(self, space: str, arm: str, baseline: str, statement: str) -> Tested:
        claim = self._claim(
            f"lowers-{space}-of-{baseline}",
            arm,
            self.published.source,
            statement.format(space),
            "less",
            published=self.published.difference(space, arm, baseline),
        )
        return claim, self.arms[arm][f"{space}_1"] - self.arms[baseline][f"{space}_1"]

    def _metric_kept(self, arm: str) -> Tested:
        statement = f"{self.metric} does not suffer (by {MARGIN})"
        claim = self._claim("metric-kept", arm, "STL Table 2", statement, "no_worse", margin=MARGIN)
        return claim, self._metric_difference(arm)

    def _metric_grows(self, arm: str) -> Tested:
        statement = f"{self.metric} grows slightly"
        claim = self._claim("metric-grows", arm, "STL Table 2", statement, "greater")
        return claim, self._metric_difference(arm)

    def _metric_difference(self, arm: str) -> pd.Series:
        return self.arms[arm].value - self.arms["none"].value

    def _claim(
        self, name: str, arm: str, source: str, statement: str, direction: Direction, **options
    ) -> Claim:
        return Claim(
            id=f"stl:{name}:{self.model}:{self.task}:{arm}",
            source=source,
            statement=statement,
            task=self.task,
            arm=arm,
            direction=direction,
            **options,
        )


class _Published:
    """STL's Table 3: its own cell where it has the model and task, else the mean of what is near.

    `source` says which: a mean over other models or tasks tells the size to expect and no more.
    """

    def __init__(self, model: str, task: str) -> None:
        table = pd.read_csv(data_dir() / "published" / "stl_table3.csv")
        same_model = table[table.model == model.rsplit("/", 1)[-1]]
        table = same_model if len(same_model) else table
        same_task = table[table.task == task]
        self.table = same_task if len(same_task) else table
        cells = len(self.table[["model", "task"]].drop_duplicates())
        exact = len(same_model) and len(same_task)
        self.source = "STL Table 3" if exact else f"STL Table 3, mean of {cells}"

    def difference(self, space: str, arm: str, baseline: str) -> float:
        """First score of `arm` minus that of `baseline`, as printed: six decimals are exact."""
        return round(self._mean(space, arm) - self._mean(space, baseline), 6)

    def _mean(self, space: str, arm: str) -> float:
        name = "selected" if arm in SELECTED else arm
        table = self.table
        rows = table[(table.space == space) & (table.k == 1) & (table.arm == name)]
        return float(rows.score.mean())
