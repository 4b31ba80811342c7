"""A result: written whole or not at all, computed once, checked when read, stale when it should."""

import linecache
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import ARMS, load_profile, results, tables
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import (
    HOST,
    Result,
    _DamagedResultError,
    _read_json,
    atomic_write,
)
from shrink_utils.study.tables import MeasuredTables, cached_table


def _save(folder, value=1):
    with Result(folder).save({"value": value}, since=time.perf_counter(), who="me") as part:
        (part / "inner").mkdir()
        (part / "inner" / "text").write_text("some text")


def _read(folder):
    Result(folder).verify()
    return _read_json(folder / "config.json")["value"]


def _names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path):
    _save(tmp_path / "runs" / "abc", 7)
    return tmp_path / "runs" / "abc"


def test_what_was_saved_is_read_and_nothing_else_is_there(folder):
    assert Result(folder).load(_read) == 7
    assert _names(folder.parent) == {"abc"}
    assert _names(folder) == {"config.json", "provenance.json", "manifest.json", "inner"}
    stamp = _read_json(folder / "provenance.json")
    assert {"packages", "device", "threads", "commit", "time", "seconds"} <= set(stamp)
    assert stamp["who"] == "me" and 0 <= stamp["seconds"] < 60
    Result(folder).verify()


@pytest.mark.parametrize("error", [OSError("No space left"), KeyboardInterrupt()])
def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(type(error)), atomic_write(path) as part:
        part.write_text("ha")
        raise error
    with pytest.raises(type(error)), Result(tmp_path / "abc").save({}, since=0.0) as part:
        (part / "file").touch()
        raise error
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_the_folder_is_not_there_before_it_is_whole_and_the_first_of_two_writers_stays(tmp_path):
    with Result(tmp_path / "abc").save({"value": "late"}, since=0.0) as part:
        assert part.parent == tmp_path and not (tmp_path / "abc").exists()
        _save(tmp_path / "abc", "early")
    assert Result(tmp_path / "abc").load(_read) == "early"
    assert len(_names(tmp_path)) == 1


@pytest.mark.parametrize(
    "hurt",
    [
        lambda f: (f / "inner" / "text").write_text("some test"),
        lambda f: (f / "provenance.json").unlink(),
        lambda f: (f / "manifest.json").write_text("{"),
        lambda f: (f / "manifest.json").unlink(),
    ],
)
def test_damage_is_noticed_and_the_folder_removed(folder, hurt):
    hurt(folder)
    with pytest.raises(_DamagedResultError, match="runs/abc is damaged"):
        Result(folder).verify()
    with pytest.warns(UserWarning, match="abc is damaged"):
        assert Result(folder).load(_read) is None
    assert not _names(folder.parent)


def test_what_a_killed_process_left_is_swept_and_what_is_somebodys_own_is_kept(tmp_path):
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    swept = [f"abc.{killed.pid}.{HOST}.0123abcd.part", f"b.csv.{killed.pid}.{HOST}.0123abcd.part"]
    kept = [
        f"abc.{os.getppid()}.{HOST}.0123abcd.part",  # its process lives
        f"abc.{killed.pid}.another-host.0123abcd.part",  # nothing is known of it
        f"a.csv.mine.{HOST}.0123abcd.part",
        "copy.part",
        "1.2.3.part",
    ]
    for name in (*swept, *kept):
        (tmp_path / name).touch() if "csv" in name else (tmp_path / name).mkdir()
    with atomic_write(tmp_path / "a.csv") as part:
        part.touch()
    assert _names(tmp_path) == {"a.csv", *kept}


@pytest.fixture
def profile(tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    return load_profile("smoke")


@pytest.fixture
def calls():
    return []


@pytest.fixture
def measure(calls):
    def lengths(profile):
        """How long."""
        calls.append(profile)
        return pd.DataFrame({"layer": [0, 1], "value": [1 / 3, 2.0**-60]})

    measure = cached_table("lengths")(lengths)
    assert (measure.__name__, measure.__doc__) == ("lengths", "How long.")
    return measure


def test_the_second_call_loads_the_very_numbers_of_the_first(profile, measure, calls):
    first, second = measure(profile), measure(profile)
    assert len(calls) == 1
    pd.testing.assert_frame_equal(first, second, check_exact=True)
    assert second.value.tolist() == [1 / 3, 2.0**-60]
    (path,) = (profile.folder / "tables").iterdir()
    said = pd.read_parquet(path).attrs
    assert path.name == "lengths.parquet" and said["seconds"] >= 0 and said["commit"]


def test_another_profile_is_measured_anew_and_takes_the_old_tables_place(profile, measure, calls):
    cached_table("lengths-by-word")(lambda profile: pd.DataFrame({"a": [1]}))(profile)
    measure(profile)
    measure(replace(profile, diagnostic_sentences=7))
    assert len(calls) == 2
    assert _names(profile.folder / "tables") == {"lengths.parquet", "lengths-by-word.parquet"}


def test_what_one_chapter_measured_another_one_reads(profile, measure, calls, monkeypatch):
    with pytest.raises(FileNotFoundError, match="no table 'lengths'"):
        MeasuredTables(profile)["lengths"]
    pd.testing.assert_frame_equal(
        measure(profile), MeasuredTables(profile)["lengths"], check_exact=True
    )
    with pytest.raises(FileNotFoundError, match="run the notebook"):  # not that of other sizes
        MeasuredTables(replace(profile, diagnostic_sentences=7))["lengths"]
    monkeypatch.setattr(tables, "code_hash", lambda **_: "of other code")
    with pytest.raises(FileNotFoundError, match="as profile and code are now"):
        MeasuredTables(profile)["lengths"]


@pytest.mark.parametrize(
    ("module", "pins"),
    [(tables, "hub_revisions"), (results, "source_hashes"), (tables, "code_hash")],
)
def test_what_other_pins_and_code_bring_is_measured_anew(
    profile, measure, calls, monkeypatch, module, pins
):
    monkeypatch.setattr(results, "_inputs", results._inputs.__wrapped__)  # looked up at every call
    measure(profile)
    monkeypatch.setattr(module, pins, lambda *_, **__: {"an input": "another commit"})
    measure(profile)
    assert len(calls) == 2


CELL = """
LAYERS = (0, 1)
SHOWN = 3


def double(x):
    return 2 * x  # a comment


@cached_table("cells")
def measure(profile):
    calls.append(profile)
    return pd.DataFrame({"layer": LAYERS, "value": [double(x) for x in LAYERS]})
"""


def _cell(text, calls):
    """What a cell of a notebook defines, and where Python finds its source."""
    name = f"<cell {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    cell = {"__name__": "__main__", "cached_table": cached_table, "pd": pd, "calls": calls}
    exec(compile(text, name, "exec"), cell)
    return cell["measure"]


@pytest.mark.parametrize(
    ("old", "new", "times"),
    [
        ("# a comment", "# another", 1),
        ("SHOWN = 3", "SHOWN = 4", 1),  # which the function does not name
        ("2 * x", "3 * x", 2),
        ("(0, 1)", "(0, 2)", 2),
    ],
)
def test_a_notebooks_function_follows_its_own_code_and_what_it_names(
    profile, calls, old, new, times
):
    for text in (CELL, CELL.replace(old, new)):
        _cell(text, calls)(profile)
    assert len(calls) == times


def test_a_table_that_only_calls_a_chapters_function_follows_that_functions_code(profile, calls):
    for two in ("2", "3"):
        inner = _cell(CELL.replace("2 * x", f"{two} * x"), calls).__wrapped__
        table = cached_table("outer", of=inner)(lambda profile, inner=inner: inner(profile))(
            profile
        )
        assert table.value.tolist() == [0, int(two)]


def test_a_table_follows_the_precision_and_the_arms_that_its_profile_names(
    profile, measure, calls, monkeypatch
):
    for arm, times in (("new", 1), ("loops", 1), ("random", 2), ("none", 3)):  # two are not named
        measure(profile)
        monkeypatch.setitem(ARMS, arm, {"selection": "random", "rule": "published"})
        measure(profile)
        assert len(calls) == times
    other = {"float32": "bfloat16", "bfloat16": "float32"}[profile.used_precision]
    monkeypatch.setattr(Profile, "used_precision", other)
    measure(profile)
    assert len(calls) == 4


@pytest.mark.parametrize(
    "hurt",
    [
        lambda data: data[:40],
        lambda data: data[:-1] + b"x",
        lambda data: data.replace(np.float64(1 / 3).tobytes(), np.float64(0.3).tobytes()),
    ],
)
def test_a_damaged_table_is_named_and_measured_again(profile, measure, calls, hurt):
    whole = measure(profile)
    (path,) = (profile.folder / "tables").glob("lengths.parquet")
    path.write_bytes(hurt(path.read_bytes()))
    with pytest.warns(UserWarning, match=r"tables/lengths.parquet is damaged.*computed again"):
        again = measure(profile)
    pd.testing.assert_frame_equal(again, whole, check_exact=True)
    assert len(calls) == 2
