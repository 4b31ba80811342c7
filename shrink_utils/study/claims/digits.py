"""Which claims are digits: measured by replicates of the study whose sums round otherwise.

Another processor, other kernels, or weights moved in their last digits (``SHRINK_ROUNDING_SEED``,
`shrink_utils.models.rounding`) make a replicate. A claim is *digits* if no replicate ever moved its
estimate by more than a tenth of what digits may differ by; every other claim is a *replicate*, and
judged by its interval.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.claims.brown import generalization_claims, stitching_claims
from shrink_utils.study.claims.claim import whole_table
from shrink_utils.study.claims.vazquez import dynamics_claims
from shrink_utils.study.measured import kept
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import written
from shrink_utils.study.tables import read_table

FILE = "rounding.csv"
ABSOLUTE, RELATIVE = 0.002, 0.01  # that digits may differ by
SHARE = 0.1  # of that, which no replicate of a digit may move it by
ABOUT = ["claim", "kind", "moved"]  # the other columns are replicates: their estimates


def tolerance(reference: pd.Series) -> pd.Series:
    """What digits may differ by from a reference value."""
    return np.maximum(ABSOLUTE, RELATIVE * reference.abs())


def measured_digits(folder: Path) -> set[str]:
    """Names of the claims that are digits by ``rounding.csv`` of a reference; none without one."""
    if not (path := folder / FILE).is_file():
        return set()
    table = pd.read_csv(path)
    return set(table.claim[table.kind == "digits"])


def keep_replicate(profile: Profile, name: str) -> pd.DataFrame:
    """Add this study's estimates to ``data/reference/<profile>/rounding.csv``, as column `name`.

    A study that is not finished gives what its models trained from nothing decide (chapters 09
    and 10), where these have run.

    Returns
    -------
    DataFrame
        The whole table: claim, kind, moved (the largest difference from the reference that any
        replicate has), and one column of estimates per replicate.

    Raises
    ------
    FileNotFoundError
        The profile has no reference, or the study not even these tables.
    """
    try:
        claims = read_table("claims", profile=profile)
    except FileNotFoundError:
        claims = _of_models_from_nothing(profile)
    folder = data_dir() / "reference" / profile.name
    path = folder / FILE
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame({"claim": []})
    estimates = table.set_index("claim").drop(columns=ABOUT[1:], errors="ignore")
    ours = claims.set_index("claim").estimate
    return _write(folder, estimates.drop(columns=name, errors="ignore").assign(**{name: ours}))


def judge_replicates(folder: Path) -> None:
    """Write ``rounding.csv`` of a reference anew after its claims have changed, if it has one."""
    if (folder / FILE).is_file():
        table = pd.read_csv(folder / FILE).set_index("claim")
        _write(folder, table.drop(columns=ABOUT[1:]))


def _write(folder: Path, estimates: pd.DataFrame) -> pd.DataFrame:
    """Estimates of replicates by claim, with kind and movement, in the order of the reference."""
    reference = pd.read_csv(folder / "claims.csv").set_index("claim").estimate
    estimates = estimates.reindex(reference.index)
    moved = estimates.sub(reference, axis=0).abs().max(axis=1)  # NaN where nobody has measured
    small = moved <= SHARE * tolerance(reference)
    table = estimates.assign(kind=np.where(small, "digits", "replicate"), moved=moved)
    table = table.reset_index()[[*ABOUT, *estimates]]
    with written(folder / FILE) as part:
        table.to_csv(part, index=False, float_format="%.6g")
    return table


def _of_models_from_nothing(profile: Profile) -> pd.DataFrame:
    dynamics = dynamics_claims(kept("dynamics")(profile), kept("dynamics_stability")(profile))
    stitching = stitching_claims(kept("stitched")(profile))
    return whole_table(
        [dynamics, stitching, generalization_claims(kept("generalization")(profile))]
    )
