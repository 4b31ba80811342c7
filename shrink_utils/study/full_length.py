"""At full length: what chapters 07, 08 and 11 show of a finished study's records.

No run is read. The analysis was fixed before the runs (docs/preregistration*.md), and nobody looks
at a part of them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.claims import strength
from shrink_utils.study.claims.claim import whole_table
from shrink_utils.study.claims.hypotheses import decide
from shrink_utils.study.claims.report import p_as_text, signed
from shrink_utils.study.claims.stl import at_least_loss
from shrink_utils.study.claims.verdicts import finetuning_claims
from shrink_utils.study.profiles import Profile, load_profile
from shrink_utils.study.records import KEYS, check_complete, key_of, missing_runs, recorded
from shrink_utils.study.results import written
from shrink_utils.study.tables import graded
from shrink_utils.training import RunConfig

# Rows that ask other models and tasks what two hypotheses each ask the cohort.
QUESTIONS = {
    "lowers-centred-of-none": ("H1", "H2"),
    "metric-kept": ("H3", "H4"),
    "lowers-centred-of-all": ("H5", "H6"),
}
# The tables in ``data/reference/<profile>`` that follow from the records there.
COMMITTED = {
    "cohort": ("claims", "hypotheses"),
    "glue": ("claims",),
    "models": ("claims",),
    "strength": ("hypotheses", "beside"),
}
EXPLORATORY = ", exploratory"  # ends the kind of a row that was not fixed beforehand
OF_RUNS = "stl:|mga:|topology:|rp:elongated"  # claims that need tables of runs alone


@dataclass(frozen=True)
class FullLength:
    """A finished profile, read from its records."""

    profile: Profile
    tables: dict[str, pd.DataFrame]  # of `records.recorded`

    @cached_property
    def hypotheses(self) -> pd.DataFrame:
        """The primary hypotheses, decided as their page says: of ``cohort`` or of ``strength``."""
        return (strength.decide if self.profile.name == "strength" else decide)(self.tables)

    @cached_property
    def claims(self) -> pd.DataFrame:
        """The full-length table: every claim that tables of runs can bear on.

        Those of *Shrink the longest*, of the clouds and of other rewards, as in ``quick``, and of
        the long runs, whose task is named with its epochs. All are exploratory but the `QUESTIONS`
        of other profiles than ``cohort``.
        """
        once = len(self.clouds)
        runs = self._runs
        found = finetuning_claims(runs.iloc[:once], runs, self.clouds, weight=self.profile.weight)
        claims = whole_table(found)
        fixed = claims.claim.str.fullmatch(f"stl:({'|'.join(QUESTIONS)}):.+:prominent")
        fixed &= self.profile.name != "cohort"
        return claims.assign(kind=claims.kind.where(fixed, claims.kind + EXPLORATORY))

    @cached_property
    def answer(self) -> pd.DataFrame:
        """The hypotheses as text, with the paper's own difference and the kind of test."""
        asked, rows = self._asked, []
        for row in self.hypotheses.itertuples():
            decimals = 1 if row.id == "H12" else 3  # of steps
            estimate, low, high = (signed(x, decimals) for x in (row.estimate, row.low, row.high))
            claim = asked.get(row.id)
            known = claim is not None and not math.isnan(claim.published)
            found = {"paper": f"{claim.published:+.3f}" if known else "", "difference": estimate}
            found |= {"simultaneous interval": f"[{low}, {high}]", "seeds": str(row.n)}
            found |= {"p (Holm)": p_as_text(row.holm), "verdict": row.verdict, "note": _note(row)}
            found["kind of test"] = "our control" if claim is None else claim.kind.split(",")[0]
            rows.append({"hypothesis": f"{row.id} · {row.statement}", **found})
        return pd.DataFrame(rows)

    @property
    def beside(self) -> pd.DataFrame:
        """What was planned beside the hypotheses of ``strength``."""
        return strength.beside(self.tables)

    @property
    def _asked(self) -> dict[str, pd.Series]:
        """The claims that hypotheses of the cohort ask; at equal strength no paper compared."""
        if self.profile.name != "cohort":
            return {}
        claims = self.claims.set_index("claim")
        return {
            name: claims.loc[f"stl:{row}:{self.profile.models[0]}:{task}:prominent"]
            for row, names in QUESTIONS.items()
            for name, task in zip(names, self.profile.tasks, strict=True)
        }

    @cached_property
    def clouds(self) -> pd.DataFrame:
        """Of `measure_clouds`: the grid's runs and the long ones; and the logarithm of IsoScore."""
        clouds = self._of("clouds", [*self.profile.runs(), *self.profile.long_runs()])
        return clouds.assign(log_isoscore=np.log(clouds.isoscore))

    @cached_property
    def _runs(self) -> pd.DataFrame:
        """Of `at_least_loss`: the grid's runs, the long ones, then the sweep's."""
        profile = self.profile
        runs = self._of("runs", [*profile.runs(), *profile.long_runs(), *profile.sweep_runs()])
        runs = graded(runs, self._named(self.tables["correct"]))
        return at_least_loss(runs, self._named(self.tables["evaluations"]))

    def _of(self, name: str, configs: Iterable[RunConfig]) -> pd.DataFrame:
        """Rows of a table that has one per run, in the order of the runs, each once."""
        keys = pd.MultiIndex.from_tuples(dict.fromkeys(map(key_of, configs)), names=KEYS)
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


def commit_tables(profile: Profile) -> FullLength:
    """Write the tables of `COMMITTED` from the profile's records, and return these.

    Raises
    ------
    ValueError
        A run of the profile is not on record.
    """
    check_complete(profile)
    found = FullLength(profile, recorded(profile))
    for name in COMMITTED[profile.name]:
        path = data_dir() / "reference" / profile.name / f"{name}.csv"
        table = found.answer if name == "hypotheses" else getattr(found, name)
        if profile.name == "models":
            table = _renewed(pd.read_csv(path), table)
        with written(path) as part:
            table.to_csv(part, index=False, float_format="%.6f")
    return found


def _renewed(committed: pd.DataFrame, claims: pd.DataFrame) -> pd.DataFrame:
    """A whole study's claims, with those of its runs made anew; the measures are not on record."""
    kept = committed[~committed.claim.str.match(OF_RUNS)]
    return whole_table([claims.assign(kind=claims.kind.str.removesuffix(EXPLORATORY)), kept])


def _note(row: tuple) -> str:
    """What would decide an open hypothesis, and how many seeds took their nearest point."""
    if not hasattr(row, "nearest"):
        return ""
    notes = []
    if row.verdict == "open":
        needed = f"{row.seeds_needed:.0f} seeds would decide it"
        never = "more seeds alone would not decide it"
        notes.append(needed if math.isfinite(row.seeds_needed) else never)
    if row.nearest:
        notes.append(f"{round(row.nearest * row.n)} of {row.n} took their nearest point")
    return "; ".join(notes)
