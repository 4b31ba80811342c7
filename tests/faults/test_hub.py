"""A hub that cannot be reached: the message says what is missing, and which profiles need none."""

import pytest

from shrink_utils.__main__ import main


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


def test_without_data_the_message_names_folder_and_profiles(capsys):
    assert main(["--profile", "glue", "ablate"]) == 1
    told = capsys.readouterr().err
    assert "could not read GLUE task 'mrpc' from the hub" in told
    assert "SHRINK_GLUE_DIR" in told and "models need no model hub" in told


def test_without_the_model_the_message_names_it_and_the_profiles(tmp_path, monkeypatch, capsys):
    _glue(tmp_path / "glue")
    monkeypatch.setenv("SHRINK_GLUE_DIR", str(tmp_path / "glue"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert main(["--profile", "paper", "ablate"]) == 1
    told = capsys.readouterr().err
    assert "no encoder 'google-bert/bert-base-uncased'" in told
    assert "Profiles smoke, quick, cohort and models need no model hub." in told
    assert not list((tmp_path / "results").rglob("*.part"))
