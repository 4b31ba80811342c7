"""Which claims are digits: measured by replicates of the study whose sums round otherwise.

Another processor, other kernels, or weights moved in their last digits (``SHRINK_ROUNDING_SEED``,
`shrink_utils.models.rounding`) make a replicate. A claim is *digits* if no replicate ever moved its
estimate by more than a tenth of what digits may differ by; every other claim is a *replicate*, and
judged by its interval.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from shrink_utils.study.results import atomic_write

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


def keep_replicate(claims: pd.DataFrame, folder: Path, name: str) -> pd.DataFrame:
    """Add a replicate's estimates to ``rounding.csv`` of a reference, as column `name`.

    Parameters
    ----------
    claims : DataFrame
        Columns claim and estimate; some of the reference's claims, or all.
    folder : Path
        Of the reference, ``data/reference/<profile>``.
    name : str
        What made the replicate: processor, kernels, rounding seed.

    Returns
    -------
    DataFrame
        The whole table: claim, kind, moved (the largest difference from the reference that any
        replicate has), and one column of estimates per replicate.

    Raises
    ------
    FileNotFoundError
        The folder has no claims.
    """
    path = folder / FILE
    table = pd.read_csv(path) if path.is_file() else pd.DataFrame({"claim": []})
    estimates = table.set_index("claim").drop(columns=ABOUT[1:], errors="ignore")
    ours = claims.set_index("claim").estimate
    every = estimates.index.union(ours.index)
    return _write(folder, estimates.reindex(every).assign(**{name: ours}))


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
    with atomic_write(folder / FILE) as part:
        table.to_csv(part, index=False, float_format="%.6g")
    return table
