"""A study of one's own task: what is refused, how it is split, what the rule says, what is kept."""

import json
import math
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.metrics import f1_score
from transformers import AutoModel

from shrink_utils.__main__ import main
from shrink_utils.geometry import anisotropy
from shrink_utils.sources import data_dir
from shrink_utils.study import load_profile, own_answer
from shrink_utils.study.own import _expected_differences, answer_own, plan_own, run_own
from shrink_utils.study.own_answer import OwnAnswer, _by_groups, _cross_chosen, _verdict_on
from shrink_utils.study.own_task import _halves_of, _read_own_task
from shrink_utils.text import load_sentences, load_task, read_snippets
from shrink_utils.text.corpora import text_key
from shrink_utils.text.tasks import task_spec
from tests.conftest import run_make

RNG = np.random.default_rng(0)


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "results"))
    monkeypatch.setenv("SHRINK_PROFILE", "smoke")
    return tmp_path / "results"


@pytest.fixture(scope="module")
def reviews():
    """Rows (text, word) of two classes."""
    snippets = [s for s in read_snippets("products") if abs(s.rating) >= 1][:120]
    return pd.DataFrame(
        {"text": [s.text for s in snippets], "label": ["bad", "good"] * (len(snippets) // 2)}
    )


# --- reading and splitting -------------------------------------------------------------------


def _csv(path, frame):
    frame.to_csv(path, index=False)
    return path


def _refused(named, call, *given, error=ValueError, **options):
    """What is told, in one line with every word of `named`, in the place of an answer."""
    with pytest.raises(error) as told:
        call(*given, **options)
    assert all(word in str(told.value) for word in named), told.value
    assert "\n" not in str(told.value)
    return str(told.value)


def _labelled(labels, **columns):
    texts = [f"text number {i} of some" for i in range(len(labels))]
    return pd.DataFrame({"text": texts, "label": labels, **columns})


TWO = ["a", "b"] * 60
COPIED = "rows with a copied text, all on one side"


@pytest.mark.parametrize(
    ("frame", "options", "named"),
    [
        (_labelled(TWO), {"label": "lable"}, ["label:", "'lable'", "'label'"]),
        (_labelled(TWO), {"text": "txt"}, ["text:", "'txt'"]),
        (_labelled(TWO).rename(columns={"text": "body"}).assign(more=1), {}, ["--text", "body"]),
        (_labelled(["a"] * 120), {}, ["label:", "'a'"]),
        (_labelled(["a"] * 115 + ["b"] * 5), {}, ["label:", "'b'", "5 of 120"]),
        (_labelled(["a"] * 600 + ["b"] * 11), {}, ["label:", "'b'", "--batch-size 256"]),
        (_labelled([1, 2, 3, 4] * 30), {}, ["label:", "4 different", "--kind classes"]),
        (_labelled(TWO), {"kind": "regression"}, ["label:", "'a' in line 2", "--kind"]),
        (_labelled(TWO), {"kind": "class"}, ["kind:", "'class'", "'classes'"]),
        (_labelled(["a", "b", "a, b"] * 40), {}, ["label:", "'a, b' in line 4", "several"]),
        (_labelled(TWO[:40]), {}, ["texts:", "40 rows", "60"]),
        (_labelled(TWO), {"limit": 0}, ["limit: 0"]),
        (_labelled(TWO, who=["x"] * 120), {"group": "who"}, ["group:", "120 of 120"]),
        (_labelled([None] * 70 + TWO[:50]), {}, ["label:", "70 of 120", "lines 2"]),
        (_labelled(["yes", "no", "Yes", "no"] * 30), {}, ["label:", "'Yes'", "'yes'"]),
        (_labelled(["1", "0", "1.0", "0"] * 30), {"kind": "classes"}, ["label:", "'1'", "'1.0'"]),
        (_labelled(["3,5", "2,5", "1,0"] * 40), {}, ["label:", "'3,5' in line 2", "classes"]),
        (_labelled([*range(119), "inf"]), {}, ["label:", "'inf' in line 121"]),
        (_labelled([3.5] * 120), {"kind": "regression"}, ["label:", "3.5"]),
        (_labelled(TWO), {"group": "label"}, ["group:", "2 units"]),
        (_labelled(TWO, who=[*range(5)] * 24), {"group": "who"}, ["group:", "5 units"]),
        (_labelled(TWO).assign(text=["one text", "another"] * 60), {}, ["texts:", "2 units"]),
        (
            _labelled(["a"] * 90 + ["b"] * 30, who=[*range(90), *[90] * 30]),
            {"group": "who"},
            ["group:", "labels"],
        ),
        (_labelled(TWO), {"limit": 30}, ["limit: 30", "60"]),
        (_labelled([]), {}, ["texts:", "0 rows"]),
        (_labelled(TWO), {"text": "text", "pair": "text"}, ["pair:", "'text'"]),
        (_labelled(TWO), {"text": "label"}, ["label:", "'label'", "texts"]),
        (_labelled(["so so", "no", "so  so", "no"] * 30), {}, ["label:", "'so  so'", "'so so'"]),
        (_labelled(["caf\u00e9", "no", "cafe\u0301", "no"] * 30), {}, ["label:", "two classes"]),
        (_labelled(["no", "yes", "no\u200b", "yes"] * 30), {}, ["label:", "two classes"]),
        (_labelled(["Ａ", "no", "A", "no"] * 30), {}, ["label:", "'Ａ'", "'A'", "two classes"]),
        (_labelled(["1", "0", "+1", "0"] * 30), {"kind": "classes"}, ["label:", "'1'", "'+1'"]),
        (_labelled([*range(119), 1e39]), {"kind": "regression"}, ["label:", "1e+39", "line 121"]),
    ],
)
def test_a_file_that_cannot_be_learnt_from_is_refused_with_its_argument(
    tmp_path, results, frame, options, named
):
    _refused(named, _read_own_task, _csv(tmp_path / "mine.csv", frame), **options)
    assert not results.exists()


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        (_labelled(TWO[:0]), ["0 units"]),
        (_labelled(TWO[:5]), ["5 units"]),
        (_labelled(["a"] * 30), ["1 labels"]),
        (_labelled(TWO[:30]).assign(text="a copy"), ["1 units"]),
    ],
)
def test_a_validation_file_that_cannot_judge_is_refused(tmp_path, rows, named):
    mine = _csv(tmp_path / "mine.csv", _labelled(TWO))
    valid = _csv(tmp_path / "v.csv", rows.assign(text=rows.text.map("other {}".format)))
    _refused(["valid:", *named], _read_own_task, mine, valid=valid)


@pytest.mark.parametrize(
    "label", [pd.date_range("2020-01-01", periods=120), [["a"], ["b"]] * 60, [{"name": "a"}] * 120]
)
def test_a_label_that_is_neither_word_nor_number_is_refused(tmp_path, label):
    _labelled(TWO).assign(label=label).to_parquet(path := tmp_path / "mine.parquet")
    with pytest.raises(ValueError, match=r"label: .* in line 1 .* neither"):
        _read_own_task(path)


@pytest.mark.parametrize(
    ("labels", "column", "cell", "named"),
    [
        (TWO, "text", "half \ud83d", ["text:", r"\ud83d", "line 5 ", "surrogate"]),
        (TWO, "label", "half \ud83d", ["label:", r"\ud83d", "line 5 ", "surrogate"]),
        (TWO, "text", ["a text", "another " * 30], ["text:", "line 5 ", "no text"]),
        (["1"] * 120, "label", 1, ["label:", "1", "'1'"]),
        pytest.param(
            *([*range(120)], "label", 10**400, ["label: '10", "...0", "line 5 ", "no number"]),
            id="a whole number that no float holds",
        ),
    ],
)
def test_a_cell_of_json_that_no_task_can_have_is_named_by_its_line(
    tmp_path, labels, column, cell, named
):
    rows = _labelled(labels).to_dict("records")
    rows[4][column] = cell
    (path := tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert len(_refused(named, _read_own_task, path)) < 300


def test_numbers_are_shown_as_they_stand_in_the_file_and_a_bad_value_of_valid_has_its_line(
    tmp_path,
):
    _labelled([*range(119), math.inf]).to_parquet(path := tmp_path / "mine.parquet")
    with pytest.raises(ValueError, match=r"label: inf in line 120 "):
        _read_own_task(path)
    mine = _csv(tmp_path / "mine.csv", _labelled(RNG.normal(size=120)))
    other = _labelled([*range(29), "x"])
    other["text"] = "another " + other.text
    with pytest.raises(ValueError, match=r"valid: .*'x' in line 31 of .*v\.csv"):
        _read_own_task(mine, valid=_csv(tmp_path / "v.csv", other))


def test_an_option_without_a_value_is_as_if_it_were_not_given(tmp_path):
    path = _csv(tmp_path / "mine.csv", _labelled(TWO))
    empty = dict.fromkeys(("label", "text", "pair", "group"), "")
    assert _read_own_task(path, **empty).name == _read_own_task(path).name


def test_a_regression_of_few_values_splits_without_a_warning(tmp_path):
    path = _csv(tmp_path / "mine.csv", _labelled([3.5] * 117 + [1, 2, 3]))
    assert len(_read_own_task(path, kind="regression").sides["validation"]) == 24


def test_texts_that_may_stand_for_nothing_are_counted_with_their_lines(tmp_path):
    rows = _labelled(TWO)
    rows.loc[[3, 8], "text"] = "NA", "none"
    task = _read_own_task(_csv(tmp_path / "mine.csv", rows))
    (note,) = task.notes
    assert note.startswith("text: 2 of 120") and "lines 5, 10" in note
    assert task.facts["rows"] == "120"


def test_a_file_that_is_not_there_or_a_model_a_weight_or_an_arm_is_named(tmp_path, results):
    path, profile = _csv(tmp_path / "mine.csv", _labelled(TWO)), load_profile("smoke")
    cases = [
        (FileNotFoundError, tmp_path / "mine.cvs", {}, ["texts:", "mine.csv"]),
        (FileNotFoundError, path, {"model": str(tmp_path / "none")}, ["model:"]),
        (ValueError, path, {"arms": ["prominant"]}, ["arms:", "'prominant'", "'prominent'"]),
        (ValueError, path, {"arms": ["none"]}, ["arms:"]),
        (ValueError, path, {"weights": ["all=two"]}, ["weights:", "'all=two'"]),
        (ValueError, path, {"weights": ["sigreg=1"]}, ["weights:", "'sigreg'"]),
        (ValueError, path, {"seeds": 1}, ["seeds: 1"]),
        (ValueError, path, {"keep": "sigreg"}, ["keep:", "'sigreg'"]),
        (ValueError, path, {"weights": ["all=1", "all=2"]}, ["weights:", "'all=2'", "all=1,2"]),
        (ValueError, path, {"epochs": 0}, ["epochs", "0"]),
        (ValueError, path, {"batch_size": 0}, ["batch_size", "0"]),
        (ValueError, path, {"max_length": 0}, ["max_length", "0"]),
        (ValueError, path, {"learning_rate": 2.0}, ["learning_rate", "2.0"]),
        (ValueError, path, {"max_length": 600}, ["max_length: 600", "512"]),
        (ValueError, path, {"valid": _csv(tmp_path / "v.csv", _labelled(["c"] * 9))}, ["valid:"]),
    ]
    for kind, file, options, named in cases:
        options = {"profile": profile, "model": "tiny-random", **options}
        _refused(named, plan_own, file, error=kind, **options)
    assert not results.exists()


def test_a_weight_for_every_arm_leaves_the_weights_of_one(tmp_path, results):
    path, profile = _csv(tmp_path / "mine.csv", _labelled(TWO)), load_profile("smoke")
    options = {"model": "tiny-random", "arms": ["all", "cosine"], "weights": ["all=1,2", "0.5"]}
    planned = plan_own(path, profile=profile, **options)
    found = {(config.arm, config.weight) for config in planned.configs}
    assert found == {("none", 1.0), ("all", 1.0), ("all", 2.0), ("cosine", 0.5)}


def test_a_folder_without_room_is_named_before_the_work(tmp_path, results, monkeypatch):
    path = _csv(tmp_path / "mine.csv", _labelled(TWO))
    free = shutil.disk_usage(tmp_path)._replace(free=2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    with pytest.raises(OSError, match=r"SHRINK_RESULTS_DIR: .* GiB left"):
        plan_own(path, profile=load_profile("smoke"), model="tiny-random")
    monkeypatch.undo()
    (tmp_path / "taken").write_text("mine")
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "taken" / "below"))
    with pytest.raises(OSError):
        plan_own(path, profile=load_profile("smoke"), model="tiny-random")


def test_texts_that_look_alike_to_the_encoder_are_refused_before_the_training(tmp_path, results):
    emoji = _labelled(TWO).assign(text=["😀" * (i + 1) for i in range(120)])
    begun = _labelled(TWO).assign(text=[f"one begins as the others: {i}" for i in range(120)])
    for frame, options in ((emoji, {}), (begun, {"max_length": 6})):
        path = _csv(tmp_path / "mine.csv", frame)
        with pytest.raises(ValueError, match=r"text: tiny-random .* of 120 "):
            plan_own(path, profile=load_profile("smoke"), model="tiny-random", **options)
    assert not results.exists()


def test_copies_and_groups_stay_on_one_side_and_classes_keep_their_shares(tmp_path):
    frame = _labelled(["a", "a", "a", "b"] * 60, who=[f"customer {i // 4}" for i in range(240)])
    frame.loc[100:119, "text"] = "  The SAME text "
    frame.loc[5, "text"], frame.loc[7, "label"] = "", None
    task = _read_own_task(_csv(tmp_path / "mine.csv", frame), group="who")
    train, held_out = task.sides["train"], task.sides["validation"]
    assert len(train) + len(held_out) == 238 and 40 <= len(held_out) <= 56
    assert not {*train.group} & {*held_out.group}
    assert not {*map(text_key, train.text)} & {*map(text_key, held_out.text)}
    assert abs((held_out.label == 0).mean() - 0.75) < 0.03
    assert any("lines 7" in note for note in task.notes) and len(task.notes) == 2
    assert task.facts[COPIED] == "20"
    assert task.metrics[0] == "macro_f1" and task.label_names == ("a", "b")


def test_a_class_that_the_validation_file_lacks_is_told(tmp_path):
    mine, other = _labelled(["a", "b", "c"] * 20), _labelled(["a", "b"] * 15)
    other["text"] = "another " + other.text
    task = _read_own_task(_csv(tmp_path / "mine.csv", mine), valid=_csv(tmp_path / "v.csv", other))
    assert [note for note in task.notes if "valid" in note and "'c'" in note]


def test_a_validation_file_takes_its_texts_out_of_the_training_rows(tmp_path):
    mine, other = _labelled(TWO), _labelled(TWO[:30])
    other.loc[3:, "text"] += " and others"
    task = _read_own_task(_csv(tmp_path / "mine.csv", mine), valid=_csv(tmp_path / "v.csv", other))
    assert len(task.sides["validation"]) == 30 and len(task.sides["train"]) == 117
    assert task.notes[0].startswith("valid: 3 ") and task.facts[COPIED] == "0"


def test_a_word_that_may_stand_for_nothing_counts_as_a_class_and_is_told(tmp_path):
    task = _read_own_task(_csv(tmp_path / "mine.csv", _labelled(["good", "bad", "NaN"] * 40)))
    assert task.label_names == ("NaN", "bad", "good")
    assert [note.startswith("label: 'NaN'") for note in task.notes] == [True]


def test_a_refusal_never_quotes_a_whole_text(tmp_path):
    texts = [
        f"{i}: " + "a long letter about a flat that I do not want to let " * 9 for i in range(60)
    ]
    for kind in (None, "regression"):
        with pytest.raises(ValueError, match="label: ") as refused:
            _read_own_task(_csv(tmp_path / "mine.csv", _labelled(texts)), kind=kind)
        assert len(str(refused.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_a_task_is_the_same_from_every_form_of_file_and_loads_like_the_studys(
    tmp_path, results, form, reviews
):
    write = {
        "csv": lambda frame, path: frame.to_csv(path, index=False),
        "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
        "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
        "parquet": lambda frame, path: frame.to_parquet(path),
    }
    write[form](reviews, tmp_path / f"mine.{form}")
    task = _read_own_task(tmp_path / f"mine.{form}")
    expected = _read_own_task(_csv(tmp_path / "mine.csv", reviews))
    assert task.name == expected.name
    task.save()
    task.save()  # finished work stays
    spec, rows = task_spec(task.name), load_task(task.name)
    assert spec.metrics == ("accuracy", "macro_f1") and spec.n_labels == 2
    assert rows["validation"]["text"][:] == list(task.sides["validation"].text)
    assert (
        rows["train"]["text_pair"][0] is None and rows["train"].features["label"].num_classes == 2
    )


def test_pairs_regressions_and_numbers_that_are_classes(tmp_path, results):
    values = RNG.normal(size=120)
    other = [f"second text {i}" for i in range(120)]
    pairs = _labelled(values, other=other)
    task = _read_own_task(_csv(tmp_path / "pairs.csv", pairs), pair="other")
    task.save()
    spec = task_spec(task.name)
    assert spec.is_regression and spec.is_pair and spec.metrics == ("spearman",)
    assert "scale" not in task.facts["labels"]
    years = _read_own_task(_csv(tmp_path / "years.csv", _labelled(2000 + values)))
    assert "scale" in years.facts["labels"]
    assert load_task(task.name)["train"]["text_pair"][0].startswith("second text")
    stars = _csv(tmp_path / "stars.csv", _labelled([1, 2, 10] * 40))
    assert _read_own_task(stars, kind="classes").label_names == ("1", "2", "10")
    assert _read_own_task(stars, kind="regression").label_names == ()
    assert _read_own_task(_csv(tmp_path / "b.csv", _labelled([0, 1] * 60))).label_names == (
        "0",
        "1",
    )
    _labelled([True, "True", "False"] * 40).to_json(tmp_path / "t.json", orient="records")
    assert _read_own_task(tmp_path / "t.json").label_names == ("False", "True")


def test_the_halves_are_alike_and_share_no_group():
    labels, groups = np.repeat([0, 1, 1, 1], 50), np.arange(200) // 2
    second = _halves_of(labels, groups)
    assert abs(second.mean() - 0.5) < 0.05 and abs(labels[second].mean() - 0.75) < 0.05
    assert not {*groups[second]} & {*groups[~second]}
    assert (second == _halves_of(labels, groups)).all()


def test_a_language_that_the_tokenizer_cuts_to_pieces_is_told_and_english_is_not(tmp_path, results):
    german = """Die Lieferung kam verspätet, und die Verpackung war beschädigt. Der Kundendienst
    antwortete freundlich, konnte jedoch nichts unternehmen. Trotzdem empfehlenswert, wenn man
    Geduld mitbringt und Überraschungen schätzt.""".split()
    texts = [" ".join(RNG.permutation(german)) for _ in range(80)]
    frames = {"german": texts, "english": load_sentences("products", n=80)["text"][:]}
    for name, column in frames.items():
        path = _csv(tmp_path / f"{name}.csv", pd.DataFrame({"text": column, "label": TWO[:80]}))
        notes = plan_own(path, profile=load_profile("smoke"), model="tiny-random").notes
        assert bool(notes) == (name == "german"), notes


# --- one value per row -----------------------------------------------------------------------


def _seen(n=200, d=12, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (n,), generator=generator)
    outputs = torch.randn(n, classes, generator=generator) + 1.2 * torch.eye(classes)[labels]
    vectors = torch.randn(n, d, generator=generator) + 2 * torch.eye(d)[labels]
    return own_answer._Seen(outputs, vectors), labels.numpy()


def test_the_rows_of_a_measure_have_the_measure_as_their_mean():
    seen, labels = _seen()
    values = own_answer._row_values(seen, labels, _halves_of(labels, np.arange(200)), "accuracy")
    predicted = seen.outputs.argmax(1).numpy()
    loss = torch.nn.functional.cross_entropy(seen.outputs, torch.tensor(labels))
    share = anisotropy(seen.vectors.double(), k=1, center=True)[0]
    expected = {"accuracy": (predicted == labels).mean(), "loss": float(loss), "pc1": float(share)}
    expected["macro_f1"] = f1_score(labels, predicted, average="macro")
    assert {k: values[k].mean() for k in expected} == pytest.approx(expected, rel=1e-6)
    x, y = RNG.normal(size=(2, 150))
    y += x
    rho = own_answer._spearman_rows(x, y)
    assert rho.mean() == pytest.approx(stats.spearmanr(x, y).statistic)


def test_the_spread_of_those_rows_is_that_of_a_jackknife():
    seen, labels = _seen(n=300)
    predicted, x = seen.outputs.argmax(1).numpy(), seen.vectors.double()
    a, b = RNG.normal(size=(2, 300))
    b += a
    cases = [
        (own_answer._macro_f1_rows(predicted, labels), lambda kept: f1_score(
            labels[kept], predicted[kept], average="macro")),
        (own_answer._pc1_rows(x), lambda kept: float(anisotropy(x[kept], k=1, center=True)[0])),
        (own_answer._spearman_rows(a, b), lambda kept: stats.spearmanr(a[kept], b[kept])[0]),
    ]  # fmt: skip
    for rows, statistic in cases:
        left_out = np.array([statistic(np.arange(300) != i) for i in range(300)])
        error = math.sqrt(299 / 300 * ((left_out - left_out.mean()) ** 2).sum())
        assert rows.std() / math.sqrt(300) == pytest.approx(error, rel=0.05)
        assert np.corrcoef(rows, -left_out)[0, 1] > 0.99


def test_a_whitened_stretched_cloud_keeps_more_neighbours_by_one_bit_and_few_rows_are_no_error():
    for n in (400, 24, 6):
        x = torch.randn(n, 48, generator=torch.Generator().manual_seed(1)) * 0.2
        x[:, 0] += 6 * torch.randn(n, generator=torch.Generator().manual_seed(2))
        labels = (x[:, 0] > 0).long().numpy()
        second = _halves_of(labels, np.arange(n))
        if n == 6:  # three rows to fit on, two of them alike
            labels, x[1], second = np.array([0, 1] * 3), x[0], np.arange(n) > 2
        plain, white, topless = (
            own_answer._searched(x + 1, labels, second, treat)
            for treat in (None, own_answer._whiten, own_answer._topless)
        )
        if n == 400:
            assert white["one_bit"].mean() > plain["one_bit"].mean() + 0.1
            assert plain["same_class"].mean() > 0.9
        for values in (*white.values(), *topless.values()):
            assert np.isfinite(values).all() and (values <= 1 + 1e-12).all()


# --- the rule --------------------------------------------------------------------------------


def test_groups_keep_the_mean_and_copies_do_not_narrow_the_interval():
    values = RNG.normal(size=(4, 50))
    copied, groups = np.repeat(values, 3, axis=1), np.repeat(np.arange(50), 3)
    assert _by_groups(copied, groups) == pytest.approx(values)
    holes = np.where(np.arange(150) % 3 == 0, copied, np.nan)
    assert _by_groups(holes, groups) == pytest.approx(values)
    uneven = _by_groups(copied, np.minimum(groups, 20))
    assert uneven.mean(axis=1) == pytest.approx(copied.mean(axis=1))


@pytest.mark.parametrize(
    ("mean", "spread", "verdict"),
    [
        (0.05, 0.01, "better"),
        (-0.05, 0.01, "worse"),
        (0.0, 0.004, "no difference"),
        (0.004, 0.2, "not decided"),
        (0.0, 0.0, "the same"),
        (0.02, 0.0, "not decided"),  # equal differences do not show how far they spread
    ],
)
def test_the_verdict_on_planted_differences(mean, spread, verdict):
    z = RNG.normal(size=(5, 400))
    z -= z.mean()
    found = _verdict_on(mean + spread * z * math.sqrt(10), 1, 0.01, 3)
    assert found["verdict"] == verdict
    assert _verdict_on(-(mean + spread * z * math.sqrt(10)), -1, 0.01, 3)["verdict"] == verdict


def test_the_smallest_difference_is_found_four_times_in_five():
    def drawn(mean):
        seed, row = RNG.normal(size=(6, 1)) * 0.01, RNG.normal(size=300) * 0.1
        return mean + seed + row + RNG.normal(size=(6, 300)) * 0.3

    size = np.mean([_verdict_on(drawn(0.0), 1, 0.01, 3)["found"] for _ in range(100)])
    share = np.mean(
        [_verdict_on(drawn(size), 1, 0.01, 3)["verdict"] == "better" for _ in range(200)]
    )
    assert 0.7 <= share <= 0.95


def test_fewer_units_than_seeds_count_for_the_degrees_of_freedom():
    """Four customers: nearly all of the scatter is theirs, whatever the seeds."""
    customers = RNG.normal(size=(2000, 1, 4))
    cells = RNG.normal(size=(2000, 12, 4)) * 0.01
    verdicts = [_verdict_on(one, 1, 1e-9, 1)["verdict"] for one in customers + cells]
    wrong = np.mean([verdict != "not decided" for verdict in verdicts])
    assert 0.03 < wrong < 0.07


def test_so_many_seeds_as_are_said_to_be_needed_decide():
    seeds, cells = RNG.normal(size=(5, 1)), RNG.normal(size=(5, 200))
    draw = 0.012 + 0.02 * (seeds - seeds.mean()) / seeds.std() + 0.05 * (cells - cells.mean())
    found = _verdict_on(draw, 1, 0.01, 3)
    needed = found["seeds_needed"]
    assert found["verdict"] == "not decided" and 10 < needed < 60
    copies = np.tile(draw, (math.ceil(needed / 5), 1))  # of one mean and nearly one spread
    assert _verdict_on(copies, 1, 0.01, 3)["verdict"] == "better"
    few = np.tile(draw, (int(needed / 10), 1))
    assert _verdict_on(few, 1, 0.01, 3)["verdict"] == "not decided"
    rows = np.broadcast_to(RNG.normal(size=200), (5, 200)) + 1e-3 * RNG.normal(size=(5, 200))
    assert _verdict_on(rows - rows.mean(), 1, 0.01, 3)["seeds_needed"] == math.inf


def test_a_setting_that_is_lucky_in_one_half_is_not_judged_there():
    second = np.arange(400) % 2 == 0
    fair = [{"accuracy": np.full(400, 0.6)} for _ in range(3)]
    lucky = [{"accuracy": np.where(second, 0.9, 0.5)} for _ in range(3)]
    judged = _cross_chosen([fair, lucky], second, "accuracy")
    assert judged[0]["accuracy"][~second] == pytest.approx(0.5)  # chosen by the half of its luck
    assert judged[0]["accuracy"][second] == pytest.approx(0.6)
    late = [{"loss": np.full(400, 0.9)}], [{"loss": np.full(400, 0.4)}]
    assert _cross_chosen(late, second, "loss")[0]["loss"].mean() == pytest.approx(0.4)


@pytest.fixture(scope="module")
def recorded():
    """Correctness (seeds, rows) of plain fine-tuning on products, by record."""
    rows = pd.read_parquet(data_dir() / "reference/cohort/correct.parquet")
    rows = rows.query("task == 'sentiment_products' and epochs == 3 and arm == 'none'")
    return rows.pivot(index="seed", columns="row", values="correct").to_numpy()


def _study(by_condition):
    """What `conditions` gives, of correctness alone, with a guess as the one control."""
    found = {name: [{"accuracy": row} for row in rows] for name, rows in by_condition.items()}
    rows = found["plain"][0]["accuracy"]
    found["the commonest class"] = [{"accuracy": np.zeros(len(rows))}] * len(found["plain"])
    return found


def _told(found):
    groups = np.arange(len(found["plain"][0]["accuracy"]))
    return OwnAnswer("", "accuracy", 0.0, found, groups).sentences


def test_of_a_hundred_studies_without_a_difference_at_most_ten_name_a_winner(recorded):
    """Trainings of record that differ by seed alone, called plain and three conditions."""
    winners = 0
    for draw in np.random.default_rng(1).spawn(100):
        parts = np.split(recorded[draw.permutation(20)], 4)
        rows = draw.choice(599, 300, replace=False)
        names = ("plain", "prominent 1", "all 4", "isoscore 0.3")
        told = _told(_study({n: part[:, rows] for n, part in zip(names, parts, strict=True)}))
        winners += "No regularization term is shown to raise accuracy" not in " ".join(told)
    assert winners <= 10


def test_a_planted_winner_is_found_and_named_and_a_loser_is_told(recorded):
    better, worse = recorded[5:10].copy(), recorded[10:15].copy()
    better[:, :240], worse[:, -60:] = 1.0, 0.0
    groups = {"plain": recorded[:5], "prominent 1": better, "all 4": worse}
    told = _told(_study(groups))
    assert any(text.startswith("With prominent 1, accuracy rises from") for text in told)
    assert any(text.startswith("With all 4, accuracy falls from") for text in told)
    assert told[-1] == "The rule recommends prominent 1 for accuracy."
    early = _study(groups)
    early["plain, stopped early"] = [{"accuracy": row} for row in better]  # as good, and free
    told = _told(early)
    assert "prominent 1" not in told[-1]
    assert any("not shown to do less than prominent 1" in text for text in told)


def test_the_frozen_encoder_is_judged_by_its_answers_and_not_by_its_other_vectors():
    draws = np.random.default_rng(0)
    found = {
        name: [{m: draws.random(60) + up for m in ("accuracy", "pc1", "one_bit")} for _ in range(3)]
        for name, up in (("plain", 0), ("all 4", 1), ("frozen encoder, new head", 9))
    }
    found["the commonest class"] = [{"accuracy": np.zeros(60)}] * 3
    answer = OwnAnswer("", "accuracy", 0.0, found, np.arange(60))
    frozen = answer.table.xs("frozen encoder, new head", level="condition")
    assert frozen.verdict["accuracy"] == "better"
    assert frozen.verdict[["pc1", "one_bit"]].isna().all()
    assert answer.table.verdict["pc1", "all 4"] == "worse"
    cells = answer.shown().loc["frozen encoder, new head"]
    assert cells["accuracy"].endswith("better") and not cells["PC1 share"].strip("0123456789.")
    assert "for the share" not in answer.sentences[-1]  # yet as a rival it counts


def test_the_difference_that_is_promised_shrinks_with_rows_and_seeds():
    one = ("prominent", 1.0)
    sizes = [_expected_differences(r, s, [one])[one] for r, s in ((60, 5), (600, 5), (600, 20))]
    assert sizes[0] > 1.5 * sizes[1] > 1.5 * sizes[2] > 0
    assert 0.01 < sizes[1] < 0.05


def test_rows_of_one_group_promise_no_more_than_one_row(results, tmp_path, reviews):
    alone, of_four = (
        _planned(tmp_path, f"{size}.csv", reviews.assign(customer=np.arange(len(reviews)) // size))
        for size in (1, 4)
    )
    assert of_four > 1.5 * alone


def _planned(tmp_path, name, rows):
    path = _csv(tmp_path / name, rows)
    plan = plan_own(path, profile=load_profile("smoke"), group="customer", model="tiny-random")
    return float(plan.facts["smallest difference of accuracy to be found"].split()[0])


def test_a_condition_that_scatters_more_over_seeds_promises_less():
    """IsoScore★ at 1 has three times the seed standard deviation that it has at .3."""
    conditions = [("isoscore", 0.3), ("isoscore", 1.0), ("all", 1.0), ("sigreg", 1.0)]
    quiet, loud, *bars = _expected_differences(400, 5, conditions).values()
    assert loud > 2 * quiet
    assert bars[0] == bars[1]  # what is not on record is taken to be as all bars


# --- a study from end to end -----------------------------------------------------------------

FEW = ["--model", "tiny-random", "--seeds", "2", "--epochs", "2", "--batch-size", "32"]
FEW += ["--arms", "all", "--weights", "all=1,4"]


@pytest.fixture(scope="module")
def study(tmp_path_factory, reviews):
    """One command, run in an empty folder: its file, its results, and what it printed."""
    folder = tmp_path_factory.mktemp("own")
    path = _csv(folder / "my reviews.csv", reviews)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHRINK_RESULTS_DIR", str(folder / "results"))
        patch.setenv("SHRINK_PROFILE", "smoke")
        patch.setenv("SHRINK_WORKERS", "1")  # processes would load longer than they train
        assert main(["own", str(path), *FEW, "--keep", "all"]) == 0
    return path, folder / "results"


@pytest.fixture
def again(study, monkeypatch):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(study[1]))
    monkeypatch.setenv("SHRINK_PROFILE", "smoke")
    monkeypatch.setenv("SHRINK_WORKERS", "1")
    return study


def _answers(results):
    return sorted(path.parent for path in results.glob("own/*/answer.md"))


def test_the_answer_is_whole_and_quotes_no_text(again, reviews):
    results = again[1]
    (folder,) = _answers(results)
    assert re.fullmatch(r"my-reviews-[0-9a-f]{12}", folder.name)
    names = {file.name for file in folder.iterdir()}
    written = {"answer.md", "answer.csv", "answer.png", "answer.svg", "provenance.json"}
    assert written | {"14_your_own_task.ipynb"} <= names
    page = (folder / "answer.md").read_text(encoding="utf-8")
    table = pd.read_csv(folder / "answer.csv").set_index(["measure", "condition"])
    assert f"{table.loc[('accuracy', 'all bars × 1 or 4')].value:.3f}" in page
    notebook = (folder / "14_your_own_task.ipynb").read_text(encoding="utf-8")
    for text in reviews.text:
        assert text not in page and json.dumps(text)[1:-1] not in notebook
    assert not [*results.rglob("*.part*"), *results.rglob("*.failed*")]


def test_a_kept_model_loads_and_says_what_it_is(again):
    (folder,) = _answers(again[1])
    (kept, *_) = sorted(folder.glob("model-all-*"))
    config = AutoModel.from_pretrained(kept).config
    assert config.hidden_size == 32 and config.id2label == {0: "bad", 1: "good"}
    card = (kept / "README.md").read_text(encoding="utf-8")
    assert all(word in card for word in ("tiny-random", "my reviews.csv", "all, weight 1", "seed"))


def test_run_again_it_makes_nothing_and_says_the_same(again, capsys):
    path, results = again
    before = {file: file.stat().st_mtime_ns for file in results.rglob("*") if file.is_file()}
    assert main(["own", str(path), *FEW, "--keep", "all"]) == 0
    assert "are to be made" not in capsys.readouterr().out
    assert {f: f.stat().st_mtime_ns for f in results.rglob("*") if f.is_file()} == before


def test_a_study_that_was_stopped_comes_to_the_same_table_and_more_seeds_to_another_folder(
    again, tmp_path, monkeypatch
):
    path, results = again
    options = dict(model="tiny-random", seeds=2, epochs=2, batch_size=32, arms=["all"])
    options |= {"weights": ["all=1,4"]}
    expected = pd.read_csv(_answers(results)[0] / "answer.csv")
    more = plan_own(path, profile=load_profile("smoke"), **options | {"seeds": 3})
    assert len(more.configs) == 9 and len(more.missing) == 3
    assert more.folder != _answers(results)[0]
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "stopped"))
    planned = plan_own(path, profile=load_profile("smoke"), **options)
    part = type(planned)(**{**vars(planned), "configs": planned.configs[:4]})
    run_own(part)
    assert len(planned.missing) == 2 and planned.minutes() > 0
    table = answer_own(planned, run_own(planned)).table
    table.to_csv(tmp_path / "table.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "table.csv"), expected, check_exact=True)


def test_make_hands_its_settings_on_and_not_those_of_the_environment(tmp_path):
    given = ["TEXTS=my tickets.csv", "LABEL=what for", "ARMS=all cosine", "BATCH_SIZE=32"]
    told = run_make("-n", "own", *given, MODEL="not-mine")
    given = "--label 'what for' --arms all cosine --batch-size '32'"
    assert f"own 'my tickets.csv' {given}" in " ".join(told.stdout.split())
    empty = run_make("-n", "own")
    assert empty.returncode != 0 and "TEXTS=" in empty.stderr and not empty.stdout


def test_without_a_file_it_is_the_products_task_of_the_profile(again):
    profile = load_profile("smoke")
    planned = plan_own(profile=profile)
    assert {config.task for config in planned.configs} == {"sentiment_products"}
    assert {*planned.configs} <= {*profile.runs()} and planned.profile == profile
