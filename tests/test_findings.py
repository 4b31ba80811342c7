"""Sentences of README, the book's first page and chapter 07, held by the records behind them."""

import json
import runpy
from pathlib import Path

import pandas as pd
import pytest

from shrink_utils.study.statistics import paired_interval

ROOT = Path(__file__).resolve().parents[1]
DECIDE = runpy.run_path(str(ROOT / "data" / "reference" / "strength" / "decide.py"))
decide, runs_of = DECIDE["decide"], DECIDE["runs_of"]
PAGES = {
    name: " ".join((ROOT / name).read_text(encoding="utf-8").split())
    for name in ("README.md", "docs/book/index.md")
}
CHAPTER = json.loads((ROOT / "notebooks" / "07_ablation.ipynb").read_text(encoding="utf-8"))
PRINTED = "".join(
    line
    for cell in CHAPTER["cells"]
    for output in cell.get("outputs", [])
    for line in output.get("text", [])
)


@pytest.fixture(scope="module")
def tables():
    folder = ROOT / "data" / "reference" / "strength"
    names = ("runs", "evaluations", "correct", "steps", "clouds")
    return {name: pd.read_parquet(folder / f"{name}.parquet") for name in names}


def _short(number: float, digits: int = 2) -> str:
    """Without its sign and the zero before the point."""
    return f"{abs(number):.{digits}f}".removeprefix("0")


def _verdicts(tables) -> pd.Series:
    return decide(tables).set_index("id").verdict


def test_what_is_said_at_equal_validation_score_is_printed_by_the_chapter():
    for target, lost in (("0.40", "0.010"), ("0.30", "0.016"), ("0.20", "0.005")):
        assert f"validation score {target}: correct    prominent − all -{lost} [" in PRINTED
    for quantity, differs in (("within_1  ", "+0.003 [-0.005, +0.012]"),
                              ("silhouette", "+0.001 [-0.012, +0.014]")):  # fmt: skip
        assert f"{quantity} at equal validation score {differs}" in PRINTED
    for page in PAGES.values():
        assert "by +.003 [−.005, .012] within classes and +.001 [−.012, .014] in silhouette" in page
    assert ".40, .30 and .20, they keep .010, .016 and .005 less" in PAGES["README.md"]


def test_the_verdicts_that_are_called_edges_turn_with_one_step_or_one_seed(tables):
    others = {name: table[table.seed != 200] for name, table in tables.items()}
    assert _verdicts(others)[["S6", "S8"]].tolist() == ["open", "open"]
    steps = tables["steps"].query("epochs == 3 and step >= 16")  # nine, not eight
    keys = ["arm", "weight", "seed"]
    nine = steps.groupby(keys).centred_1.mean().rename("nine").reset_index()
    runs = tables["runs"].merge(nine, on=keys, how="left")
    runs["centred_1"] = runs.nine.where(runs.epochs == 3, runs.centred_1)
    turned = _verdicts(tables | {"runs": runs})
    assert turned[["S2", "S3"]].tolist() == ["open", "supported"]


def test_raw_scores_and_the_price_of_isoscore_are_those_of_the_records(tables):
    runs = tables["runs"].query("epochs == 10")
    raw = runs.pivot(index="seed", columns=["arm", "weight"], values="raw_1")
    loss = (raw["prominent", 1.0] - raw["all", 4.0]).mean()
    cells = runs_of(tables, 10)
    reward, bars, none = (cells[k] for k in (("isoscore", 0.3), ("prominent", 1.0), ("none", 0.0)))
    fall = [_short((cell.score - none.score).mean()) for cell in (reward, bars)]
    assert abs((reward.accuracy - bars.accuracy).mean()) < 0.004
    assert paired_interval(reward.silhouette - bars.silhouette).high < 0
    beside = pd.read_csv(ROOT / "data/reference/strength/beside.csv").set_index("comparison")
    at = beside.loc["accuracy at the score .15: prominent − isoscore"]
    kept = f"{_short(at.estimate, 3)} [{_short(at.high, 3)}, {_short(at.low, 3)}]"
    for page in PAGES.values():
        assert f"ten epochs, it is a loss of {_short(loss)}" in page
        assert f"lowers the score by {fall[0]}, weight 1 of prominent bars by {fall[1]}" in page
        assert f"keeps {kept} more than prominent bars at the score .15" in page


def test_the_price_of_the_regularizer_has_the_planned_interval(tables):
    """Clustered by seed and row."""
    cells = runs_of(tables, 3)
    lost = paired_interval(cells["none", 0.0].correct - cells["prominent", 1.0].correct)
    estimate, low, high = (_short(x, 3) for x in lost[:3])
    assert lost.low < 0
    beside = pd.read_csv(ROOT / "data/reference/strength/beside.csv").set_index("comparison")
    most = _short(beside.estimate["silhouette: prominent 1 − none"].min())
    for page in PAGES.values():
        assert f"lower by {estimate} [−{low}, {high}] on products" in page
        assert f"falls in every task, by .03 to {most}" in page


def test_direction_1_is_the_difference_of_the_class_means_and_the_loss_doubles(tables):
    clouds = tables["clouds"]
    assert clouds.groupby("epochs").class_cosine.mean().min() > 0.98
    long = tables["evaluations"].query("epochs == 10 and arm in ['prominent', 'all']")
    loss = long.groupby(["arm", "weight", "epoch"]).loss.mean().unstack()
    assert (loss[10] > 2 * loss[2]).all()
    gap = long.pivot_table(index="epoch", columns=["arm", "weight"], values="centred_1")
    above = gap["all", 4.0] > gap["prominent", 1.0]
    assert not above.loc[1:3].any() and above.loc[4:].all()
