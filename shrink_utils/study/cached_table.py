"""Measured tables: what a function of a profile returns, computed once and then loaded.

Their functions stand in the notebooks and in this room; each leaves one file under its name in
``results/<profile>/tables``, which claims read.
"""

import ast
import hashlib
import inspect
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from textwrap import dedent

import pandas as pd

from shrink_utils.sources import hub_revisions
from shrink_utils.study.code_version import code_hash, code_only
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import atomic_write, file_lock, provenance, result_key

Measure = Callable[[Profile], pd.DataFrame]


def cached_table(name: str, *, of: Measure | None = None) -> Callable[[Measure], Measure]:
    """Decorate a function of a profile: its table is computed at the first call, then loaded.

    The table is ``results/<profile>/tables/<name>.parquet``, with what it rests on in its
    metadata. When the profile, its precision or an arm of it, the code, a library, or a pin in
    ``data/`` (hub commits, archives) changes, it is computed again, and so is a damaged one. Code
    is that of the package (`code_hash`) and the function's own: in a notebook, also the functions
    and the constants in capitals that it names. What else its cell needs stands within the
    function.

    The function takes a `Profile` and returns a DataFrame; `name` is unique in the study. Where it
    only calls a chapter's function `of`, the code of that one counts.
    """

    def decorate(measure: Measure) -> Measure:
        @wraps(measure)
        def load_or_measure(profile: Profile) -> pd.DataFrame:
            parts = (profile.hash, profile.used_precision, profile.arms, hub_revisions())
            key = result_key(*parts, _own_code(of or measure), code=code_hash(study=True))
            path = profile.folder / "tables" / f"{name}.parquet"
            if (table := _read(path, key=key)) is not None:
                return table
            with file_lock(path):  # another process may have it in the meantime
                if (table := _read(path, key=key)) is None:
                    _save(measure, profile, path, key)
            return table if table is not None else _read(path, key=key)

        return load_or_measure

    return decorate


def _save(measure: Measure, profile: Profile, path: Path, key: str) -> None:
    since = time.perf_counter()
    table = measure(profile)
    table.attrs = {"key": key, "study": _study(profile), "digest": _digest(table), **provenance()}
    table.attrs["seconds"] = round(time.perf_counter() - since, 1)
    with atomic_write(path) as part:
        table.to_parquet(part, index=False)


def _digest(table: pd.DataFrame) -> str:
    return hashlib.sha256(table.to_csv(index=False).encode()).hexdigest()


def _study(profile: Profile) -> list[str]:
    """What tables of one study have in common."""
    return [profile.hash, code_hash(study=True)]


def _read(path: Path, **about: object) -> pd.DataFrame | None:
    """The table of a file that says so `about` itself, else None; a damaged one has a warning."""
    if not path.is_file():
        return None
    try:
        table = pd.read_parquet(path)
        said, table.attrs = table.attrs, {}
        if not about.items() <= said.items():
            return None
        if said["digest"] != _digest(table):
            raise ValueError("its values are not those that were written")
    except (OSError, ValueError) as error:
        warnings.warn(f"{path} is damaged ({error}); it is computed again.", stacklevel=3)
        return None
    return table


class MeasuredTables(dict):
    """The tables that the chapters of a study have left, by name, as profile and code are now."""

    def __init__(self, profile: Profile) -> None:
        self.folder = profile.folder / "tables"
        for path in sorted(self.folder.glob("*.parquet")):
            if (table := _read(path, study=_study(profile))) is not None:
                self[path.stem] = table

    def __missing__(self, name: str) -> pd.DataFrame:
        raise FileNotFoundError(
            f"{self.folder} has no table {name!r}, as profile and code are now; run the notebook "
            f'with @cached_table("{name}") first'
        )


def of_further_models(name: str, measure: Measure) -> Measure:
    """The same table of every model but the first, with the column ``model``."""

    @cached_table(name, of=measure.__wrapped__)
    def measure_further(profile: Profile) -> pd.DataFrame:
        alone = [replace(profile, models=(model,), partner="") for model in profile.models[1:]]
        # Not kept by itself, where it would take the place of the first model's table.
        tables = [measure.__wrapped__(one).assign(model=one.models[0]) for one in alone]
        return pd.concat(tables, ignore_index=True)

    return measure_further


def _own_code(function: Callable) -> dict[str, object]:
    """Of a notebook's function: its code, and functions and constants of the notebook it names."""
    if function.__module__.startswith("shrink_utils."):  # whose code `code_hash` has
        return {}
    found: dict[str, object] = {}
    waiting = {function.__name__: function}
    while waiting:
        name, value = waiting.popitem()
        if inspect.isfunction(value) and value.__module__ == function.__module__:
            source = dedent(inspect.getsource(value))
            found[name] = code_only(source)
            names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
            names &= function.__globals__.keys() - found.keys()
            waiting |= {named: function.__globals__[named] for named in names}
        elif name.isupper() and not callable(value):
            found[name] = value
    return found
