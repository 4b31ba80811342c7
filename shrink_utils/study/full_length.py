"""At full length: what 07, 07b, 08 and 11 read of a finished study's records, and its claims.

No run is read. The analysis was fixed before the runs (docs/preregistration*.md), and nobody looks
at a part of them.
"""

import runpy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from shrink_utils.paths import data_dir, home
from shrink_utils.study.claims.claim import combined_table
from shrink_utils.study.claims.stl import add_best_epoch
from shrink_utils.study.claims.verdicts import finetuning_claims
from shrink_utils.study.profiles import Profile, load_profile
from shrink_utils.study.records import KEYS, check_complete, missing_runs, record_key, recorded
from shrink_utils.study.results import atomic_write
from shrink_utils.study.tables import add_correctness
from shrink_utils.training import RunConfig

# Rows that ask other models and tasks what the cohort's first six hypotheses ask.
FOLLOWED = ("lowers-centred-of-none", "metric-kept", "lowers-centred-of-all")
WITH_CLAIMS = ("cohort", "glue", "models")  # profiles whose claims follow from their records
DECIDED = ("cohort", "strength", "heldout")  # profiles of docs/preregistration*.md
EXPLORATORY = ", exploratory"  # ends the kind of a row that was not fixed beforehand
OF_RUNS = "stl:|mga:|topology:|rp:elongated"  # claims that need tables of runs alone


@dataclass(frozen=True)
class FullLength:
    """A finished profile, read from its records."""

    profile: Profile
    tables: dict[str, pd.DataFrame]  # of `records.recorded`

    @cached_property
    def claims(self) -> pd.DataFrame:
        """The full-length table: every claim that tables of runs can bear on.

        Those of *Shrink the longest*, of the clouds and of other rewards, as in ``quick``, and of
        the long runs, whose task is named with its epochs. All are exploratory but the `FOLLOWED`
        of other profiles than ``cohort``.
        """
        once = len(self.clouds)
        runs = self._runs
        found = finetuning_claims(runs.iloc[:once], runs, self.clouds, weight=self.profile.weight)
        claims = combined_table(found)
        fixed = claims.claim.str.fullmatch(f"stl:({'|'.join(FOLLOWED)}):.+:prominent")
        fixed &= self.profile.name != "cohort"
        return claims.assign(kind=claims.kind.where(fixed, claims.kind + EXPLORATORY))

    @cached_property
    def clouds(self) -> pd.DataFrame:
        """Of `measure_clouds`: the grid's runs and the long ones; and the logarithm of IsoScore."""
        clouds = self._of("clouds", [*self.profile.runs(), *self.profile.long_runs()])
        return clouds.assign(log_isoscore=np.log(clouds.isoscore))

    @cached_property
    def _runs(self) -> pd.DataFrame:
        """Of `add_best_epoch`: the grid's runs, the long ones, then the sweep's."""
        profile = self.profile
        runs = self._of("runs", [*profile.runs(), *profile.long_runs(), *profile.sweep_runs()])
        runs = add_correctness(runs, self._named(self.tables["correct"]))
        return add_best_epoch(runs, self._named(self.tables["evaluations"]))

    def _of(self, name: str, configs: Iterable[RunConfig]) -> pd.DataFrame:
        """Rows of a table that has one per run, in the order of the runs, each once."""
        keys = pd.MultiIndex.from_tuples(dict.fromkeys(map(record_key, configs)), names=KEYS)
        return self._named(self.tables[name].set_index(KEYS).loc[keys].reset_index())

    def _named(self, table: pd.DataFrame) -> pd.DataFrame:
        """With longer runs' epochs beside their task, so that they are a task of their own."""
        longer = table.task + " (" + table.epochs.astype(str) + " epochs)"
        return table.assign(task=table.task.where(table.epochs == self.profile.epochs, longer))


def full_length(name: str = "cohort") -> FullLength | None:
    """A profile's records, or None, and a line that says how many of its runs are on record."""
    profile = load_profile(name)
    wanted, missing = len(profile.all_runs()), len(missing_runs(profile))
    if missing:
        print(
            f"{wanted - missing} of the {wanted} runs of profile {name} are on record. Nobody "
            "looks at them before all are, so this section shows nothing yet."
        )
        return None
    print(f"All {wanted} runs of profile {name} are on record.")
    return FullLength(profile, recorded(profile))


def commit_tables(profile: Profile) -> None:
    """Write the tables that follow from a profile's records beside them.

    The claims of `WITH_CLAIMS`; then, of `DECIDED`, what ``decide.py`` beside the records decides,
    which imports nothing of this package.

    Raises
    ------
    ValueError
        A run of the profile is not on record (``heldout`` takes what is there, as its page says).
    FileNotFoundError
        Nothing is on record, or this is no checkout.
    """
    if profile.name != "heldout":
        check_complete(profile)
    if profile.name in WITH_CLAIMS:
        _write_claims(profile, data_dir() / "reference" / profile.name / "claims.csv")
    if profile.name in DECIDED:
        _decide(profile.name)


def _decide(name: str) -> None:
    """Write what ``decide.py`` decides beside the records of an analysis."""
    folder = Path("reference", name)
    script = runpy.run_path(str(home() / "data" / folder / "decide.py"))
    script["write"](data_dir() / folder)


def _write_claims(profile: Profile, path: Path) -> None:
    claims = FullLength(profile, recorded(profile)).claims
    if profile.name == "models":
        claims = _renewed(pd.read_csv(path), claims)
    with atomic_write(path) as part:
        claims.to_csv(part, index=False, float_format="%.6f")


def _renewed(committed: pd.DataFrame, claims: pd.DataFrame) -> pd.DataFrame:
    """A whole study's claims, with those of its runs made anew; the measures are not on record."""
    kept = committed[~committed.claim.str.match(OF_RUNS)]
    return combined_table([claims.assign(kind=claims.kind.str.removesuffix(EXPLORATORY)), kept])
