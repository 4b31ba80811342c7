"""What a folder of results holds, and what a whole one would: names, files and columns."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow.parquet as parquet

from shrink_utils.study.claims.claim import COLUMNS
from shrink_utils.study.claims.reference import TABLES
from shrink_utils.study.claims.verdicts import measures_of
from shrink_utils.study.further_models import OF_FIRST_MODEL
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.study.results import CONFIG, MANIFEST, STAMP, TABLE, differences, read_json
from shrink_utils.training import RunConfig

PAGE = "provenance.json"
FORMAT = 4  # of the page; runs of 3 had no predictions, and metrics before and after alone
NAMES = {"runs": "[0-9a-f]{16}", "measured": r"\w+-[0-9a-f]{16}"}

TABLE_COLUMNS = {
    "task_metric": "model task arm metric mean sd n",
    "anisotropy": "model task arm space k mean sd n",
    "claims": COLUMNS,
}
_ALLOCATED = "quantity rule step stack layer component head counted value"
MEASURED_COLUMNS = {
    "activations": "relation front front_number back back_number front_layer back_layer cka",
    "after_finetuning": "model task arm seed vectors layer n measure treatment removed skipped "
    "value",
    "contextuality": "quantity layer item value null baseline",
    "corpus": "quantity layer item value",
    "dynamics": f"objective seed {_ALLOCATED}",
    "dynamics_arms": f"arm seed {_ALLOCATED}",
    "dynamics_sgd": _ALLOCATED,
    "dynamics_stability": "source size seed layer component parameters value",
    "family": "relation weights member other seed other_seed layer other_layer cka",
    "generalization": "quantity group number other other_number data heuristic label template "
    "layer value",
    "language_acceptability": "task measure features layer head item value",
    "language_attention": "task measure features layer head item value",
    "language_dimension": "kind item pieces layer measure value stderr",
    "language_divergence": "pair arm seed layer other measure value",
    "language_lifetimes": "cloud measure layer item value",
    "models_contextuality": "model measured_on quantity layer item value null baseline",
    "similarity": "pair task arm seed measure layer other value",
    "stitched": "relation front front_number back back_number kind front_layer back_layer loss "
    "penalty",
    "stsb_after_finetuning": "model task arm seed n treatment removed skipped spearman isotropy",
    "two_encoders": "quantity front front_seed back back_seed map layer value",
    "words_after_finetuning": "model task arm seed layer probe labels n value chance",
}
MEASURED_COLUMNS |= {
    f"models_{name}": " ".join(dict.fromkeys([*MEASURED_COLUMNS[name].split(), "model"]))
    for name in OF_FIRST_MODEL
}
_STEP = "step epoch learning_rate grad_norm rows task_loss regularizer entropy entropy_all"
_STEP += " raw_1 raw_2 raw_3 centred_1 centred_2 centred_3"
HISTORY_COLUMNS = {"fine-tuning": _STEP, "pretraining": "step loss learning_rate"}
BY_CLASS = ("n_features_", "n_bars_")  # of a fine-tuning: one column per class


def kept_folders(folder: Path, kind: str) -> list[Path]:
    """Whole ``"runs"`` or ``"measured"`` tables: none that was moved aside or left half-way."""
    found = (folder / kind).glob("*")
    return sorted(path for path in found if re.fullmatch(NAMES[kind], path.name))


def table_files(folder: Path) -> list[Path]:
    """Tables in a folder of results."""
    return sorted((folder / "tables").glob("*.csv"))


def newest_runs(folders: Iterable[Path]) -> dict[RunConfig, Path]:
    """The folder of each configuration: the newest one, where older code has left others.

    Left out is what this code cannot read: other results, fields or values of other code, damage.
    """
    known = [(config, path) for path in folders if (config := _config(path)) is not None]
    return dict(sorted(known, key=lambda run: _written(run[1])))  # the last of equal keys stays


def _config(run: Path) -> RunConfig | None:
    try:
        return RunConfig(**read_json(run / CONFIG))
    except (TypeError, ValueError):
        return None


def _written(run: Path) -> str:
    """When a run was written; all times are UTC and of one form."""
    return str(read_json(run / STAMP).get("time", ""))


def odd_files(folder: Path) -> Iterator[str]:
    """Everything that is neither a plain file nor a folder: links, pipes, devices.

    Results hold none of them, and a link could lead a reader to any file of this machine.
    """
    for place, folders, files in os.walk(folder, followlinks=False):
        for name in [*folders, *files]:
            path = Path(place) / name
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                kind = "a link" if stat.S_ISLNK(mode) else "no plain file"
                yield f"{path.relative_to(folder)} is {kind}"


def changed_files(folder: Path, page: dict) -> Iterator[str]:
    """How tables, and manifests of runs and measured tables, differ from what the page lists."""
    found = {f"tables/{path.name}": path for path in table_files(folder)}
    listed = {f"tables/{name}": digest for name, digest in page["tables"].items()}
    for kind in NAMES:
        manifests = [path / MANIFEST for path in kept_folders(folder, kind)]
        found |= {f"{kind}/{path.parent.name}": path for path in manifests if path.is_file()}
        listed |= {f"{kind}/{name}": entry[MANIFEST] for name, entry in page[kind].items()}
    yield from differences(listed, found)


def unfinished(folder: Path) -> list[str]:
    """What is missing, one line per kind; nothing of a study that has come to its end.

    The folder's name, ``<profile>`` or ``<profile>-seed<n>``, says what belongs there. Of a folder
    of another name it is only said that it is not finished.
    """
    if (folder / PAGE).is_file():
        return []
    named = re.fullmatch(r"(\w+?)(?:-seed(\d+))?", folder.resolve().name)
    if named is None or named[1] not in profile_names():
        return [f"{PAGE} is not there: `make reproduce` writes it at its end"]
    profile = load_profile(named[1], seed=int(named[2] or 0))
    seed = f" SEED={profile.base_seed}" if profile.base_seed else ""
    again = f"`make reproduce PROFILE={profile.name}{seed}` goes on, and writes {PAGE} at its end"
    return [*_missing(folder, profile), again]


def _missing(folder: Path, profile: Profile) -> list[str]:
    found = newest_runs(kept_folders(folder, "runs")).keys()
    # Of the machine that has begun.
    wanted = set(profile.all_runs(precision=next((run.precision for run in found), None)))
    absent_runs = wanted - found
    measured = {path.name.rpartition("-")[0] for path in kept_folders(folder, "measured")}
    tables = {path.stem for path in table_files(folder)}
    measures = measures_of(profile).keys()
    parts = {
        "runs": (wanted, [config.label for config in absent_runs]),
        "measured tables": (measures, measures - measured),
        "tables": (TABLES, TABLES.keys() - tables),
    }
    return [
        f"{len(absent)} of {len(whole)} {kind} are missing, such as {min(absent)}"
        for kind, (whole, absent) in parts.items()
        if absent
    ]


def foreign_columns(folder: Path) -> Iterator[str]:
    """How the columns of a folder's tables differ from what this code writes; reads no row."""
    for path in table_files(folder):
        columns = pd.read_csv(path, nrows=0).columns
        yield from _other_columns(f"tables/{path.name}", columns, TABLE_COLUMNS.get(path.stem))
    for path in kept_folders(folder, "measured"):
        schema = MEASURED_COLUMNS.get(path.name.rpartition("-")[0])
        yield from _other_columns(f"measured/{path.name}", _columns(path / TABLE), schema)
    for path in sorted((folder / "runs").glob("*/history.parquet")):
        columns = [name for name in _columns(path) if not name.startswith(BY_CLASS)]
        schema = HISTORY_COLUMNS["pretraining" if "loss" in columns else "fine-tuning"]
        yield from _other_columns(f"runs/{path.parent.name}/{path.name}", columns, schema)


def _columns(path: Path) -> list[str]:
    return parquet.read_schema(path).names


def _other_columns(where: str, found: Iterable[str], schema: str | None) -> Iterator[str]:
    if schema is None:
        yield f"{where}: no table of this study"
        return
    found, expected = list(found), schema.split()
    yield from (f"{where}: foreign column {name}" for name in found if name not in expected)
    yield from (f"{where}: no column {name}" for name in expected if name not in found)
