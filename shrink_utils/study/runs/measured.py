"""Measured once: a table that takes minutes is computed, kept, and loaded by whoever needs it."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from functools import cache, wraps
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from pyarrow import ArrowException

from shrink_utils.study.dependencies import code_version
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.once import alone
from shrink_utils.study.whole_file import written
from shrink_utils.text import hub_revisions, source_hashes

__all__ = ["measured"]

Measure = Callable[[Profile], pd.DataFrame]
LIBRARIES = ("torch", "transformers", "scikit-learn")


def measured(name: str) -> Callable[[Measure], Measure]:
    """Decorate a function of a profile: its table is computed at the first call, then loaded.

    The table is kept as ``results/<profile>/measured/<name>-<key>.parquet``. The key is a hash of
    the profile, of the code that the function's module rests on, of the libraries below it, and of
    what is pinned in ``data/`` (hub commits, archives): when one of them changes, the table is
    computed again and the old one removed. A damaged file is noticed by its checksums, reported,
    and measured again.

    Parameters
    ----------
    name : str
        Of the table, unique in the study.

    Returns
    -------
    callable
        The decorator. The decorated function takes a `Profile` and returns a DataFrame.
    """

    def decorate(measure: Measure) -> Measure:
        @wraps(measure)
        def load_or_measure(profile: Profile) -> pd.DataFrame:
            folder = profile.folder / "measured"
            path = folder / f"{name}-{_key(profile, measure.__module__)}.parquet"
            with alone(path):
                if path.exists():
                    try:
                        return _read(path)
                    except (ArrowException, OSError) as damage:
                        message = f"{path} is damaged ({damage}): measuring again"
                        warnings.warn(message, stacklevel=2)
                _write(measure(profile), path)
            for old in folder.glob(f"{name}-{'?' * 16}.parquet"):
                if old != path:
                    old.unlink(missing_ok=True)
            return _read(path)

        return load_or_measure

    return decorate


def _key(profile: Profile, module: str) -> str:
    parts = [profile.hash, hub_revisions(), source_hashes(), *_computed_by(module)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


@cache
def _computed_by(module: str) -> tuple[str, ...]:
    return code_version(module), *(version(library) for library in LIBRARIES)


def _write(table: pd.DataFrame, path: Path) -> None:
    with written(path) as part:
        table.to_parquet(part, index=False, write_page_checksum=True)


def _read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path, page_checksum_verification=True)
