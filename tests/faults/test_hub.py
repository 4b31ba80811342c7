"""A hub that cannot be reached: the message says what is missing, and which profiles need none."""

from shrink_utils.__main__ import main


def test_without_data_the_message_names_folder_and_profiles(tmp_path, monkeypatch, capsys):
    """No hub (the tests' setting), and no model or data set of it in a cache."""
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "results"))
    monkeypatch.delenv("SHRINK_GLUE_DIR", raising=False)
    monkeypatch.setattr("shrink_utils.text.tasks.data_dir", lambda: tmp_path)
    assert main(["--profile", "glue", "ablate"]) == 1
    told = capsys.readouterr().err
    assert "could not read GLUE task 'mrpc' from the hub" in told and "SHRINK_GLUE_DIR" in told
    assert "Profiles smoke, quick, cohort and models need no model hub." in told
