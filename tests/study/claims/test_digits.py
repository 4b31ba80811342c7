"""Which claims are digits is measured: what any replicate moves is none."""

import pandas as pd
import pytest

from shrink_utils.paths import data_dir
from shrink_utils.study.claims.digits import (
    FILE,
    judge_replicates,
    keep_replicate,
    measured_digits,
    tolerance,
)

COMMITTED = data_dir() / "reference" / "quick"
REPLICATES = pd.read_csv(COMMITTED / FILE).set_index("claim")
CLAIMS = pd.read_csv(COMMITTED / "claims.csv").set_index("claim")
FOUR = pd.DataFrame({"claim": list("abcd"), "estimate": [0.1, -2.0, 0.0, 0.5]})


@pytest.fixture
def folder(tmp_path):
    """A reference of four claims."""
    FOUR.to_csv(tmp_path / "claims.csv", index=False)
    return tmp_path


def _moved(folder, by, name):
    claims = FOUR.assign(estimate=FOUR.estimate + by)
    return keep_replicate(claims, folder, name).set_index("claim")


def test_a_claim_is_a_replicate_when_one_machine_moved_it_by_a_tenth_of_its_tolerance(folder):
    _moved(folder, [0, 0, 0, 0], "still")
    # They may by .0002, .002, .0002 and .0005.
    table = _moved(folder, [1.9e-4, 1.9e-3, 2.1e-4, -0.4], "another")
    assert table.kind.to_list() == ["digits", "digits", "replicate", "replicate"]
    assert table.moved.to_list() == pytest.approx([1.9e-4, 1.9e-3, 2.1e-4, 0.4])
    assert measured_digits(folder) == {"a", "b"}
    again = _moved(folder, [0, 0, 0, 0], "still")  # what another machine has moved stays moved
    assert again.kind.equals(table.kind) and set(again) == {"kind", "moved", "still", "another"}


def test_a_replicate_of_some_claims_says_nothing_of_the_others(folder):
    keep_replicate(FOUR[:2], folder, "some")
    assert measured_digits(folder) == {"a", "b"}


def test_a_claim_that_nobody_has_measured_is_no_digit(folder):
    _moved(folder, [0, 0, 0, 0], "still")
    more = pd.concat([FOUR, pd.DataFrame({"claim": ["e"], "estimate": [1.0]})])
    more.to_csv(folder / "claims.csv", index=False)
    judge_replicates(folder)
    assert measured_digits(folder) == set("abcd")


def test_replicates_are_judged_anew_when_the_reference_changes(folder):
    _moved(folder, [0, 0, 0, 0], "still")
    moved = FOUR.assign(estimate=[0.2, -2.0, 0.0, 0.5])
    moved.to_csv(folder / "claims.csv", index=False)
    judge_replicates(folder)
    assert measured_digits(folder) == set("bcd")


def test_without_a_reference_there_is_nothing_to_compare_with(tmp_path):
    with pytest.raises(FileNotFoundError):
        keep_replicate(FOUR, tmp_path, "a machine")
    assert measured_digits(tmp_path) == set() and not (tmp_path / FILE).exists()


# --- what is committed ---------------------------------------------------------------------------


def test_every_claim_of_the_reference_was_measured():
    estimates = REPLICATES.drop(columns=["kind", "moved"])
    assert REPLICATES.index.equals(CLAIMS.index)
    assert estimates.notna().any(axis=1).all()


def test_kinds_follow_from_the_estimates():
    estimates = REPLICATES.drop(columns=["kind", "moved"])
    moved = estimates.sub(CLAIMS.estimate, axis=0).abs().max(axis=1)
    digits = moved <= tolerance(CLAIMS.estimate) / 10
    assert (digits == (REPLICATES.kind == "digits")).all()


def test_models_from_nothing_were_measured_under_three_rounding_seeds_and_other_kernels():
    from_nothing = REPLICATES[REPLICATES.index.str.match("b:generalization")]
    columns = from_nothing.dropna(axis=1).columns
    assert sum("rounding seed" in name for name in columns) >= 3
    assert len({name.partition(", rounding")[0] for name in columns[2:]}) >= 2


def test_hardly_any_claim_on_models_trained_from_nothing_hangs_on_rounding():
    fine_tuned = (CLAIMS.unit == "seeds") & CLAIMS.task.notna()
    assert (REPLICATES.kind[~fine_tuned] == "replicate").sum() <= 20
