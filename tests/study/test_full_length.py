"""What chapters show of a finished study's records. `claims/test_committed` has their values."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from shrink_utils.__main__ import main
from shrink_utils.study.claims.claim import whole_table
from shrink_utils.study.claims.clouds import measure_clouds
from shrink_utils.study.claims.stl import at_least_loss
from shrink_utils.study.claims.verdicts import finetuning_claims
from shrink_utils.study.full_length import FullLength
from shrink_utils.study.records import record_finished, recorded
from shrink_utils.study.tables import correct_rows, evaluations, graded, summarize

DATA = Path(__file__).resolve().parents[2] / "data"


def test_the_three_questions_of_other_tasks_were_fixed_before_and_all_else_is_exploratory():
    claims = pd.read_csv(DATA / "reference" / "glue" / "claims.csv")
    fixed = claims.claim[~claims.kind.str.endswith("exploratory")]
    names = ("lowers-centred-of-none", "metric-kept", "lowers-centred-of-all")
    expected = {f"stl:{n}:minilm:{task}:prominent" for n in names for task in ("mrpc", "cola")}
    assert set(fixed) == expected


def test_claims_from_records_are_those_from_run_folders(finished, tiny_runs, monkeypatch, tmp_path):
    monkeypatch.setattr("shrink_utils.study.records.data_dir", lambda: tmp_path)
    profile = replace(finished, sweep=())
    record_finished(profile)
    runs = graded(summarize(tiny_runs), correct_rows(tiny_runs))
    runs = at_least_loss(runs, evaluations(tiny_runs))
    found = finetuning_claims(runs, runs, measure_clouds(tiny_runs), weight=profile.weight)
    expected = whole_table(found)
    claims = FullLength(profile, recorded(profile)).claims
    claims = claims.assign(kind=claims.kind.str.removesuffix(", exploratory"))
    assert len(claims) > 10
    pd.testing.assert_frame_equal(claims, expected)


def test_the_command_decides_the_hypotheses_and_keeps_them(monkeypatch, tmp_path, capsys):
    records, committed = tmp_path / "reference" / "cohort", DATA / "reference" / "cohort"
    records.mkdir(parents=True)
    for path in committed.glob("*.parquet"):
        (records / path.name).symlink_to(path)
    (tmp_path / "published").symlink_to(DATA / "published")
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    main(["--profile", "cohort", "hypotheses"])
    assert "supported" in capsys.readouterr().out
    kept = (records / "hypotheses.csv").read_text(encoding="utf-8")
    assert kept == (committed / "hypotheses.csv").read_text(encoding="utf-8")
