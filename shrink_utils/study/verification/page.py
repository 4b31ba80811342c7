"""Where a folder of results comes from, on one page: inputs, code, machine, time, and hashes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from shrink_utils.paths import home
from shrink_utils.study.profiles import Profile
from shrink_utils.study.provenance import provenance
from shrink_utils.study.publishing.notebooks import executed_notebooks
from shrink_utils.study.runs.whole_folder import MANIFEST, read_json, write_json
from shrink_utils.study.verification.inputs import inputs_of
from shrink_utils.study.whole_file import written
from shrink_utils.text.sources import sha256_of

__all__ = ["PAGE", "result_files", "run_folders", "write_provenance"]

PAGE = "provenance.json"
FORMAT = 1
NAMED_BY = ("model", "objective", "task", "arm", "seed")  # what tells runs apart


def run_folders(folder: Path) -> list[Path]:
    """Finished runs in a folder of results: not what was moved aside or left half-way."""
    found = (folder / "runs").glob("*")
    return sorted(path for path in found if re.fullmatch("[0-9a-f]{16}", path.name))


def result_files(folder: Path) -> list[Path]:
    """Tables and measured tables in a folder of results."""
    return sorted([*(folder / "tables").glob("*.csv"), *(folder / "measured").glob("*.parquet")])


def write_provenance(profile: Profile) -> None:
    """Write ``provenance.json`` and ``provenance.md`` into the profile's folder of results.

    Both say what was read (data and weights, each file with its sha256), by which packages and
    commit, on which device, how long every run and notebook took, and the sha256 of each table, of
    each measured table and of each run's manifest (which has those of the run's files).
    `verify.verify_folder` holds a folder against the first of them.
    """
    folder = profile.folder
    page = {
        "format": FORMAT,
        "profile": {"name": profile.name, "seed": profile.base_seed, "hash": profile.hash},
        "description": profile.description,
        **provenance(),
        "requirements_lock": sha256_of(home() / "requirements.lock"),
        "inputs": inputs_of(profile),
        "notebooks": dict(_notebook_seconds(folder / "notebooks")),
        "runs": {path.name: _run(path) for path in run_folders(folder)},
        "results": {
            path.relative_to(folder).as_posix(): sha256_of(path) for path in result_files(folder)
        },
    }
    with written(folder / "provenance.md") as part:
        part.write_text(_as_markdown(page), encoding="utf-8")
    with written(folder / PAGE) as part:  # the last of all: it says that the study is finished
        write_json(part, page)


def _notebook_seconds(folder: Path) -> Iterator[tuple[str, float]]:
    for path in executed_notebooks(folder):
        metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
        yield path.stem, round(metadata["papermill"]["duration"], 1)


def _run(folder: Path) -> dict[str, object]:
    config, stamp = read_json(folder / "config.json"), read_json(folder / "provenance.json")
    return {
        "what": " · ".join(str(config[name]) for name in NAMED_BY if name in config),
        **{name: stamp.get(name) for name in ("seconds", "device", "threads", "commit", "time")},
        MANIFEST: sha256_of(folder / MANIFEST),
    }


def _as_markdown(page: dict) -> str:
    """The same page for people: one line a run is too many, a line a device is not."""
    runs = pd.DataFrame(page["runs"].values(), columns=["device", "threads", "commit", "seconds"])
    runs = runs.groupby(["device", "threads", "commit"], dropna=False).seconds.agg(["count", "sum"])
    facts = {
        "profile": "{name}, seed {seed}, hash {hash}".format(**page["profile"]),
        "commit": page["commit"],
        "written": page["time"],
        "machine": f"{page['platform']}, device {page['device']}, {page['threads']} threads",
        "Python": page["python"],
        "packages": ", ".join(f"{name} {number}" for name, number in page["packages"].items()),
        "requirements.lock": page["requirements_lock"],
    }
    sections = {
        "What was read": _table(
            ["input", "file", "sha256"],
            [
                (name, file, digest)
                for name, entry in page["inputs"].items()
                for file, digest in (entry["files"] or {entry["source"]: "–"}).items()
            ],
        ),
        "Runs": _table(
            ["device", "threads", "commit", "runs", "seconds"],
            [(*key, n, f"{seconds:.0f}") for key, n, seconds in runs.itertuples(name=None)],
        ),
        "Notebooks": _table(
            ["notebook", "seconds"], [(name, f"{s:.0f}") for name, s in page["notebooks"].items()]
        ),
        "Tables": _table(["file", "sha256"], list(page["results"].items())),
    }
    parts = [f"# {page['profile']['name']}: {page['description']}", _table(["", ""], facts.items())]
    parts += [f"## {title}\n\n{table}" for title, table in sections.items()]
    return "\n\n".join(parts) + "\n"


def _table(columns: list[str], rows: list[tuple]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
