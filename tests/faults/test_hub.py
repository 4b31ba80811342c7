"""A hub that cannot be reached: the message says what is missing, and which profiles need none."""

from __future__ import annotations

import pytest

from shrink_utils.__main__ import main
from shrink_utils.study import load_profile
from shrink_utils.study.verification.page import needs_hub, offline_profiles


@pytest.fixture(autouse=True)
def _empty(tmp_path, monkeypatch):
    """No hub (the tests' setting), and no model or data set of it in a cache."""
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "results"))
    monkeypatch.delenv("SHRINK_GLUE_DIR", raising=False)
    monkeypatch.setattr("shrink_utils.text.glue.data_dir", lambda: tmp_path)


def _glue(folder):
    """MRPC and CoLA of two rows a split."""
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    files = {
        "MRPC": header + "1\t7\t8\tHe sang.\tHe did sing.\n0\t9\t10\tHe sang.\tShe slept.\n",
        "CoLA": "gj04\t1\t\tThey sang.\ngj04\t0\t*\tThey sang it it.\n",
    }
    for name, text in files.items():
        (folder / name).mkdir(parents=True)
        for split in ("train", "dev"):
            (folder / name / f"{split}.tsv").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("profile", ["glue", "paper"])
def test_without_data_the_message_names_folder_and_profiles(profile, capsys):
    assert main(["--profile", profile, "ablate"]) == 1
    told = capsys.readouterr().err
    assert "could not read GLUE task 'mrpc' from the hub" in told
    assert "SHRINK_GLUE_DIR" in told and f"Profile {profile} reads a model hub" in told


def test_without_the_model_the_message_names_it_and_the_profiles(tmp_path, monkeypatch, capsys):
    _glue(tmp_path / "glue")
    monkeypatch.setenv("SHRINK_GLUE_DIR", str(tmp_path / "glue"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert main(["--profile", "paper", "ablate"]) == 1
    told = capsys.readouterr().err
    assert "no encoder 'google-bert/bert-base-uncased'" in told
    assert "Profile paper reads a model hub; " in told and "quick" in told and "need none." in told
    assert not list((tmp_path / "results").rglob("*.part"))


def test_the_profiles_that_need_no_hub_are_the_offline_ones():
    assert {"cohort", "models", "quick", "smoke"} <= {*offline_profiles()}
    assert needs_hub(load_profile("paper")) and needs_hub(load_profile("glue"))


def test_an_error_of_an_offline_profile_gets_no_such_line(capsys, monkeypatch):
    from shrink_utils import __main__ as command_line

    def fail(profile):
        raise ValueError("the hub of a wheel")

    monkeypatch.setattr("shrink_utils.study.grid.run_all", fail)
    assert command_line.main(["--profile", "smoke", "ablate"]) == 1
    assert capsys.readouterr().err == "shrink: the hub of a wheel\n"
