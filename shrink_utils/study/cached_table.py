"""Measured tables: what a function of a profile returns, computed once and then loaded.

Their functions stand in the notebooks and in this room.
"""

import ast
import inspect
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import wraps
from pathlib import Path
from textwrap import dedent

import pandas as pd

from shrink_utils.study.code_version import code_hash, code_only
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import CONFIG, Result, read_json, result_key
from shrink_utils.text import hub_revisions

TABLE = "table.parquet"
Measure = Callable[[Profile], pd.DataFrame]


def cached_table(name: str, *, of: Measure | None = None) -> Callable[[Measure], Measure]:
    """Decorate a function of a profile: its table is computed at the first call, then loaded.

    The table is a `Result` in ``results/<profile>/measured/<name>-<key>``. When the profile, its
    precision or an arm of it, the code, a library, or a pin in ``data/`` (hub commits, archives)
    changes, it is computed again and the old one removed. Code is that of the package
    (`code_hash`) and the function's own: in a notebook, also the functions and the constants in
    capitals that it names. What else its cell needs stands within the function.

    The function takes a `Profile` and returns a DataFrame; `name` is unique in the study. Where it
    only calls a chapter's function `of`, the code of that one counts.
    """

    def decorate(measure: Measure) -> Measure:
        @wraps(measure)
        def load_or_measure(profile: Profile) -> pd.DataFrame:
            parts = (profile.hash, profile.used_precision, profile.arms, hub_revisions())
            key = result_key(*parts, _own_code(of or measure), code=code_hash(study=True))
            result = Result(profile.folder / "measured" / f"{name}-{key}")
            return result.load_or_compute(read_cached, lambda: save(profile, result))

        def save(profile: Profile, result: Result) -> None:
            since = time.perf_counter()
            table = measure(profile)
            about = {"table": name, "profile": asdict(profile), "code": code_hash(study=True)}
            with result.save(about, since=since) as part:
                table.to_parquet(part / TABLE, index=False)
            for old in result.folder.parent.glob(f"{name}-{'?' * 16}"):
                if old != result.folder:
                    shutil.rmtree(old, ignore_errors=True)

        return load_or_measure

    return decorate


def load_cached(name: str) -> Measure:
    """A function of a profile: the table that a chapter keeps by ``cached_table(name)``, as it is.

    Raises
    ------
    FileNotFoundError
        The profile and the package, as they are now, have no such table: the chapter was not run.
    """

    def load(profile: Profile) -> pd.DataFrame:
        now = json.loads(json.dumps(asdict(profile))), code_hash(study=True)
        for folder in sorted((profile.folder / "measured").glob(f"{name}-{'?' * 16}")):
            about = read_json(folder / CONFIG)
            if (about.get("profile"), about.get("code")) == now:
                return read_cached(folder)
        raise FileNotFoundError(
            f"{profile.folder / 'measured'} has no table {name!r} of profile {profile.name!r}, as "
            f'profile and code are now; run the notebook with @cached_table("{name}") first'
        )

    return load


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


def read_cached(folder: Path) -> pd.DataFrame:
    """The table of a folder of `cached_table`; `DamagedResultError` if it is not as saved."""
    Result(folder).verify()
    return pd.read_parquet(folder / TABLE)
