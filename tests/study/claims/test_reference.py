"""A study's tables beside the committed ones: another machine passes, a fault does not."""

import shutil
import warnings
from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch.nn import functional

from shrink_utils.sources import data_dir
from shrink_utils.study import finetuning
from shrink_utils.study.claims import reference
from shrink_utils.study.claims.reference import (
    COMPARED,
    _changed_verdicts,
    _compare_with_reference,
    _first_steps,
    _judge,
    _print_comparison,
    _reference_command,
)
from shrink_utils.study.profiles import load_profile
from shrink_utils.study.run_tables import _tables_of_run
from shrink_utils.study.tables import read_table, write_table
from shrink_utils.topology import BarcodeRegularizer, regularizer
from shrink_utils.training import trainer

COMMITTED = data_dir() / "reference" / "quick"


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """Profile quick, finished: its tables are the committed ones, and so is its reference."""
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "results"))
    profile = load_profile("quick")
    for name in COMPARED:
        write_table(pd.read_csv(COMMITTED / f"{name}.csv"), name, profile=profile)
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path / "data"))
    _reference_command(profile)
    shutil.copy(COMMITTED / "rounding.csv", tmp_path / "data" / "reference" / "quick")
    return profile


def _change(profile, name, change):
    table = read_table(name, profile=profile)
    change(table)
    write_table(table, name, profile=profile)


def _is_within(profile):
    return all(_judge(_compare_with_reference(profile)).values())


def _replicate(profile, rng):
    """Another machine's tables: digits rounded otherwise, fine-tuned numbers of other draws."""
    for name, (keys, columns) in COMPARED.items():
        table = pd.read_csv(COMMITTED / f"{name}.csv")
        cells = reference._cells(table, keys, columns, reference._measured_digits(COMMITTED))
        noise = np.where(cells.chaotic, cells.half / stats.t.ppf(0.975, 4), 1e-4 * cells.value)
        moved = cells.value + noise * rng.normal(size=len(cells))
        for column in columns:
            table[column] = moved[cells.column == column].to_numpy()
        write_table(table, name, profile=profile)


def test_equal_tables_are_within_and_named_by_kind(quick):
    table = _compare_with_reference(quick)
    assert table.within.all() and set(table.table) == set(COMPARED)
    assert set(table.kind) == {"digits", "replicate"} and _changed_verdicts(quick) == []


def test_another_machine_passes(quick):
    for seed in range(5):
        _replicate(quick, np.random.default_rng(seed))
        assert _is_within(quick), seed


def test_one_number_outside_or_a_changed_verdict_is_a_line_and_no_failure(quick, capsys):
    row = read_table("claims", profile=quick).query("unit != 'seeds'").index[0]
    _change(quick, "claims", lambda t: t.__setitem__("estimate", t.estimate + (t.index == row)))
    _change(quick, "claims", lambda t: t.__setitem__("verdict", [*t.verdict[:-1], "x"]))
    assert _print_comparison(quick)
    claims, told = read_table("claims", profile=quick).claim, capsys.readouterr().out
    assert claims[row] in told and claims.iloc[-1] in told


def test_fine_tuned_numbers_beyond_their_intervals_are_a_failure(quick, capsys):
    half = stats.t.ppf(0.975, read_table("anisotropy", profile=quick).n - 1)
    shift = 2 * half * read_table("anisotropy", profile=quick).sd + 0.01
    _change(quick, "anisotropy", lambda t: t.__setitem__("mean", t["mean"] + shift))
    assert not _print_comparison(quick)


def test_a_learning_rate_is_compared_though_it_is_small(quick):
    _change(quick, "first_steps", lambda t: t.__setitem__("learning_rate", 2 * t.learning_rate))
    assert not _is_within(quick)


def test_a_missing_row_is_outside(quick):
    write_table(read_table("claims", profile=quick).iloc[1:], "claims", profile=quick)
    outside = _compare_with_reference(quick).query("not within")
    assert len(outside) == 1 and outside.ours.isna().all()


def test_there_is_nothing_to_compare_without_a_reference_or_with_another_seed(quick):
    for profile in (replace(quick, base_seed=1), replace(quick, name="unknown")):
        assert _compare_with_reference(profile) is None and _print_comparison(profile)


# --- planted faults: the runs of quick with a tiny encoder, four steps each ----------------------


def _tiny(profile):
    """Two arms of quick on products, of one seed, with a tiny encoder and few rows."""
    small = {"model": "tiny-random", "train_rows": 256, "eval_rows": 64, "epochs": 1}
    runs = [run for run in profile.runs() if (run.task, run.seed) == ("sentiment_products", 0)]
    return [replace(run, **small) for run in runs if run.arm in ("prominent", "all")]


def _steps_of(configs):
    found = []
    for config in configs:
        result = finetuning.finetune(config)
        left = (result.history, result.evaluations, result.embeddings)
        found.append(_first_steps(_tables_of_run(config.as_dict(), *left, {})))
    return pd.concat(found, ignore_index=True)


def _rounded(relative=1e-6):
    """Run as a machine whose weights are off by so much."""
    load = finetuning.load_classifier

    def moved(*args, **options):
        model, tokenizer = load(*args, **options)
        draws = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for weights in model.parameters():
                weights.mul_(1 + relative * torch.randn(weights.shape, generator=draws))
        return model, tokenizer

    return patch.object(finetuning, "load_classifier", moved)


def _through(change):
    """Patch what the regularizer is given, or what it gives back."""
    original = BarcodeRegularizer.forward
    return patch.object(
        BarcodeRegularizer, "forward", lambda self, x, y=None: change(original, self, x, y)
    )


SELECT, SCORE, DROP = regularizer._prominent_positions, trainer.anisotropy, functional.dropout
FAULTS = {
    "a logarithm of base 2": lambda: _through(
        lambda f, s, x, y: (out := f(s, x, y))._replace(
            loss=out.loss / np.log(2), entropy=out.entropy / np.log(2)
        )
    ),
    "the sign of the reward": lambda: _through(
        lambda f, s, x, y: (out := f(s, x, y))._replace(loss=-out.loss)
    ),
    "a reward without gradient": lambda: _through(lambda f, s, x, y: f(s, x.detach(), y)),
    "one barcode for the batch": lambda: _through(lambda f, s, x, y: f(s, x, None)),
    "classes that lose a row": lambda: _through(
        lambda f, s, x, y: f(s, x[1:], None if y is None else y[1:])
    ),
    "a selection off by one": lambda: patch.object(
        regularizer, "_prominent_positions", lambda *a, **k: SELECT(*a, **k)[1:]
    ),
    "a centring left out": lambda: patch.object(
        trainer, "anisotropy", lambda x, *, k=3, center=False: SCORE(x, k=k)
    ),
    "evaluation with dropout": lambda: patch.object(
        torch.nn.Dropout, "forward", lambda self, x: DROP(x, self.p, True)
    ),
    "weights a hundredth off": lambda: _rounded(1e-2),
}
CHANGES = {
    "arms' weights exchanged": lambda c: replace(c, weight=3.0 * c.weight),
    "no warm-up": lambda c: replace(c, warmup=0.0),
    "another learning rate": lambda c: replace(c, learning_rate=2 * c.learning_rate),
    "another pooling": lambda c: replace(c, pooling="mean"),
    "other rows": lambda c: replace(c, seed=c.seed + 10),
    "arms exchanged": lambda c: replace(c, arm={"all": "prominent"}.get(c.arm, c.arm)),
}


@pytest.fixture(scope="module")
def sound():
    return _steps_of(_tiny(load_profile("quick")))


def _held_against(sound, ours):
    """The verdict of the comparison on the first steps, as on another machine."""
    columns = COMPARED["first_steps"][1]
    both = ours[columns].melt(var_name="column", value_name="ours")
    both["reference"] = sound[columns].melt()["value"]
    both["allowed"] = reference._tolerance(both)
    both["within"] = (both.ours - both.reference).abs() <= both.allowed
    both = both[both.reference.notna() | both.ours.notna()]
    return all(_judge(both.assign(table="first_steps", kind="digits", row="")).values())


@pytest.mark.parametrize("fault", [*FAULTS, *CHANGES])
def test_a_planted_fault_is_found(sound, fault):
    keys, _ = COMPARED["first_steps"]
    configs = _tiny(load_profile("quick"))
    change = CHANGES.get(fault, lambda config: config)
    with FAULTS.get(fault, nullcontext)(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the Trainer names one of them itself
        ours = _steps_of([change(config) for config in configs])
    ours[keys] = sound[keys]  # it says that it is the same study
    assert not _held_against(sound, ours), fault


def test_a_rounding_replicate_has_no_fault(sound):
    with _rounded():
        ours = _steps_of(_tiny(load_profile("quick")))
    assert not ours.equals(sound) and _held_against(sound, ours)
