"""The committed tables of claims and hypotheses are those of the committed records."""

import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pandas as pd

from shrink_utils.paths import data_dir, home
from shrink_utils.study.claims.claim import combined_table
from shrink_utils.study.claims.clouds import measure_clouds
from shrink_utils.study.claims.stl import add_best_epoch
from shrink_utils.study.claims.verdicts import finetuning_claims
from shrink_utils.study.full_length import FullLength
from shrink_utils.study.records import record_finished, recorded
from shrink_utils.study.tables import add_correctness, correct_rows, evaluations, summarize

REFERENCE = data_dir() / "reference"
FOLLOWING = ["cohort/claims", "glue/claims", "models/claims"]
MEASURED = ("quick/", "models/layers", "models/machine_text")  # by whole studies and by models
PINS = tomllib.loads((REFERENCE / "frozen.toml").read_text(encoding="utf-8"))  # test_frozen.py
GOLDEN = Path("tests/study/claims/golden.csv")


def test_one_command_writes_every_table_that_follows_from_the_records(
    tmp_path, clone_into, study_environment
):
    """A table whose first row is lost is again as it is committed, byte by byte."""
    found = (path.relative_to(REFERENCE).with_suffix("") for path in REFERENCE.glob("*/*.csv"))
    frozen = {f"{name}/{table}" for name, of in PINS.items() if name not in ("earlier", "gone")
              for table in of["writes"]} | {"cohort/rules"}  # fmt: skip
    living = {p.as_posix() for p in found if not p.as_posix().startswith(MEASURED)}
    assert living - frozen == {*FOLLOWING}
    tables = [*(Path(f"data/reference/{name}.csv") for name in FOLLOWING), GOLDEN]
    page = Path("docs/verdicts.md")
    clone = clone_into(tmp_path)
    for table in tables:
        head, _, *rest = (home() / table).read_text("utf-8").splitlines(keepends=True)
        (clone / table).write_text("".join([head, *rest]), encoding="utf-8")
    text = (home() / page).read_text("utf-8")
    (clone / page).write_text(re.sub(r"(<!--n [^>]*-->)[^<]*", r"\1", text), encoding="utf-8")
    command = [sys.executable, "-m", "shrink_utils", "tables"]
    options = {"cwd": clone, "env": study_environment(clone), "capture_output": True, "text": True}
    done = subprocess.run(command, **options)
    assert done.returncode == 0, done.stderr
    for table in [*tables, page]:
        assert (clone / table).read_text("utf-8") == (home() / table).read_text("utf-8"), table


def test_the_three_questions_of_other_tasks_were_fixed_before_and_all_else_is_exploratory():
    claims = pd.read_csv(REFERENCE / "glue" / "claims.csv")
    fixed = claims.claim[~claims.kind.str.endswith("exploratory")]
    names = ("lowers-centred-of-none", "metric-kept", "lowers-centred-of-all")
    expected = {f"stl:{n}:minilm:{task}:prominent" for n in names for task in ("mrpc", "cola")}
    assert set(fixed) == expected


def test_claims_from_records_are_those_from_run_folders(finished, tiny_runs, monkeypatch, tmp_path):
    monkeypatch.setattr("shrink_utils.study.records.data_dir", lambda: tmp_path)
    profile = replace(finished, sweep=())
    record_finished(profile)
    runs = add_correctness(summarize(tiny_runs), correct_rows(tiny_runs))
    runs = add_best_epoch(runs, evaluations(tiny_runs))
    found = finetuning_claims(runs, runs, measure_clouds(tiny_runs), weight=profile.weight)
    expected = combined_table(found)
    claims = FullLength(profile, recorded(profile)).claims
    claims = claims.assign(kind=claims.kind.str.removesuffix(", exploratory"))
    assert len(claims) > 10
    pd.testing.assert_frame_equal(claims, expected)
