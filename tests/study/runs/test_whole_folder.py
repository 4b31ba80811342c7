"""A folder written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from shrink_utils.study.runs.whole_folder import (
    DamagedRunError,
    load_whole,
    move_aside,
    name_of,
    read_json,
    verify,
    write_json,
    written_whole,
)


def _write(target, value=1):
    with written_whole(target) as part:
        write_json(part / "value.json", {"value": value})
        (part / "inner").mkdir()
        (part / "inner" / "text").write_text("some text")


def _load(folder):
    verify(folder)
    return read_json(folder / "value.json")["value"]


def test_what_was_written_is_read(tmp_path):
    target = tmp_path / "new" / "abc"
    _write(target, 7)
    assert load_whole(target, _load) == 7
    assert [path.name for path in target.parent.iterdir()] == ["abc"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o755


def test_nothing_of_that_name_is_none(tmp_path):
    assert load_whole(tmp_path / "abc", _load) is None


@pytest.mark.parametrize("error", [OSError("No space left"), KeyError("x"), KeyboardInterrupt()])
def test_what_fails_while_it_writes_leaves_nothing(tmp_path, error):
    with pytest.raises(type(error)), written_whole(tmp_path / "abc") as part:
        write_json(part / "value.json", {})
        raise error
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_not_there_before_it_is_whole(tmp_path):
    with written_whole(tmp_path / "abc") as part:
        assert part.parent == tmp_path and not (tmp_path / "abc").exists()
        assert str(os.getpid()) in part.name and part.name.endswith(".part")


def test_the_first_of_two_writers_stays(tmp_path):
    with written_whole(tmp_path / "abc") as part:
        write_json(part / "value.json", {"value": "late"})
        _write(tmp_path / "abc", "early")
    assert load_whole(tmp_path / "abc", _load) == "early"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "hurt",
    [
        lambda f: (f / "inner" / "text").write_text("some test"),
        lambda f: (f / "value.json").unlink(),
        lambda f: (f / "manifest.json").write_text("{"),
        lambda f: (f / "manifest.json").unlink(),
    ],
    ids=["changed", "missing", "manifest", "no manifest"],
)
def test_damage_is_noticed_and_the_folder_moved_aside(tmp_path, hurt):
    _write(tmp_path / "abc")
    hurt(tmp_path / "abc")
    with pytest.raises(DamagedRunError, match="run abc is damaged"):
        verify(tmp_path / "abc")
    with pytest.warns(UserWarning, match="run abc is damaged.*Moved to abc.damaged-1"):
        assert load_whole(tmp_path / "abc", _load) is None
    assert [path.name for path in tmp_path.iterdir()] == ["abc.damaged-1"]


def test_of_what_is_not_read_it_is_enough_to_be_there(tmp_path):
    _write(tmp_path / "abc")
    (tmp_path / "abc" / "inner" / "text").write_text("other")
    verify(tmp_path / "abc", unread="inner")
    (tmp_path / "abc" / "inner" / "text").unlink()
    with pytest.raises(DamagedRunError, match="run abc is damaged"):
        verify(tmp_path / "abc", unread="inner")


def test_damaged_folders_are_numbered(tmp_path):
    for n in (1, 2):
        _write(tmp_path / "abc")
        assert move_aside(tmp_path / "abc").name == f"abc.damaged-{n}"


def test_a_name_follows_its_parts_and_not_the_order_of_keys():
    assert name_of({"a": 1, "b": 2}, "x") == name_of({"b": 2, "a": 1}, "x")
    names = {name_of({"a": 1}, "x"), name_of({"a": 2}, "x"), name_of({"a": 1}, "y"), name_of()}
    assert len(names) == 4
    assert all(len(name) == 16 and int(name, 16) >= 0 for name in names)


@pytest.mark.parametrize("name", ["copy.part", "a.b.part", "a.pid.host.x.part", "1.2.3.part"])
def test_somebodys_own_part_is_left_alone(tmp_path, name):
    (tmp_path / name).mkdir()
    os.utime(tmp_path / name, (0, 0))  # however old
    _write(tmp_path / "abc")
    assert {path.name for path in tmp_path.iterdir()} == {"abc", name}


@pytest.mark.parametrize("content", [b"", b'{"seconds": ', b"\xff"])
def test_a_file_that_holds_no_json_is_named(tmp_path, content):
    path = tmp_path / "provenance.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{path}: no JSON \("):
        read_json(path)
