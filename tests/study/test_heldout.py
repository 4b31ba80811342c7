"""The third fixed analysis: planted tables give their verdicts; a block is made whole or not."""

import json
import runpy
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from shrink_utils.__main__ import main
from shrink_utils.study.claims.report import signed

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "data" / "reference" / "heldout"
DECIDE = runpy.run_path(str(FOLDER / "decide.py"))
SCORES = {("none", 1.0): 0.88, ("prominent", 1.0): 0.68, ("all", 4.0): 0.76, ("all", 6.0): 0.70}
SCORES |= {("all", 8.0): 0.60, ("isoscore", 0.3): 0.55}
ROWS = 60


@pytest.fixture
def run(monkeypatch):
    """The module of the runner, which finds its neighbour as a script does."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("run", "uses"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import run

    yield run
    for name in ("run", "uses"):
        sys.modules.pop(name, None)


def planted(*, accuracy=0.0, loss=0.0, all_8=0.0, gain=0.0, control=0.0, seeds=8, noise=0.003):
    """Tables of all three tasks: what prominent bars have more than all bars at every equal score.

    `all_8` is added to the score of all bars at 8 (4 on MRPC and CoLA), `gain` to the uses of
    isoscore, and `control` to those of the plain model made round.
    """
    rng, tables = np.random.default_rng(0), {name: [] for name in ("runs", "evaluations", "rows")}
    uses, easy = [], np.linspace(-0.1, 0.1, ROWS)
    for task, strongest in (("sentiment_products", 8.0), ("mrpc", 4.0), ("cola", 4.0)):
        for (arm, weight), seed in ((k, s) for k in SCORES for s in range(400, 400 + seeds)):
            if task != "sentiment_products" and (weight > strongest or arm == "isoscore"):
                continue
            keys = {"task": task, "arm": arm, "weight": weight, "seed": seed}
            own, level = arm == "prominent", SCORES[arm, weight] + noise * rng.standard_normal()
            score = level + all_8 * (arm == "all" and weight == strongest)
            tables["runs"].append(keys | {"train_centred_1": level})
            for epoch in range(11):
                tables["evaluations"].append(
                    keys
                    | {"epoch": float(epoch), "loss": 0.4 + abs(epoch - 2.0) / 10}
                    | {"centred_1": score - 0.1 * (epoch == 2) if epoch else 9.0}
                    | {"within_1": 0.3, "silhouette": 0.2}
                )
            found = {}
            for when in ("", "_least"):
                found[f"correct{when}"] = 0.85 + 0.1 * (level - 0.88) + accuracy * own + easy
                found[f"loss{when}"] = 0.4 + 0.1 * (level - 0.88) + loss * own + easy
            found = {k: v + noise * rng.standard_normal(ROWS) for k, v in found.items()}
            tables["rows"].append(pd.DataFrame({**keys, "row": range(ROWS), **found}))
            if task == "sentiment_products" and (arm, weight) not in (("all", 6.0), ("all", 8.0)):
                uses += planted_uses(keys, gain * (arm == "isoscore"), control, easy, rng)
    frames = {name: pd.DataFrame(tables[name]) for name in ("runs", "evaluations")}
    rows = pd.concat(uses, ignore_index=True)
    values = rows.groupby([c for c in rows if c not in ("row", "value")], as_index=False).value
    found = frames | {"rows": pd.concat(tables["rows"], ignore_index=True)}
    return found | {"use_rows": rows, "uses": values.mean()}


def planted_uses(keys, gain, control, easy, rng):
    round_too = ("centred", "rotated", "whitened", "all_but_top") if keys["arm"] == "none" else ()
    for use in DECIDE["SAID"]:
        for treatment in ("plain", *round_too):
            value = 0.5 + easy + gain + control * (treatment != "plain")
            value = value + 0.003 * rng.standard_normal(ROWS)
            keyed = keys | {"treatment": treatment, "moment": "end", "use": use}
            yield pd.DataFrame({**keyed, "row": range(ROWS), "value": value})


def decided(tables, tmp_path):
    for name, table in tables.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    return DECIDE["decide"](DECIDE["read_tables"](tmp_path)).set_index("id")


def test_effects_that_are_there_are_found_with_their_sign(tmp_path):
    table = decided(planted(accuracy=-0.1, loss=0.2, all_8=-0.1, gain=0.1), tmp_path)
    said = {"E1": "less", "E2": "less", "E3": "less", "E4": "more", "E5": "less"}
    assert {name: table.verdict[name] for name in said} == said
    assert table.estimate["E1"] == pytest.approx(0.6 - 0.1 - 0.68, abs=0.01)
    assert table.estimate["E2"] == pytest.approx(-0.1, abs=0.005)
    assert table.estimate["E4"] == pytest.approx(0.2, abs=0.005)
    assert [*table.verdict["U1":]] == ["equivalent", "good for"] * 4
    assert [*table.estimate["U2":"U8":2]] == pytest.approx([0.1] * 4, abs=0.003)


def test_equal_arms_are_equivalent_and_a_free_control_takes_the_credit(tmp_path):
    table = decided(planted(gain=0.1, control=0.1), tmp_path)
    assert [*table.verdict["E2":"E4"]] == ["equivalent"] * 3
    assert [*table.verdict["U2":"U8":2]] == ["not beyond the free control"] * 4
    assert table.beyond["U2"] == pytest.approx(0, abs=0.003)
    assert (decided(planted(gain=-0.1), tmp_path).verdict["U2":"U8":2] == "worse").all()


def test_a_score_that_all_bars_never_reach_is_not_tested_but_the_common_one_is(tmp_path):
    table = planted(all_8=0.15)
    tables = {k: v[~((v.arm == "all") & (v.weight == 6))] for k, v in table.items()}
    six = {k: v[(v.arm == "all") & (v.weight == 4)].assign(weight=6.0) for k, v in table.items()}
    tables = {k: pd.concat([v, six[k]]) for k, v in tables.items()}
    verdict = decided(tables, tmp_path).verdict
    assert verdict["E2"] == "not tested" and verdict["E3"] == "equivalent"
    assert verdict["E1"] == "more"


def test_missing_seeds_are_left_out_of_every_arm_and_too_few_are_not_tested(tmp_path):
    tables = planted(accuracy=-0.1)
    lost = tables["runs"].query("task == 'sentiment_products' & arm == 'isoscore' & seed < 402")
    table = decided(tables | {"runs": tables["runs"].drop(lost.index)}, tmp_path)
    assert (table.n["E1"], table.n["U1"], table.n["E5"]) == (6, 6, 8)
    lost = tables["runs"].query("task == 'sentiment_products' & arm == 'none' & seed < 403")
    table = decided(tables | {"runs": tables["runs"].drop(lost.index)}, tmp_path)
    assert (table.verdict[["E1", "E2", "E3", "E4", *table.index[6:]]] == "not tested").all()
    assert table.verdict["E5"] != "not tested"


def test_a_shift_of_one_arm_moves_every_estimate_by_it(tmp_path):
    one, other = (decided(planted(accuracy=a, loss=2 * a, gain=a), tmp_path) for a in (0.0, 0.05))
    moved = (other.estimate - one.estimate)[["E2", "E3", "E4", "U2"]]
    # At .78, E3's point lies half-way from none to prominent.
    assert [*moved] == pytest.approx([0.05, 0.025, 0.1, 0.05], abs=1e-3)


def test_both_tables_are_written_again_to_the_last_digit(tmp_path):
    decided(planted(seeds=6), tmp_path)
    DECIDE["write"](tmp_path)
    once = [(tmp_path / f"{name}.csv").read_bytes() for name in ("hypotheses", "beside")]
    DECIDE["write"](tmp_path)
    assert once == [(tmp_path / f"{name}.csv").read_bytes() for name in ("hypotheses", "beside")]
    beside = pd.read_csv(tmp_path / "beside.csv")
    assert set(beside.part) == {"arms", "robust", "uses"}
    assert beside.comparison.str.contains("without seed 400").any()


def test_the_command_runs_the_script_on_the_tables_that_are_there(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "reference" / "heldout"
    folder.mkdir(parents=True)
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    command = ["--profile", "heldout", "hypotheses"]
    assert main(command) == 1 and "runs.parquet is not there" in capsys.readouterr().err
    expected = decided(planted(accuracy=-0.1, all_8=0.15, gain=0.1, seeds=6), folder)
    assert main(command) == 0
    printed = capsys.readouterr().out
    for row in expected.reset_index().itertuples():
        (line,) = [part for part in printed.splitlines() if part.startswith(f"{row.id} · ")]
        assert row.verdict in line and "nan" not in line
        assert np.isnan(row.estimate) or signed(row.estimate) in line
    assert {*expected.verdict} >= {"less", "more", "good for", "equivalent", "not tested"}
    few = decided(planted(seeds=3), folder)  # too few for anything to be tested
    assert few.estimate.isna().all() and main(command) == 0
    assert capsys.readouterr().out.count("not tested") == len(few)


def test_clustered_errors_are_those_of_the_study():
    from shrink_utils.study.statistics import mean_of

    values = np.random.default_rng(0).standard_normal((5, 40)) + np.arange(5)[:, None]
    assert DECIDE["mean_of"](values)[:3] == pytest.approx(mean_of(values)[:3])


@pytest.fixture
def smoke_runs(run):
    tiny = {"model": "tiny-random", "seed": 9000, "train_rows": 48, "eval_rows": 32, "epochs": 3}
    return [replace(c, **tiny) for c in run.configs(run.PARTS[0], 400)[:2]]


def test_a_block_is_made_end_to_end_and_merged_into_tables(run, smoke_runs, tmp_path):
    texts = run.uses.read_texts(most=40, probed=12)
    target = tmp_path / "blocks" / "products-400"
    (target.parent / ".products-400.part").mkdir(parents=True)  # of a process that was stopped
    run.make_block(smoke_runs, target, texts=texts)
    run.untrained_block(tmp_path / "blocks" / run.UNTRAINED, texts, model="tiny-random")
    assert run.collect(target.parent, tmp_path) == {"blocks": 2, "of": 49, "runs": 2}
    tables = DECIDE["read_tables"](tmp_path)
    assert [*tables["runs"].arm] == ["none", "prominent"]
    stamped = tables["runs"].iloc[0]
    assert stamped.capability == torch.backends.cpu.get_cpu_capability() and stamped.processor
    runs, seen = tables["rows"].groupby("arm"), tables["evaluations"].query("epoch > 0")
    for arm, of in seen.groupby("arm"):
        assert runs.get_group(arm).loss.mean() == pytest.approx(of.loss.iloc[-1], rel=1e-4)
        assert runs.get_group(arm).loss_least.mean() == pytest.approx(of.loss.min(), rel=1e-4)
    treated = tables["uses"].groupby(["arm", "moment"]).treatment.nunique()
    assert treated["none", "end"] == 5 and treated["prominent", "end"] == 1
    assert set(tables["use_rows"].use) == set(DECIDE["SAID"])
    assert tables["uses"].value.notna().all()


def test_a_block_that_fails_leaves_nothing(run, smoke_runs, tmp_path, monkeypatch):
    made = iter([[("runs", pd.DataFrame({"arm": ["none"]}))]])
    monkeypatch.setattr(run, "make_run", lambda *_: next(made))
    with pytest.raises(StopIteration):
        run.make_block(smoke_runs, tmp_path / "block", texts=None)
    assert not (tmp_path / "block").exists()


def test_arms_of_a_seed_on_another_machine_or_of_another_commit_are_refused(
    run, tmp_path, monkeypatch
):
    here = run.stamp() | {"commit": "abc"}
    monkeypatch.setattr(run, "stamp", lambda: here)
    part = run.PARTS[0]
    made = here | {
        "precision": "float32",
        "task": part.task,
        "arm": "none",
        "weight": 1,
        "seed": 400,
    }
    (tmp_path / "products-400").mkdir()
    path = tmp_path / "products-400" / "runs.parquet"
    pd.DataFrame([made]).to_parquet(path)
    run.check_machine(tmp_path, part, 400)
    pd.DataFrame([made | {"capability": "AVX9"}]).to_parquet(path)
    run.check_machine(tmp_path, part, 401)
    with pytest.raises(ValueError, match="capability"):
        run.check_machine(tmp_path, part, 400)
    pd.DataFrame([made | {"commit": "def"}]).to_parquet(path)
    with pytest.raises(ValueError, match="commit"):
        run.check_machine(tmp_path, part, 401)


def test_every_run_of_the_profile_stands_in_one_block(run):
    from shrink_utils.study import load_profile

    planned = [c for part, seed, _ in run.blocks() for c in run.configs(part, seed)]
    every = load_profile("heldout").all_runs(precision="float32")
    assert len(planned) == len(set(planned)) and set(planned) == set(every)


def test_least_loss_keeps_the_weights_of_the_best_epoch_and_not_of_the_start(run):
    recorder, model = run.LeastLoss(), torch.nn.Linear(1, 1, bias=False)
    for step, loss in enumerate([0.1, 0.5, 0.3, 0.4]):
        torch.nn.init.constant_(model.weight, step)
        state = type("State", (), {"global_step": step})
        recorder.on_evaluate(None, state, None, metrics={"eval_loss": loss}, model=model)
    assert recorder.weights["weight"].item() == 2


def test_neighbours_leave_a_text_itself_out_and_overlap_counts_them(run):
    similar = np.array([[9.0, 3.0, 2.0], [1.0, 9.0, 2.0], [5.0, 4.0, 9.0]])
    found = run.uses.nearest(similar, 2, itself=True)
    assert found.tolist() == [[1, 2], [2, 0], [0, 1]]
    assert run.uses.overlap(found, np.array([[2, 1], [2, 1], [0, 2]])).tolist() == [1, 0.5, 0.5]


def test_treatments_do_what_they_are_called(run):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 8)) * np.array([9, 5, 4, 1, 1, 1, 1, 1.0]) + 3
    made = {name: treat(x) for name, treat in run.uses.treatments(x, seed=0).items()}
    assert np.cov(made["whitened"].T) == pytest.approx(np.eye(8), abs=1e-9)
    centred = made["centred"]
    assert made["rotated"] @ made["rotated"].T == pytest.approx(centred @ centred.T)
    assert np.linalg.matrix_rank(made["all_but_top"], tol=1e-6) == 5


def test_signs_of_a_balanced_space_keep_more_neighbours_than_those_of_a_stretched_one(run):
    rng, found = np.random.default_rng(0), {}
    for name, spread in (("round", 1.0), ("stretched", np.linspace(8, 0.05, 32) ** 2)):
        x = rng.standard_normal((400, 32)) * spread
        space = run.uses.Space({"train": x[:200], "in": x[200:300], "out": x[300:]})
        found[name] = run.uses.compressed(space)[0]
        assert found[name]["eight_bit_in"] > 0.9
        assert found[name]["one_bit_rescored_in"] >= found[name]["one_bit_in"]
    assert found["round"]["one_bit_in"] > found["stretched"]["one_bit_in"]


def test_earlier_records_say_at_equal_validation_score_what_a_referee_found(monkeypatch):
    """Another person's numbers, of code of their own: the difference of accuracy, 20 seeds."""
    monkeypatch.syspath_prepend(str(FOLDER))
    earlier = runpy.run_path(str(FOLDER / "earlier.py"))
    runs = earlier["earlier_runs"](3, last=1)
    for score, expected in (
        (0.4, (-0.010, -0.017)),
        (0.3, (-0.016, -0.026)),
        (0.2, (-0.005, -0.015)),
    ):
        statistic = partial(earlier["selected_minus_all"], by="score", at=score, of="correct")
        mean, passed = DECIDE["jackknife"](statistic, runs)
        assert passed
        assert (mean.estimate, mean.interval(0.05)[0]) == pytest.approx(expected, abs=5e-4)


def test_what_chapter_13_and_the_front_page_say_stands_in_the_records():
    cells = json.loads((ROOT / "notebooks" / "13_what_for.ipynb").read_text("utf-8"))["cells"]
    said = {cell["id"]: "".join(cell["source"]) for cell in cells}
    means = DECIDE["read_tables"]()["uses"].groupby(["use", "arm", "treatment", "moment"]).value
    found = means.mean()["one_bit_in"].mul(100).round().astype(int)
    of_plain, of_arm = found["none"], found[:, "plain", "end"]
    plain, early = of_plain["plain", "end"], of_plain["plain", "least"]
    white, top = of_plain["whitened", "end"], of_plain["all_but_top", "end"]
    chosen, others = of_arm["prominent"], of_arm["all"]
    assert f"keep {others} to {chosen} %, the plain model {plain} %" in said["arms-answer"]
    assert f"Whitening keeps {white} %" in said["free-ask"]
    assert f"keeps {of_arm['isoscore']}." in said["arms-answer"]
    assert f"Stopping early keeps {early} %" in said["free-ask"]
    assert f"Removing the top keeps {top} %" in said["free-ask"]
    assert f"signs kept {of_arm['untrained']} %" in said["arms-answer"]
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert "whitening the plain embeddings is free and looks better (no test was planned)" in readme
    assert white > chosen
    beside = pd.read_csv(FOLDER / "beside.csv").set_index("comparison")
    for arm, gain in (("prominent 1", "+3 points [−2, 8]"), ("isoscore 0.3", "+6 [3, 10]")):
        row = beside.loc[f"one_bit_in, least: {arm} (plain) − none"]
        parts = (f"{100 * row[name]:.0f}" for name in ("estimate", "low", "high"))
        assert "+{} [{}, {}]".format(*parts).replace("-", "−") == gain.replace(" points", "")
        assert gain in said["free-answer"]
    row = (
        100
        * beside.loc["head_accuracy_out, end: prominent 1 (plain) − none"][
            ["estimate", "low", "high"]
        ]
    )
    shown = "{:+.1f} points [{:.1f}, {:.1f}]".format(*row).replace("-", "−")
    assert f"*Accuracy on movies*: prominent {shown}." in said["described-answer"]
    decided = pd.read_csv(FOLDER / "hypotheses.csv").set_index("id")
    lost = f"right {-100 * decided.estimate['U6']:.1f} points less often"
    probed = 100 * beside.estimate["domain, end: all 4 (plain) − none"]
    assert f"{lost} (under all bars {probed:.1f} more," in said["verdicts-answer"]
    found = decided[["accuracy", "accuracy_low", "accuracy_high"]].mul(100).round(1)
    first, second = ("+{} {{}}[{}, {}]".format(*found.loc[name]) for name in ("U1", "U2"))
    equal = f"{first.format('points ')} and {second.format('')}".replace("-", "−")
    assert equal in said["arms-answer"]
    verdicts = decided.verdict["U1":]
    assert [*verdicts] == ["good for"] * 2 + ["open"] * 3 + ["worse"] + ["open"] * 2


def test_whitening_which_was_no_control_beats_both_arms_on_signs_as_the_page_of_verdicts_says():
    tables = DECIDE["read_tables"]()
    products = DECIDE["PRODUCTS"]
    seeds = DECIDE["whole_seeds"](tables, products, DECIDE["FIRST"][products])
    page = " ".join((ROOT / "docs" / "verdicts.md").read_text("utf-8").split())
    found = []
    for key in (DECIDE["PROMINENT"], DECIDE["ISOSCORE"]):
        values = (
            DECIDE["use_values"](tables, k, treatment, "one_bit_in", seeds)
            for k, treatment in ((DECIDE["NONE"], "whitened"), (key, "plain"))
        )
        mean = DECIDE["mean_of"](np.subtract(*values))
        assert mean.interval(0.05)[0] > 0
        found.append(f"{mean.estimate:.2f}".removeprefix("0"))
    assert "has {} more overlap than U1's arm and {} more than U2's".format(*found) in page
