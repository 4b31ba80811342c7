"""What chapters show of a finished study's records: simulated runs, with effects that are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from shrink_utils.__main__ import main
from shrink_utils.study import figures, load_profile
from shrink_utils.study.ablation import arms_by_step, frontier_table
from shrink_utils.study.claims.claim import adjust, whole_table
from shrink_utils.study.claims.clouds import measure_clouds
from shrink_utils.study.claims.verdicts import finetuning_claims
from shrink_utils.study.full_length import (
    FullLength,
    beside_cohort,
    counted,
    full_length,
    hypotheses_as_text,
    told,
)
from shrink_utils.study.full_length_figures import (
    DECIDED_STYLE,
    clusters_figure,
    hypotheses_figure,
    long_runs_figure,
)
from shrink_utils.study.records import record_finished, recorded
from shrink_utils.study.tables import as_printed, correct_rows, graded, summarize, task_table

ROOT = Path(__file__).resolve().parents[2]
MOVIES, PRODUCTS = "sentiment_movies", "sentiment_products"
ROWS = {MOVIES: 400, PRODUCTS: 300, "mrpc": 2000, "cola": 300}
# Planted: by arm, and by arm and weight where it is swept.
SCORE = {"none": 0.6, "prominent": 0.4, "published": 0.4, "all": 0.5, "random": 0.3}
SWEPT = {("prominent", 3.0): 0.2, ("all", 3.0): 0.35, ("random", 0.3): 0.5}
SWEPT |= {("isoscore", 0.3): 0.5, ("isoscore", 1.0): 0.3, ("spectral", 0.3): 0.5}
SWEPT |= {("spectral", 1.0): 0.3, ("cosine", 0.03): 0.58, ("cosine", 0.1): 0.57}  # never at .4
ACCURACY = {"prominent": 0.7, "isoscore": 0.6}  # on products; all others .8
ONSET = {"prominent": 60, "all": 30, "none": 30, "random": 30}
ISOSCORE = {"none": 0.1, "prominent": 0.3}  # all others .2


def simulated(profile, *, seed=0):
    """Tables of records of a profile's runs, with the effects above and a little noise."""
    rng = np.random.default_rng(seed)
    made = [_run(config, profile, rng) for config in profile.all_runs()]
    frames = {name: [run[name] for run in made] for name in made[0]}
    return {name: pd.concat(parts, ignore_index=True) for name, parts in frames.items()}


def _run(config, profile, rng):
    arm = config.arm
    keys = {name: getattr(config, name) for name in ("model", "task", "arm", "weight", "seed")}
    keys["epochs"] = config.epochs
    level = SWEPT.get((arm, config.weight), SCORE.get(arm, 0.0))
    if config.task == MOVIES and arm == "all":
        level = SCORE["prominent"]
    level += 0.01 * rng.standard_normal()
    right = ACCURACY.get(arm, 0.8) if config.task in (PRODUCTS, "mrpc") else 0.8
    correct = (rng.random(ROWS[config.task]) < right).astype(float)
    one = pd.DataFrame([keys])
    return {
        "runs": one.assign(
            **_scores(level, arm),
            metric="accuracy",
            value=correct.mean(),
            accuracy=correct.mean(),
        ),
        "steps": _steps(keys, level, arm, long=config.epochs > profile.epochs, rng=rng),
        "evaluations": one.assign(step=0, loss=0.5, metric="accuracy", value=0.6),
        "correct": pd.DataFrame({**keys, "row": range(len(correct)), "correct": correct}),
        "clouds": one.assign(**_cloud(arm, config.seed, rng)),
    }


def _scores(level, arm):
    scores = {f"{space}_{k}": 0.1 / k for space in ("raw", "centred") for k in (2, 3)}
    of_first = {"raw_1": level + 0.1, "centred_1": level}
    ends = {"raw_before": 0.3, "raw_after": 0.5, "centred_before": 0.1, "centred_after": level}
    return scores | of_first | ends


def _steps(keys, level, arm, *, long, rng):
    step = np.arange(1, 291 if long else 25)
    rise = level / (1 + np.exp(-(step - ONSET.get(arm, 12)) / 4))
    last_of_epoch = long & (step % 29 == 0)
    noisy = np.where(last_of_epoch, 5.0, rise + 0.01 * rng.standard_normal(len(step)))
    rows = np.where(last_of_epoch, 19, 64)
    return pd.DataFrame({**keys, "step": step, "rows": rows, "centred_1": noisy, "raw_1": noisy})


def _cloud(arm, seed, rng):
    isoscore = ISOSCORE.get(arm, 0.2) + 0.005 * rng.standard_normal()
    silhouette = 0.5 - isoscore + 0.005 * rng.standard_normal()
    counts = {f"elongated_{when}": 10 + seed % 3 for when in ("before", "own", "pretrained")}
    edge = (-0.5 if arm == "all" else 0.0) + 0.05 * rng.standard_normal()
    shape = {"isoscore": isoscore, "silhouette": silhouette, "log_edge": edge}
    return {"classes": 2, "class_cosine": 0.95 + 0.01 * rng.random(), **shape, **counts}


def write_records(tables, data, name="cohort"):
    """As `record` leaves them, in a folder of data."""
    folder = data / "reference" / name
    folder.mkdir(parents=True)
    if not (data / "published").exists():
        (data / "published").symlink_to(ROOT / "data" / "published")
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False)


@pytest.fixture(scope="module")
def cohort():
    return load_profile("cohort")


@pytest.fixture(scope="module")
def tables(cohort):
    return simulated(cohort)


@pytest.fixture(scope="module")
def full(cohort, tables):
    return FullLength(cohort, tables)


def _claim(full, name):
    (row,) = full.claims[full.claims.claim == name].itertuples()
    return row


def test_planted_effects_are_found_by_the_primary_hypotheses(full):
    verdicts = full.hypotheses.set_index("id").verdict
    assert set(verdicts[["H1", "H2", "H6", "H8", "H11", "H12"]]) == {"supported"}
    assert set(verdicts[["H4", "H7"]]) == {"contradicted"}
    assert verdicts["H5"] == "equivalent" and verdicts["H10"] == "not tested"


@pytest.mark.parametrize(
    ("name", "estimate", "verdict"),
    [
        ("stl:lowers-centred-of-none:minilm:sentiment_movies:prominent", -0.2, "agrees"),
        ("stl:metric-kept:minilm:sentiment_products:prominent", -0.1, "disagrees"),
        ("stl:lowers-centred-of-none:minilm:sentiment_products (10 epochs):random", -0.3, "agrees"),
        ("stl:shorter-tree:minilm:sentiment_products (10 epochs):all", -0.5, "agrees"),
        ("mga:conflict:minilm:sentiment_movies", -1.0, "agrees"),
        ("topology:matched:minilm:sentiment_products:isoscore", 0.1, "agrees"),
        ("topology:lowers-more:minilm:sentiment_products:random", 0.1, "disagrees"),
    ],
)
def test_planted_effects_are_found_by_the_full_length_table(full, name, estimate, verdict):
    row = _claim(full, name)
    assert row.estimate == pytest.approx(estimate, abs=0.03) and row.adjusted == verdict


def test_the_table_has_every_row_that_tables_of_runs_can_bear_on(full):
    """Those of quick's grid and sweep but for the loops, and the same of the long runs."""
    quick = pd.read_csv(ROOT / "data" / "reference" / "quick" / "claims.csv").claim
    chapters = "stl:|topology:|mga:|rp:elongated"
    expected = {name for name in quick[quick.str.match(chapters)] if not name.endswith(":loops")}
    long = full.claims.claim.str.contains("(10 epochs)", regex=False)
    assert set(full.claims.claim[~long]) == expected and long.sum() == 33
    assert full.claims.claim.is_unique and len(full.claims) == 105


def test_every_row_of_the_table_says_that_it_is_exploratory(full):
    assert full.claims.kind.str.endswith(", exploratory").all()
    random = full.claims[(full.claims.arm == "random") & full.claims.claim.str.startswith("stl")]
    assert set(random.kind) == {"our control, exploratory"} and random.published.isna().all()


@pytest.fixture(scope="module")
def glue():
    """Records of MRPC and CoLA, simulated: on MRPC the task suffers."""
    profile = load_profile("glue")
    return FullLength(profile, simulated(profile))


def test_the_three_questions_of_other_tasks_were_fixed_before_and_all_else_is_exploratory(glue):
    fixed = glue.claims.claim[~glue.claims.kind.str.endswith("exploratory")]
    names = ("lowers-centred-of-none", "metric-kept", "lowers-centred-of-all")
    expected = {f"stl:{n}:minilm:{task}:prominent" for n in names for task in ("mrpc", "cola")}
    assert set(fixed) == expected


def test_prominent_bars_are_held_against_every_other_arm_by_seed_and_row(full, glue):
    long = f"{PRODUCTS} (10 epochs)"
    table = full.less_others(long)
    assert list(table.index) == ["prominent − none", "prominent − all", "prominent − random"]
    level = full.long_runs.pivot(index="seed", columns="arm", values="level")
    differ = level.prominent - level.random
    low, high = stats.t.interval(0.95, 7, differ.mean(), differ.sem())
    assert table.level["prominent − random"] == f"{differ.mean():+.3f} [{low:+.3f}, {high:+.3f}]"
    kept = full.claims.set_index("claim").loc[f"stl:metric-kept:minilm:{long}:prominent"]
    expected = f"{kept.estimate:+.3f} [{kept.low:+.3f}, {kept.high:+.3f}]"
    assert table.accuracy["prominent − none"] == expected
    assert {"prominent − published", "prominent − random"} < set(glue.less_others("cola").index)


def test_other_tasks_are_held_against_the_cohort(full, glue):
    decided = full.hypotheses.assign(verdict="supported")
    decided.loc[decided.id == "H6", "verdict"] = "open"
    table = beside_cohort(decided, glue.claims).set_index(["question", "model · task"])
    lowers = table.xs("regularization lowers the first centred score")
    assert set(lowers.agreement) == {"agrees"} and set(lowers.seeds) == {"5"}
    kept = table.xs("accuracy does not suffer (by 0.02)")
    assert kept.agreement["minilm · mrpc"] == "disagrees"
    selected = table.xs("the centred score is lower with selected bars than with all")
    assert set(selected.agreement) == {"not claimed"}
    assert set(selected["the cohort"]) == {"supported and open"} and len(table) == 6


@pytest.mark.parametrize(
    ("says", "row", "agreement"),
    [
        ("supported", "agrees", "agrees"),
        ("supported", "disagrees", "disagrees"),
        ("contradicted", "disagrees", "agrees"),
        ("contradicted", "agrees", "disagrees"),
        ("supported", "inconclusive", "not claimed"),
        ("open", "agrees", "not claimed"),
        ("equivalent", "agrees", "not claimed"),
    ],
)
def test_agreement_is_claimed_only_where_both_say_something(full, glue, says, row, agreement):
    decided = full.hypotheses.assign(verdict=says)
    table = beside_cohort(decided, glue.claims.assign(adjusted=row))
    assert set(table.agreement) == {agreement}


def test_verdicts_are_adjusted_over_the_whole_table(full):
    again = adjust(full.claims.assign(adjusted=""))
    assert again.adjusted.tolist() == full.claims.adjusted.tolist()


def test_claims_from_records_are_those_from_run_folders(finished, tiny_runs, monkeypatch, tmp_path):
    monkeypatch.setattr("shrink_utils.study.records.data_dir", lambda: tmp_path)
    profile = replace(finished, sweep=())
    record_finished(profile)
    runs = graded(summarize(tiny_runs), correct_rows(tiny_runs))
    found = finetuning_claims(runs, runs, measure_clouds(tiny_runs), weight=profile.weight)
    expected = whole_table(found)
    claims = FullLength(profile, recorded(profile)).claims
    claims = claims.assign(kind=claims.kind.str.removesuffix(", exploratory"))
    assert len(claims) > 10
    pd.testing.assert_frame_equal(claims, expected)


def test_every_hypothesis_is_a_line_with_its_verdicts_symbol_beside_its_margin(full):
    fig = hypotheses_figure(full.hypotheses)
    decided = full.hypotheses.set_index("id")
    drawn = {}
    for ax in fig.axes:
        labels = [label.get_text().split(" ")[0] for label in ax.get_yticklabels()]
        points = [line for line in ax.lines if len(line.get_xdata()) == 1]
        drawn |= {
            labels[int(point.get_ydata()[0])]: (point.get_xdata()[0], point.get_marker())
            for point in points
        }
    assert drawn == {
        name: (row.estimate, DECIDED_STYLE[row.verdict][0]) for name, row in decided.iterrows()
    }
    bands = [[p.get_bbox().intervalx.tolist() for p in ax.patches] for ax in fig.axes]
    assert bands == [[[-0.044, 0.044]], [[-0.02, 0.02]], []]


def test_the_long_runs_have_a_level_and_an_onset_each(full):
    table = full.long_runs
    assert len(table) == 4 * 8
    means = table.groupby("arm")[["level", "onset"]].mean()
    assert means.level.to_dict() == pytest.approx(
        {arm: SCORE[arm] for arm in ("none", "prominent", "all", "random")}, abs=0.02
    )
    assert means.onset["prominent"] - means.onset["none"] > 25
    left, right = long_runs_figure(full).axes
    assert max(line.get_ydata().max() for line in left.lines) < 1  # no step of a short batch
    assert {line.get_label() for line in right.lines} >= {"none", "prominent", "all", "random"}


def test_the_frontier_and_the_clouds_are_those_of_the_records(full):
    assert full.frontier.equals(frontier_table(full._runs))
    assert set(full.frontier.task) == {PRODUCTS}
    assert full.frontier.groupby(["arm", "weight"]).seed.nunique().unique().tolist() == [20]
    assert [len(ax.lines) for ax in clusters_figure(full.clouds).axes] == [8, 6, 8]


def test_sentences_and_cells_have_the_numbers_of_the_table(full):
    row = full.hypotheses.set_index("id").loc["H12"]
    assert told(full.hypotheses, "H12") == (
        f"**H12 supported** (the regularizer delays the rise: {row.estimate:+.1f} steps "
        f"[{row.low:+.1f}, {row.high:+.1f}])."
    )
    text = hypotheses_as_text(full.hypotheses)
    assert len(text) == 12 and not text.isna().any(axis=None)
    assert counted(pd.Series(["open", "open", "supported"])) == "2 open, 1 supported"


def test_the_answer_has_the_papers_numbers_where_it_prints_some(full):
    answer = full.answer
    names = answer.hypothesis.str.split(" ").str[0]
    assert list(names) == list(full.hypotheses.id)
    printed = dict(zip(names, answer.paper, strict=True))
    own = full.claims.set_index("claim").published
    row = "stl:lowers-centred-of-all:minilm:sentiment_products:prominent"
    assert printed["H6"] == f"{own[row]:+.3f}" == "-0.044"
    assert [name for name in printed if printed[name]] == ["H1", "H2", "H5", "H6"]
    assert list(answer["kind of test"]) == ["scaled test"] * 6 + ["our control"] * 6


def test_an_open_hypothesis_says_what_would_decide_it(full):
    decided = full.hypotheses.assign(verdict="open", seeds_needed=[57.0, np.inf] * 6)
    assert told(decided, "H1").endswith("; 57 seeds would decide it).")
    assert "more seeds alone would not decide it" in told(decided, "H2")
    notes = hypotheses_as_text(decided.assign(nearest=0.2)).note
    assert notes[0] == "57 seeds would decide it; 4 of 20 took their nearest point"


def test_a_hypothesis_that_was_not_tested_shows_no_numbers(full):
    decided = full.hypotheses.assign(verdict="not tested", nearest=0.3, n=20)
    said = told(decided, "H10")
    assert said.startswith("**H10 not tested**") and "6 of 20 seeds took their nearest" in said
    assert "[" not in said


SECTIONS = ["07_ablation", "08_geometry_after_finetuning", "11_claims"]


def _section(name):
    """The code of a chapter's section At full length."""
    path = ROOT / "notebooks" / f"{name}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [c for c in cells if c["id"].startswith("full-") and c["cell_type"] == "code"]
    return ["".join(cell["source"]) for cell in code]


@pytest.fixture
def executed(monkeypatch, tmp_path, capsys):
    """Execute a chapter's section on some records: what it showed."""
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    shown = []

    def show(what, **options):
        shown.append(what)

    monkeypatch.setattr("shrink_utils.study.figures.display", show)

    def execute(name, tables, of_glue=None):
        write_records(tables, tmp_path)
        if of_glue is not None:
            write_records(of_glue, tmp_path, "glue")
        names = {"profile": load_profile("smoke"), "display": show, "figures": figures, "pd": pd}
        names["claims"] = pd.DataFrame({"claim": ["v:avgsim-rises"], "adjusted": ["agrees"]})
        names |= {"arms_by_step": arms_by_step, "as_printed": as_printed, "task_table": task_table}
        for source in _section(name):
            exec(source, names)
        assert not plt.get_fignums()
        return shown, capsys.readouterr().out

    return execute


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_shows_everything_when_all_runs_are_on_record(executed, tables, name):
    shown, said = executed(name, tables)
    assert "All 372 runs of profile cohort are on record." in said and len(shown) >= 3
    assert "0 of the 50 runs of profile glue are on record." in said


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_shows_the_papers_own_tasks_when_their_runs_are_on_record(
    executed, tables, glue, name
):
    shown, said = executed(name, tables, glue.tables)
    assert "All 50 runs of profile glue are on record." in said
    text = " ".join(map(str, (getattr(what, "data", what) for what in shown)))
    assert "mrpc" in text and "cola" in text


def test_the_papers_table_3_stands_beside_our_scores_of_the_same_tasks(glue):
    table = glue.beside_table3
    assert set(table.columns) == {"none", "prominent", "published", "all", "random"}
    theirs = table.loc[("cola", "centred", "bert-base-uncased")]
    assert theirs[["none", "prominent", "all", "random"]].tolist() == [".660", ".468", ".478", "–"]
    ours = table.loc[("mrpc", "centred", "minilm")]
    assert ours["none"].startswith((".59", ".60", ".61")) and "±" in ours["random"]
    assert len(table) == 2 * 2 * 3


def test_steps_of_one_weight_and_full_batches_alone_are_drawn(glue, full):
    assert set(glue.steps.arm) == {"none", "prominent", "published", "all", "random"}
    assert not glue.steps.duplicated(["model", "task", "arm", "seed", "step"]).any()
    assert set(full.steps.weight) == {1.0} and set(full.steps.epochs) == {3}
    assert set(full.steps.rows) == {64}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_shows_nothing_while_runs_are_missing(executed, tables, name):
    some = {key: table[table.seed < 119] for key, table in tables.items()}
    shown, said = executed(name, some)
    assert not shown and said.startswith("355 of the 372 runs of profile cohort are on record.")


def test_without_any_record_no_run_is_on_record(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    assert full_length() is None
    assert capsys.readouterr().out.startswith("0 of the 372 runs")


def test_the_command_keeps_what_it_decides_and_blinded_keeps_nothing(
    full, tables, monkeypatch, tmp_path, capsys
):
    write_records(tables, tmp_path)
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    kept = tmp_path / "reference" / "cohort" / "hypotheses.csv"
    main(["--profile", "cohort", "hypotheses", "--blinded"])
    assert "of H1 to H10 are wider" in capsys.readouterr().out and not kept.is_file()
    main(["--profile", "cohort", "hypotheses"])
    assert "supported" in capsys.readouterr().out
    pd.testing.assert_frame_equal(_answer(kept), full.answer)


@pytest.mark.parametrize("name", ["models", "quick"])  # one is whole on record, one is not
def test_the_command_refuses_a_profile_that_the_hypotheses_are_not_about(name, capsys):
    assert main(["--profile", name, "hypotheses"]) == 1
    assert f"the hypotheses are of profile cohort, found {name}" in capsys.readouterr().err


def _answer(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)
