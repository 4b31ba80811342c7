"""Sentences of the findings, of the page of evidence and of 07b, held by their records."""

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study.ablation import interpolate_frontier
from shrink_utils.study.statistics import paired_interval, pseudo_values

ROOT = Path(__file__).resolve().parents[1]
DECIDE = runpy.run_path(str(ROOT / "data" / "reference" / "strength" / "decide.py"))
decide, runs_of = DECIDE["decide"], DECIDE["runs_of"]
HELDOUT = runpy.run_path(str(ROOT / "data" / "reference" / "heldout" / "decide.py"))
FINDINGS, EVIDENCE = (
    " ".join((ROOT / "docs" / "book" / name).read_text(encoding="utf-8").split())
    for name in ("findings.md", "evidence.md")
)
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
CHAPTER = json.loads((ROOT / "notebooks" / "07b_equal_strength.ipynb").read_text(encoding="utf-8"))
OUTPUTS = [output for cell in CHAPTER["cells"] for output in cell.get("outputs", [])]
PRINTED = "".join(line for output in OUTPUTS for line in output.get("text", []))
CAPTIONS = "".join(
    line for output in OUTPUTS for line in output.get("data", {}).get("text/markdown", [])
)


@pytest.fixture(scope="module")
def tables():
    folder = ROOT / "data" / "reference" / "strength"
    names = ("runs", "evaluations", "correct", "steps", "clouds")
    return {name: pd.read_parquet(folder / f"{name}.parquet") for name in names}


def _short(number: float, digits: int = 2) -> str:
    """Without its sign and the zero before the point."""
    return f"{abs(number):.{digits}f}".removeprefix("0")


def _points(number: float, digits: int = 1) -> str:
    """Hundredths, without a sign."""
    return f"{abs(100 * number):.{digits}f}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _verdicts(tables) -> pd.Series:
    return decide(tables).set_index("id").verdict


def test_what_is_said_at_equal_validation_score_is_printed_by_the_chapter_or_recorded(tables):
    for target, lost in (("0.40", "0.010"), ("0.30", "0.016"), ("0.20", "0.005")):
        said = f"score of validation rows {target}: accuracy of prominent − all -{lost} ["
        assert said in PRINTED
    last = tables["evaluations"].query("epochs == 10 and epoch == 10")
    own, others = last[last.arm == "prominent"], last[last.arm != "prominent"]
    differ = []
    for quantity in ("within_1", "silhouette"):
        curve = np.polynomial.Polynomial.fit(others.centred_1, others[quantity], deg=2)
        differ.append(_with_interval(paired_interval(own[quantity] - curve(own.centred_1))))
    assert f"by +{differ[0]} within classes and +{differ[1]} in silhouette" in EVIDENCE
    assert "*validation* rows, 40, 30 and 20, they keep 1.0, 1.6 and 0.5 less" in EVIDENCE


def test_all_bars_that_were_equivalent_in_training_end_above_selected_bars_on_validation_rows(
    tables,
):
    late = tables["evaluations"].query("epochs == 10 and epoch >= 8")
    late = late.groupby(["seed", "arm", "weight"]).centred_1.mean().unstack(["arm", "weight"])
    above = paired_interval(late["all", 4.0] - late["prominent", 1.0])
    assert above.low > 0
    said = f"over ten epochs all bars at 4 end {_short(above.estimate, 3)} *above* prominent bars"
    assert said in _prose("07b_equal_strength.ipynb")
    assert _verdicts(tables)["S6"] == "equivalent"


def test_what_equal_roundness_costs_starts_from_what_all_bars_keep(tables):
    cells, states = runs_of(tables, 3), tables["evaluations"].query("epochs == 3 and epoch == 3")
    scored = states.groupby(["arm", "weight"]).centred_1.mean()
    right = []
    for arm in ("all", "prominent"):
        keys = [("none", 0.0), *(key for key in sorted(cells) if key[0] == arm)]
        place = interpolate_frontier([scored[name, weight or 1.0] for name, weight in keys], 0.40)
        right.append(place.of([cells[key].correct.mean() for key in keys]))
    kept = " and ".join(f"{100 * share:.1f} %" for share in right)
    assert f"with all and with chosen bars: {kept} (24 steps, score 40 %)" in FINDINGS


def test_what_ten_epochs_leave_is_that_of_the_records(tables):
    states = tables["evaluations"].query("epochs == 10 and epoch >= 8")
    last = states.groupby(["arm", "weight"]).centred_1.mean()
    cells = runs_of(tables, 10)
    pair = ("all", 4.0), ("prominent", 1.0)
    end, least = (
        _points(others - bars, 0)
        for others, bars in (
            (last[pair[0]], last[pair[1]]),
            [cells[key].best_score.mean() for key in pair],
        )
    )
    assert f"they end {end} points above them (last three epochs, exploratory" in EVIDENCE
    assert f"they lie {least} below them (S8, at an edge)" in EVIDENCE
    short = runs_of(tables, 3)
    accuracy = {key: short[key].correct.mean() for key in (("none", 0.0), ("prominent", 2.0))}
    lost = accuracy["none", 0.0] - accuracy["prominent", 2.0]
    assert round(100 * lost) == 5  # of weight 2, in README
    beside = pd.read_csv(ROOT / "data/reference/heldout/beside.csv").set_index("comparison")
    later = beside.loc["correct: prominent 2 − none"]
    low, high = _points(later.low), _points(later.high)
    assert f"lose {_points(lost)} points in 24 steps (" in EVIDENCE
    assert "), and none in ten epochs (third analysis: " in EVIDENCE
    assert later.low < 0 < later.estimate
    assert f"{_points(later.estimate)} more than without a regularizer [−{low}, {high}]" in EVIDENCE


def test_bars_at_weight_1_lower_more_than_all_bars_by_what_is_said(tables):
    recorded = {
        of: pd.read_parquet(ROOT / "data" / "reference" / of / "runs.parquet")
        for of in ("cohort", "glue")
    }
    runs = pd.concat(recorded.values()).query("epochs == 10 and weight == 1")
    means = runs.groupby(["task", "arm"]).centred_1.mean()
    products, cola, mrpc = (
        _points(means[task, "all"] - means[task, "prominent"], 0)
        for task in ("sentiment_products", "cola", "mrpc")
    )
    lower = f"lower by {products} points (products), {cola} (CoLA) and {mrpc} (MRPC; open"
    assert lower in EVIDENCE
    strong = pd.read_csv(ROOT / "data/reference/strength/hypotheses.csv").difference
    at = f"keep {_points(strong[1])} points less accuracy (S2, at an edge), and at 10 they keep"
    assert f"{at} {_points(strong[2])} less (S3)" in EVIDENCE


def test_when_plain_runs_rise_and_how_far_isoscore_reaches_are_those_of_the_records(tables):
    steps = pd.read_parquet(ROOT / "data" / "reference" / "cohort" / "steps.parquet")
    plain = steps.query("task == 'sentiment_products' and arm == 'none' and rows == 64")
    rise = plain.groupby(["epochs", "step"]).centred_1.mean().ge(0.20)
    first = [rise[epochs].idxmax() for epochs in (3, 10)]
    said = "runs of 24 steps pass the score 20 at step {}, those of ten epochs at step {}"
    assert said.format(*first) in EVIDENCE
    lowest = {}
    for (arm, _), cell in runs_of(tables, 3).items():
        lowest[arm] = min(cell.score.mean(), lowest.get(arm, 1))
    assert f"lies above, but ends at {_short(lowest['isoscore'], 3)}" in CAPTIONS
    assert max(lowest["prominent"], lowest["all"]) < 0.10


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
    fall = [_points((cell.score - none.score).mean(), 0) for cell in (reward, bars)]
    assert abs((reward.accuracy - bars.accuracy).mean()) < 0.004
    assert paired_interval(reward.silhouette - bars.silhouette).high < 0
    beside = pd.read_csv(ROOT / "data/reference/strength/beside.csv").set_index("comparison")
    at = beside.loc["accuracy at the score .15: prominent − isoscore"]
    kept = f"{_points(at.estimate)} points [{_points(at.high)}, {_points(at.low)}]"
    assert f"ten epochs, it is a loss of {_points(loss, 0)}." in EVIDENCE
    lowers = f"lowers the score by {fall[0]} points, weight 1 of prominent bars by {fall[1]} "
    assert lowers in EVIDENCE
    assert f"keeps {kept} more than prominent bars at the score 15" in EVIDENCE


def test_the_price_of_the_regularizer_has_the_planned_interval(tables):
    """Clustered by seed and row."""
    cells = runs_of(tables, 3)
    lost = paired_interval(cells["none", 0.0].correct - cells["prominent", 1.0].correct)
    estimate, low, high = (_points(x) for x in lost[:3])
    assert lost.low < 0
    beside = pd.read_csv(ROOT / "data/reference/strength/beside.csv").set_index("comparison")
    most = _short(beside.estimate["silhouette: prominent 1 − none"].min())
    assert f"lower by {estimate} points [−{low}, {high}] on products" in EVIDENCE
    assert f"falls in every task, by .03 to {most}" in EVIDENCE


def test_rounder_on_all_four_tasks_and_looser_by_what_is_said():
    reference = ROOT / "data" / "reference"
    of = ("cohort", "glue")
    runs = pd.concat(pd.read_parquet(reference / name / "runs.parquet") for name in of)
    score = runs[runs.weight == 1].groupby(["task", "arm"]).centred_1.mean().unstack()
    assert len(score) == 4 and (score.prominent < score.none).all()
    clouds = pd.read_parquet(reference / "cohort" / "clouds.parquet")
    ours = clouds.query("task == 'sentiment_products' and epochs == 3 and weight == 1")
    apart = ours.groupby("arm").silhouette.mean()
    falls = f"silhouette falls from {apart['none']:.2f} to {apart['prominent']:.2f}."
    assert falls in FINDINGS


def test_how_much_of_direction_1_lies_between_the_class_means_is_that_of_the_records(tables):
    short = tables["evaluations"].query("epochs == 3 and epoch == 3")
    long = pd.read_parquet(ROOT / "data/reference/heldout/evaluations.parquet")
    long = long[long.epoch == long.groupby("task", observed=True).epoch.transform("max")]
    cells = {
        (name, arm): rows[(rows.arm == arm) & (rows.weight == 1)]
        for name, rows in (("short", short), *long.groupby("task", observed=True))
        for arm in ("none", "prominent")
    }
    products, later, mrpc, cola = (
        _percent((cells[name, "none"].between / cells[name, "none"].centred_1).mean())
        for name in ("short", "sentiment_products", "mrpc", "cola")
    )
    plain = f"{products} (products, 24 steps), {later} (ten epochs), {mrpc} (MRPC) and {cola} (CoLA"
    assert plain in EVIDENCE
    chapter = f"{products} of it on products, {later} after ten epochs, {mrpc} on MRPC and {cola}"
    assert chapter in _prose("08_geometry_after_finetuning.ipynb")
    inside = [f"{100 - int(share.split()[0])} %" for share in (products, later)]
    assert (
        f"{inside[0]} of its variance lies inside them (after ten epochs {inside[1]};" in FINDINGS
    )
    falls = " and ".join(
        "from {} to {} ({})".format(
            *(_points(cells[name, arm].within_1.mean(), 0) for arm in ("none", "prominent")), when
        )
        for name, when in (("short", "24 steps"), ("sentiment_products", "ten epochs"))
    )
    assert f"within classes the score falls {falls}" in EVIDENCE


def _row(folder: str, claim: str) -> pd.Series:
    claims = pd.read_csv(ROOT / "data" / "reference" / folder / "claims.csv")
    return claims.set_index("claim").loc[claim]


def _in_points(row) -> str:
    """Estimate and interval in hundredths, with the sign of print."""
    numbers = [f"{100 * x:+.1f}".replace("-", "−") for x in (row.estimate, row.low, row.high)]
    return f"{numbers[0]} [{numbers[1].lstrip('+')}, {numbers[2].lstrip('+')}]"


def test_the_three_rows_on_a_larger_encoder_that_were_fixed_before_are_told():
    names = ("lowers-centred-of-none", "metric-kept", "lowers-centred-of-all")
    score, metric, choosing = (
        _row("models", f"stl:{name}:mpnet:sentiment_products:prominent") for name in names
    )
    assert (score.adjusted, metric.adjusted, choosing.adjusted) == (
        "agrees", "inconclusive", "inconclusive",
    )  # fmt: skip
    assert f"{_in_points(score).replace(' [', ' points [')}, adjusted *agrees*." in EVIDENCE
    assert f"Whether accuracy suffers, {_in_points(metric).replace(' [', ' points [')}," in EVIDENCE
    assert f"choosing lowers the score, {_in_points(choosing)}, stays open." in EVIDENCE
    assert "mpnet, gets rounder, too; with three seeds the rest is open there" in README
    assert "MRPC, CoLA; mpnet)" in FINDINGS


def _nats(found, digits: int = 3) -> str:
    return f"[{_short(found.low, digits)}, {_short(found.high, digits)}]"


def test_what_the_rewards_cost_in_validation_loss_is_that_of_the_records():
    folder = ROOT / "data" / "reference"
    beside = pd.read_csv(folder / "heldout" / "beside.csv").set_index(["task", "comparison"])
    cola = beside.loc["cola", "loss: prominent 1 − none"]
    assert f"by {_short(cola.estimate, 3)} nats {_nats(cola)} in the third analysis" in EVIDENCE
    for task in ("sentiment_products", "mrpc"):  # within chance
        row = beside.loc[task, "loss: prominent 1 − none"]
        assert row.low < 0 < row.high
    short = pd.read_parquet(folder / "cohort" / "evaluations.parquet")
    short = short[(short.epochs == 3) & (short.epoch == 3)]
    short = short[short.arm.eq("none") | short.arm.eq("prominent") & short.weight.eq(1)]
    loss = short.pivot_table(index="seed", columns=["task", "arm"], values="loss")
    found = {
        task: paired_interval((loss[task, "prominent"] - loss[task, "none"]).dropna())
        for task in ("sentiment_products", "sentiment_movies")
    }
    told = " and ".join(
        f"{_short(row.estimate, 3)} {_nats(row)} on {task.partition('_')[2]}"
        for task, row in found.items()
    )
    assert f"in 24 steps by {told}." in EVIDENCE
    late = pd.read_parquet(folder / "heldout" / "rows.parquet")  # by seed and row
    late = late[(late.arm == "prominent") & (late.weight == 1) | (late.arm == "isoscore")]
    loss = late.pivot(index=["task", "seed"], columns=["arm", "row"], values="loss").astype(float)
    dearer = {
        task: paired_interval((of.isoscore - of.prominent).dropna(axis=1).to_numpy())
        for task, of in loss.groupby("task", observed=True)
    }
    products, mrpc, cola = (dearer[task] for task in ("sentiment_products", "mrpc", "cola"))
    assert f"by {_short(products.estimate, 3)} nats on products {_nats(products)}" in EVIDENCE
    for row, task in ((mrpc, "MRPC"), (cola, "CoLA")):
        interval = f"[{'−' * (row.low < 0)}{_nats(row)[1:]}"
        assert f"{_short(row.estimate, 3)} {interval}" in EVIDENCE.replace(f" on {task}", "")
    assert products.low > 0 and mrpc.low > 0 > cola.low  # "a higher loss", on two of three
    assert "at the same accuracy; its late loss is higher" in FINDINGS


def test_elongated_directions_are_counted_by_both_means():
    rows = {
        task: _row(folder, f"rp:elongated-pretrained:minilm:{task}:none")
        for folder, task in (
            ("cohort", "sentiment_movies"), ("cohort", "sentiment_products"), ("glue", "cola"),
        )
    }  # fmt: skip
    told = [f"{row.estimate:.1f}" for row in rows.values()]
    assert all(row.low > 0 for row in rows.values())
    assert f"grow in 24 steps on movies ({told[0]}) and products ({told[1]}), and" in EVIDENCE
    long = _row("cohort", "rp:elongated-pretrained:minilm:sentiment_products (10 epochs):none")
    mrpc = _row("glue", "rp:elongated-pretrained:minilm:mrpc:none")
    assert long.low < 0 < long.high and mrpc.low < 0 < mrpc.high
    rest = f"on products (−{abs(long.estimate):.1f}), nor surely on MRPC ({mrpc.estimate:.1f})"
    assert f"and on CoLA ({told[2]}), but not in ten epochs {rest}" in EVIDENCE
    for mean in ("own", "pretrained"):
        assert _row("models", f"rp:elongated-{mean}:mpnet:sentiment_products:none").high < 0


def test_choosing_does_not_lower_the_score_of_24_steps():
    fixed = pd.read_csv(ROOT / "data" / "reference" / "cohort" / "decided.csv").set_index("id")
    h6 = fixed.loc["H6"]
    assert fixed.verdict[["H5", "H6"]].tolist() == ["equivalent"] * 2
    low, high = (f"{100 * x:.1f}".replace("-", "−") for x in (h6.low, h6.high))
    assert f"on products {_points(h6.estimate)} points *higher* [{low}, {high}]." in EVIDENCE


def test_direction_1_is_the_difference_of_the_class_means_and_the_loss_doubles(tables):
    clouds = tables["clouds"]
    assert clouds.groupby("epochs").class_cosine.mean().min() > 0.98
    long = tables["evaluations"].query("epochs == 10 and arm in ['prominent', 'all']")
    loss = long.groupby(["arm", "weight", "epoch"]).loss.mean().unstack()
    assert (loss[10] > 2 * loss[2]).all()
    gap = long.pivot_table(index="epoch", columns=["arm", "weight"], values="centred_1")
    above = gap["all", 4.0] > gap["prominent", 1.0]
    assert not above.loc[1:3].any() and above.loc[4:].all()


def test_replaced_ingredients_and_the_entropy_of_a_plain_run_are_those_of_the_records():
    beside = pd.read_csv(ROOT / "data/reference/strength/beside.csv").set_index("comparison")
    arms = ("whole_batch", "shuffled_classes", "longest", "shortest")
    rows = beside.loc[[f"correct: {arm} 1 − prominent at its score" for arm in arms]]
    assert ((rows.low < 0) & (rows.high > 0)).all()
    widest = rows[["low", "high"]].abs().max(axis=None)
    assert f"within {_points(widest)} points (planned" in EVIDENCE
    steps = pd.read_parquet(ROOT / "data" / "reference" / "cohort" / "steps.parquet")
    plain = steps.query("arm == 'none' and epochs == 3")
    means = plain.groupby(["task", "seed", (plain.step - 1) // 8]).entropy_all.mean().unstack() / 2
    for task, first in (("sentiment_products", "3.40"), ("sentiment_movies", "3.42")):
        of_task = means.loc[task]
        gained = [paired_interval(of_task[epoch] - of_task[0]) for epoch in (1, 2)]
        assert f"{of_task[0].mean():.2f}" == first and first in EVIDENCE
        assert 0 < max(row.estimate for row in gained) < 0.01
        assert min(row.low for row in gained) > -0.002


@pytest.fixture(scope="module")
def heldout():
    """Tables of the third analysis, its runs on products and its verdicts, by id."""
    tables = HELDOUT["read_tables"]()
    names = HELDOUT["PRODUCTS"], HELDOUT["FIRST"][HELDOUT["PRODUCTS"]]
    decided = pd.read_csv(ROOT / "data" / "reference" / "heldout" / "hypotheses.csv")
    return tables, HELDOUT["runs_of"](tables, *names), decided.set_index("id")


def test_what_the_third_analysis_decided_about_strength_is_what_is_said(heldout):
    _, runs, decided = heldout
    verdicts = "open, not tested, equivalent, equivalent, open, open"
    assert ", ".join(decided.verdict[:6]) == verdicts
    e1 = decided.loc["E1"]
    low, high = (f"{100 * bound:.1f}".replace("-", "−") for bound in (e1.low, e1.high))
    assert f"end {_points(e1.estimate)} points [{low}, {high}] above prominent bars" in EVIDENCE
    seeds, none = range(8), HELDOUT["NONE"]
    kept = [
        HELDOUT["read_off"](runs, points, seeds, by="score", target=0.78, of="correct").value.mean()
        for points in (HELDOUT["SWEEP"], [none, HELDOUT["PROMINENT"]])
    ]
    right = " and ".join(f"{100 * share:.1f} %" for share in kept)
    assert f"; {right} (ten epochs, score 78 %)" in FINDINGS


def test_what_ten_epochs_of_the_third_analysis_leave_is_what_is_said(heldout):
    _, runs, _ = heldout
    pair = ("all", 8.0), HELDOUT["PROMINENT"]
    others, chosen = (runs[key].score_least.mean() for key in pair)
    below = f"all bars at 8 lie {_points(chosen - others, 0)} points below prominent bars"
    assert f"At the least validation loss, {below} (exploratory)" in EVIDENCE
    bars, reward = runs[HELDOUT["PROMINENT"]], runs[HELDOUT["ISOSCORE"]]
    assert abs((bars.correct - reward.correct).mean()) < 0.004
    plain, chosen, without = (
        _percent(cell.score.mean()) for cell in (runs[HELDOUT["NONE"]], bars, reward)
    )
    assert f", after ten epochs {plain} → {chosen}. In training" in FINDINGS
    without_bars = runs[HELDOUT["NONE"]].correct
    assert paired_interval(bars.correct - without_bars).low < 0
    right = " → ".join(f"{100 * correct.mean():.1f} %" for correct in (without_bars, bars.correct))
    assert f"After ten epochs: {right}, within chance." in FINDINGS
    assert f"bars {chosen}, IsoScore★ (weight 0.3, no bars) {without}, at the same" in FINDINGS


def test_what_a_rounder_space_is_good_for_is_decided_and_has_the_means_that_are_said(heldout):
    tables, _, decided = heldout
    verdicts = "good for, good for, open, open, open, worse, open, open"
    assert ", ".join(decided.verdict[6:]) == verdicts
    below = decided[decided.beyond_high < 0].query("verdict == 'open'")
    assert below.index.tolist() == ["U7", "U8"]  # but for the plain model, decided
    told = " and ".join(
        f"{_short(row.beyond, 3)} [{_short(row.beyond_high, 3)}, {_short(row.beyond_low, 3)}]"
        for row in below.itertuples()
    )
    assert f"(U7, U8: open against the plain model, but {told} of area below" in EVIDENCE
    uses = tables["uses"].query("moment == 'end'")
    mean = uses.groupby(["use", "arm", "treatment"]).value.mean()
    bits, domain = mean["one_bit_in"], mean["domain"]
    kept = " → ".join(_percent(bits[arm, "plain"]) for arm in ("none", "prominent"))
    assert f"nearest texts, signs alone find, after ten epochs: {kept}." in FINDINGS
    free = _percent(bits["none", "whitened"])
    assert f"Without it, whitened, which is free: {free}." in FINDINGS
    gains = [
        _points(bits[arm, "plain"] - bits["none", treatment], 0)
        for treatment in ("plain", "rotated")
        for arm in ("prominent", "isoscore")
    ]
    more = "{} and {} points more of the ten nearest texts than the plain space, {} and {} more"
    assert more.format(*gains) in EVIDENCE
    lost = _points(domain["none", "plain"] - domain["isoscore", "plain"])
    assert f"The probe is worse with IsoScore★, by {lost} points" in EVIDENCE


def test_the_number_that_is_followed_once_is_that_of_the_records_at_every_step(
    tables, monkeypatch, capsys
):
    page = (ROOT / "docs" / "book" / "one_number.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], {})
    assert f"```text\n{capsys.readouterr().out}```" in page
    s3 = pd.read_csv(ROOT / "data/reference/strength/decided.csv").set_index("id").loc["S3"]
    interval = [f"{abs(x):.3f}" for x in (s3.estimate, s3.low, s3.high)]
    assert "*{}*, −{} [−{}, −{}], twenty seeds".format(s3.verdict, *interval) in page
    point = runs_of(tables, 3)["prominent", 3.0]
    score, accuracy = (_short(of.mean(), 3) for of in (point.score, point.accuracy))
    assert f"have the score {score} and the accuracy {accuracy}," in page
    steps = tables["steps"].query("epochs == 3 and arm == 'prominent' and weight == 3")
    eight = steps.query("seed == 200 and step >= 17").sort_values("step").centred_1
    *first, last = (_short(score, 3) for score in eight)
    assert f"steps.parquet): {', '.join(first)} and {last}." in page
    assert f"Its score, {_short(eight.mean(), 3)}, is the mean" in page


def test_what_keeps_neighbours_for_nothing_is_said_beside_what_the_reward_keeps(heldout):
    uses = heldout[0]["uses"].query("arm != 'all'")
    mean = uses.groupby(["use", "arm", "moment", "treatment"]).value.mean()
    bits = mean["one_bit_in"]
    stopped, bars, whitened, untrained, cut = (
        _percent(bits[key])
        for key in (
            ("none", "least", "plain"),
            ("prominent", "end", "plain"),
            ("none", "end", "whitened"),
            ("untrained", "end", "plain"),
            ("none", "end", "all_but_top"),
        )
    )
    kept = f"keeps {stopped}, prominent bars {bars}, the plain space whitened {whitened}; the"
    assert f"{kept} untrained encoder keeps {untrained}." in EVIDENCE
    assert f"the plain space keeps {cut}, but it loses the task with them." in EVIDENCE
    right = mean["refit_accuracy_in", "none", "end"]
    assert right["all_but_top"] < right["plain"] - 0.2


def _prose(chapter: str) -> str:
    """Markdown of a notebook."""
    cells = json.loads((ROOT / "notebooks" / chapter).read_text(encoding="utf-8"))["cells"]
    return "".join(line for c in cells if c["cell_type"] == "markdown" for line in c["source"])


def _with_interval(row) -> str:
    estimate, low, high = (_short(x, 3) for x in (row.estimate, row.low, row.high))
    assert row.low < 0 < row.high
    return f"{estimate} [−{low}, {high}]"


def test_chapters_07b_and_11_say_the_intervals_of_the_third_analysis(heldout):
    e1, e5, e6 = (_with_interval(heldout[2].loc[name]) for name in ("E1", "E5", "E6"))
    chapter = _prose("07b_equal_strength.ipynb")
    assert f"whether all bars at weight 8 end as round is open ({e1})" in chapter
    claims = _prose("11_claims.ipynb")
    e1, e5, e6 = (text.replace(".", "0.") for text in (e1, e5, e6))  # 11 writes zeros
    assert f"at weight 8 they end {e1} above (products, E1), at 4 by {e5} (MRPC, E5)" in claims
    assert f"and {e6} (CoLA, E6)" in claims
    beside = pd.read_csv(ROOT / "data/reference/heldout/beside.csv").set_index("comparison")
    later = beside.loc["correct: prominent 2 − none"]
    low, high = _points(later.low), _points(later.high)
    assert later.low < 0 < later.estimate
    kept = f"none in ten epochs (+{_points(later.estimate)} [−{low}, {high}], not adjusted)"
    assert kept in chapter
    e3 = heldout[2].loc["E3"]
    lost = f"keep {_points(e3.estimate)} points less [−{_points(e3.high)}, {_points(e3.low)}]"
    assert e3.estimate < 0 and lost in chapter


def test_what_the_fourth_analysis_decided_is_what_is_said():
    folder = ROOT / "data" / "reference" / "objectives"
    decided = pd.read_csv(folder / "hypotheses.csv").set_index("id")
    assert decided.verdict["B4"] == "as the paper"
    assert set(decided.index[decided.verdict == "opposite"]) == {"V2", "R1"}
    assert (decided.verdict == "open").sum() == 9 and len(decided) == 12

    def said(name: str, digits: int) -> str:
        row = decided.loc[name]
        numbers = (f"{x:.{digits}f}" for x in (row.estimate, row.all_low, row.all_high))
        numbers = (x.replace("-", "−").replace("0.", ".", 1) for x in numbers)
        return "{} [{}, {}]".format(*numbers)

    for name in ("V2", "S1", "B1"):
        assert said(name, 3) in EVIDENCE
    estimate, _, interval = said("B4", 3).partition(" ")
    assert f"(B4: {estimate} nats {interval})" in EVIDENCE
    assert f"(B2: {said('B2', 3)} of a similarity)" in EVIDENCE
    row = decided.loc["R1"]
    low, high = f"{row.all_low:.1f}", f"{row.all_high:.2f}".replace("0.", ".")
    assert f"{row.estimate:.1f} [{low}, {high}]".replace("-", "−") in EVIDENCE
    places = pd.read_parquet(folder / "places.parquet").query("part == 'objectives'")
    places = places[(places.rule == "euler") & (places.layer > 0) & places.steps.notna()]
    component = places.component.astype(str).str.removeprefix("cross ")
    sums = places.groupby(["objective", component], observed=True)[["hurts", "steps"]].sum()
    shares = (100 * sums.hurts / sums.steps).drop("LayerNorm", level=1, errors="ignore")
    by_component = f"of a fixed set ({shares.min():.0f} to {shares.max():.0f} by component), where"
    published = pd.read_csv(ROOT / "data/published/lca_positive_steps.csv")
    theirs = published.groupby("objective").agg({"positive": "sum", "updates": "sum"})
    trunk = places.groupby("objective", observed=True)[["hurts", "steps"]].sum()
    share = (trunk.hurts / trunk.steps).rename(str)
    times = share / (theirs.positive / (6 * theirs.updates))  # six layers
    least, most = (f"{round(x, -int(np.log10(x)) + 1):,.0f}" for x in (times.min(), times.max()))
    totals = f"28 to 39 of 100 hurt: {least} to {most} times the paper's totals."
    assert totals in _prose("10_training_dynamics.ipynb")
    ours, paper = f"{100 * share.min():.0f} to {_percent(share.max())}", share / times
    assert f"{ours} of the trunk's block-steps raise the loss {by_component} their" in EVIDENCE
    assert f"report has at most {100 * paper.max():.1f} %;" in EVIDENCE
    closure = pd.read_parquet(folder / "closure.parquet").query("part == 'objectives'")
    sums = closure[closure.rule == "euler"].groupby(["objective", "seed"], observed=True)
    sums = sums[["parts", "change"]].sum()
    assert ((sums.parts - sums.change).abs() / sums.change.abs()).min() > 0.3


def test_what_all_runs_made_once_more_on_one_device_are_said_to_show():
    folder = ROOT / "data" / "reference" / "strength"
    first, again = (
        pd.read_csv(path / "decided.csv").set_index("id")
        for path in (folder, folder / "one_device")
    )
    turned = again.verdict[again.verdict != first.verdict]
    assert dict(turned) == {"S4": "more", "S5": "more", "S6": "open"}
    page = " ".join((ROOT / "docs" / "verdicts.md").read_text("utf-8").split())
    assert "S4 and S5 are then *more*, S6 is *open*, and the others are as they stand" in page
    assert "give the same verdicts but for S4, S5 (*more*) and S6 (open)" in README
    prose = " ".join("".join(cell["source"]) for cell in CHAPTER["cells"])
    moved = _short((again.estimate - first.estimate).abs().max(), 3)
    assert f"The differences themselves move by {moved} at most," in prose
    lost = [_points(again.estimate[key]) for key in ("S2", "S3", "S1")]
    assert "other draws of dropout, give {}, {} and {}.".format(*lost) in EVIDENCE
    beside = pd.read_csv(folder / "one_device" / "beside.csv").set_index("comparison")
    for other, said in (("isoscore", "2.6 [1.0, 4.1]"), ("random", "1.3 [0.1, 2.5]")):
        row = -beside.loc[f"accuracy at the score .15: prominent − {other}"].iloc[1:4]
        assert f"{_points(row.estimate)} [{100 * row.high:.1f}, {100 * row.low:.1f}]" == said
        assert f"on a GPU, it is {said}" in EVIDENCE
    replaced = beside[beside.index.str.fullmatch("correct: .* at its score")]
    assert len(replaced) == 4 and 0.009 < replaced[["low", "high"]].abs().max(axis=None) < 0.010
    assert "Once more, on one GPU, it stays within 1.0." in EVIDENCE
    score = beside[beside.index.str.fullmatch("score: .* − prominent 1")]
    apart = score[(score.low > 0) | (score.high < 0)]
    assert len(score) == 4 and [*apart.index] == ["score: whole_batch 1 − prominent 1"]
    ends = ", ".join(_points(apart[end].item()) for end in ("low", "high"))
    assert f"pushes less, by {_points(apart.estimate.item())} points [{ends}]." in EVIDENCE


def test_how_much_of_what_was_made_once_more_is_new_and_what_it_changes_is_said():
    folder = ROOT / "data" / "reference" / "strength"
    key = ["epochs", "arm", "weight", "seed"]
    again, first = (
        {
            name: pd.read_parquet(path / f"{name}.parquet")
            for name in ("runs", "evaluations", "correct")
        }
        for path in (folder / "one_device", folder)
    )
    made, known = (of["runs"].set_index(key).sort_index() for of in (again, first))
    copies = (made.centred_1 - known.centred_1).abs() < 1e-12
    assert copies.equals(known.device != "cpu")
    assert f"({copies.sum()} of {len(copies)} runs are copies)" in README
    of_s6 = pd.concat([copies[10, "all", 4.0], copies[10, "prominent", 1.0]])
    assert len(of_s6) == 16 and (~of_s6).sum() == 1
    page = " ".join((ROOT / "docs" / "verdicts.md").read_text("utf-8").split())
    assert "of the sixteen runs of S6 and S8, one is new" in page

    lost, apart = [], []
    for tables in (first, again):
        short = {name: table[table.epochs == 3] for name, table in tables.items()}
        right = short["correct"].pivot(
            index="seed", columns=["arm", "weight", "row"], values="correct"
        )
        right = right.sort_index(axis=1)
        means = right.T.groupby(level=["arm", "weight"]).mean().mean(axis=1)
        lost.append(_points(means["none", 1.0] - means["prominent", 2.0]))
        seen = short["evaluations"].query("epoch == 3")
        seen = seen.pivot(index="seed", columns=["arm", "weight"], values="centred_1")
        apart.append([_apart(seen, right, target) for target in (0.4, 0.3, 0.2)])
    assert f"lose {lost[0]} points in 24 steps (once more {lost[1]})" in EVIDENCE
    assert round(float(lost[1])) == 4 and round(float(lost[0])) == 5
    assert "cost four to five points in 24 steps" in README
    once, more = ([_points(interval.estimate) for interval in row] for row in apart)
    said = "they keep {}, {} and {} less (exploratory; the {} within chance)"
    assert said.format(*once, once[-1]) in EVIDENCE
    assert "once more {}, {} and {}, of which only the first".format(*more) in EVIDENCE
    assert [interval.high < 0 for interval in apart[1]] == [True, False, False]


def _apart(seen: pd.DataFrame, right: pd.DataFrame, target: float):
    """Accuracy of prominent − all at one mean score of the validation rows, as 07b reads it."""

    def read_off(seeds):
        found = []
        for arm in ("prominent", "all"):
            keys = [("none", 1.0), *(cell for cell in sorted(seen) if cell[0] == arm)]
            place = interpolate_frontier([seen[cell].iloc[seeds].mean() for cell in keys], target)
            found.append(place.of([right[cell].iloc[seeds].mean() for cell in keys]))
        return np.asarray(found[0] - found[1])  # (rows,)

    return paired_interval(np.array(pseudo_values(read_off, range(len(seen)))))
