"""Progress is shown to people, and kept out of what is stored."""

from __future__ import annotations

import pytest

from shrink_utils.study.runs.progress import progress_bar


@pytest.mark.parametrize(("value", "shown"), [("1", False), ("0", True), (None, True)])
def test_the_variable_turns_it_off(monkeypatch, capfd, value, shown):
    monkeypatch.delenv("TQDM_DISABLE")
    if value is not None:
        monkeypatch.setenv("TQDM_DISABLE", value)
    with progress_bar(total=3, unit="step", description="runs") as bar:
        bar.update(3)
    assert ("runs" in capfd.readouterr().err) is shown


def test_nothing_to_do_is_no_bar(monkeypatch, capfd):
    monkeypatch.delenv("TQDM_DISABLE")
    with progress_bar(total=0, unit="step"):
        pass
    assert capfd.readouterr().err == ""
