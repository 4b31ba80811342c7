"""The committed tables of claims and hypotheses are those of the committed records."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from shrink_utils.__main__ import main
from shrink_utils.sources import data_dir, home

REFERENCE = data_dir() / "reference"
FOLLOWING = ["cohort/claims", "glue/claims", "models/claims"]
# By whole studies, by models, and by the nightly search for verses.
MEASURED = ("quick/", "models/layers", "models/machine_text", "search/")
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
    command = ["make", "tables", f"PYTHON={sys.executable}"]
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


@pytest.mark.parametrize(("name", "verdict"), [("strength", "supported"), ("heldout", "good for")])
def test_the_command_prints_the_decided_hypotheses(capsys, name, verdict):
    main(["--profile", name, "hypotheses"])
    assert verdict in capsys.readouterr().out
