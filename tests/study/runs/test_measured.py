"""Measured once, loaded afterwards, and again when what it rests on changes."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.runs import measured
from shrink_utils.study.runs.measured import measured as measured_as


@pytest.fixture
def profile(tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    return load_profile("smoke")


@pytest.fixture
def calls():
    return []


@pytest.fixture
def measure(calls):
    @measured_as("lengths")
    def lengths(profile):
        """How long."""
        calls.append(profile)
        return pd.DataFrame({"layer": [0, 1], "value": [1 / 3, 2.0**-60]})

    return lengths


def test_the_second_call_loads_the_very_numbers_of_the_first(profile, measure, calls):
    first, second = measure(profile), measure(profile)
    assert len(calls) == 1
    pd.testing.assert_frame_equal(first, second, check_exact=True)
    assert second.value.tolist() == [1 / 3, 2.0**-60]


def test_another_profile_is_measured_anew_and_takes_the_old_tables_place(profile, measure, calls):
    measure(profile)
    measure(replace(profile, diagnostic_sentences=7))
    assert len(calls) == 2
    assert len(list((profile.folder / "measured").iterdir())) == 1


def test_changed_code_is_measured_anew(profile, measure, calls, monkeypatch):
    measure(profile)
    monkeypatch.setattr(measured, "_computed_by", lambda module: ("other code",))
    measure(profile)
    assert len(calls) == 2


@pytest.mark.parametrize("pins", ["hub_revisions", "source_hashes"])
def test_what_other_pins_bring_is_measured_anew(profile, measure, calls, monkeypatch, pins):
    measure(profile)
    monkeypatch.setattr(measured, pins, lambda: {"an input": "another commit"})
    measure(profile)
    assert len(calls) == 2


def test_a_table_whose_name_begins_alike_is_left_alone(profile, measure):
    other = measured_as("lengths-by-word")(lambda profile: pd.DataFrame({"a": [1]}))
    other(profile)
    measure(profile)
    measure(replace(profile, diagnostic_sentences=7))
    assert len(list((profile.folder / "measured").glob("lengths-by-word-*"))) == 1


def test_a_measurement_that_fails_leaves_nothing(profile):
    @measured_as("broken")
    def broken(profile):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        broken(profile)
    assert not (profile.folder / "measured").exists()


def _cut(data):
    return data[:40]


def _flip(data):
    return data[:20] + bytes([data[20] ^ 1]) + data[21:]


@pytest.mark.parametrize("hurt", [_cut, _flip])
def test_a_damaged_table_is_named_and_measured_again(profile, measure, calls, hurt):
    whole = measure(profile)
    path = next((profile.folder / "measured").iterdir())
    path.write_bytes(hurt(path.read_bytes()))
    with pytest.warns(UserWarning, match=r"lengths-.*is damaged.*measuring again"):
        again = measure(profile)
    pd.testing.assert_frame_equal(again, whole, check_exact=True)
    assert len(calls) == 2


def test_the_function_keeps_its_name_and_docstring(measure):
    assert (measure.__name__, measure.__doc__) == ("lengths", "How long.")


def test_a_table_that_cannot_be_written_whole_leaves_nothing(profile, measure, monkeypatch):
    def fail(table, path, **options):
        path.write_bytes(b"PAR1")
        raise OSError("No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", fail)
    with pytest.raises(OSError, match="No space"):
        measure(profile)
    assert list((profile.folder / "measured").iterdir()) == []
