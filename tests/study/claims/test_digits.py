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
from shrink_utils.study.profiles import load_profile
from shrink_utils.study.tables import write_table

COMMITTED = data_dir() / "reference" / "quick"
REPLICATES = pd.read_csv(COMMITTED / FILE).set_index("claim")
CLAIMS = pd.read_csv(COMMITTED / "claims.csv").set_index("claim")


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """Profile quick, finished, with four claims and a reference of the same."""
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "results"))
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "data" / "reference" / "quick"
    folder.mkdir(parents=True)
    claims = pd.DataFrame({"claim": list("abcd"), "estimate": [0.1, -2.0, 0.0, 0.5]})
    claims.to_csv(folder / "claims.csv", index=False)
    write_table(claims, "claims", profile=load_profile("quick"))
    return load_profile("quick")


def _moved(profile, by, name):
    claims = pd.DataFrame({"claim": list("abcd"), "estimate": [0.1, -2.0, 0.0, 0.5]})
    write_table(claims.assign(estimate=claims.estimate + by), "claims", profile=profile)
    return keep_replicate(profile, name).set_index("claim")


def test_a_claim_is_a_replicate_when_one_machine_moved_it_by_a_tenth_of_its_tolerance(profile):
    _moved(profile, [0, 0, 0, 0], "still")
    table = _moved(
        profile, [1.9e-4, 1.9e-3, 2.1e-4, -0.4], "another"
    )  # of .0002, .002, .0002, .0005
    assert table.kind.to_list() == ["digits", "digits", "replicate", "replicate"]
    assert table.moved.to_list() == pytest.approx([1.9e-4, 1.9e-3, 2.1e-4, 0.4])
    folder = data_dir() / "reference" / "quick"
    assert measured_digits(folder) == {"a", "b"}
    again = _moved(profile, [0, 0, 0, 0], "still")  # what another machine has moved stays moved
    assert again.kind.equals(table.kind) and set(again) == {"kind", "moved", "still", "another"}


def test_a_claim_that_nobody_has_measured_is_no_digit(profile):
    _moved(profile, [0, 0, 0, 0], "still")
    folder = data_dir() / "reference" / "quick"
    claims = pd.read_csv(folder / "claims.csv")
    claims.loc[4] = ["e", 1.0]
    claims.to_csv(folder / "claims.csv", index=False)
    judge_replicates(folder)
    assert measured_digits(folder) == set("abcd")


def test_replicates_are_judged_anew_when_the_reference_changes(profile):
    _moved(profile, [0, 0, 0, 0], "still")
    folder = data_dir() / "reference" / "quick"
    claims = pd.read_csv(folder / "claims.csv")
    claims.loc[0, "estimate"] += 0.1
    claims.to_csv(folder / "claims.csv", index=False)
    judge_replicates(folder)
    assert measured_digits(folder) == set("bcd")


def test_without_a_study_there_is_nothing_to_keep(profile, tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "empty"))
    with pytest.raises(FileNotFoundError, match="no table"):
        keep_replicate(profile, "a machine")
    assert not (data_dir() / "reference" / "quick" / FILE).exists()


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
    from_nothing = REPLICATES[REPLICATES.index.str.match("v:lca|b:stitch|b:generalization")]
    columns = from_nothing.dropna(axis=1).columns
    assert sum("rounding seed" in name for name in columns) >= 3
    assert len({name.partition(", rounding")[0] for name in columns[2:]}) >= 2


def test_hardly_any_claim_on_models_trained_from_nothing_hangs_on_rounding():
    fine_tuned = (CLAIMS.unit == "seeds") & CLAIMS.task.notna()
    assert (REPLICATES.kind[~fine_tuned] == "replicate").sum() <= 20
