"""What a study reads that is not in the repository: each file with its sha256."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from huggingface_hub import try_to_load_from_cache

from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.text import hub_revision, task_spec
from shrink_utils.text.glue import GLUE, glue_dir
from shrink_utils.text.sources import sha256_of, source_path, sources

__all__ = ["inputs_of", "needs_hub", "offline_profiles"]

HANS_FILE = "heuristics_evaluation_set.txt"


def inputs_of(profile: Profile) -> dict[str, dict]:
    """Data and weights that a profile reads, as they are on this machine now.

    Returns
    -------
    dict
        By name: ``source`` says where it came from, ``files`` gives the sha256 of each file. Data
        that the hub's client reads for the study (GLUE without a folder) is named without files.
    """
    found = {}
    for name, source in sources().items():
        if (folder := source_path(name)).is_dir():
            found[name] = _entry(f"{source.package} {source.version}, PyPI", folder.iterdir())
    for task in dict.fromkeys(task for task in profile.tasks if task in GLUE):
        found[task] = _glue(task)
    if hans := os.environ.get("SHRINK_HANS_DIR"):
        found["hans"] = _entry("SHRINK_HANS_DIR", [Path(hans) / HANS_FILE])
    for model in _models(profile):
        if entry := _hub_model(model):
            found[model] = entry
    return found


def needs_hub(profile: Profile) -> bool:
    """Whether an encoder or a task of the profile is not among those that PyPI has."""
    of_pypi = all(task_spec(task).offline for task in profile.tasks)
    return not of_pypi or any(name not in ("minilm", "tiny-random") for name in profile.models)


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


def _models(profile: Profile) -> list[str]:
    """Every encoder that the profile names; those that need no hub are in no cache of it."""
    heuristics, family = profile.heuristics, profile.family
    named = [*profile.models, profile.partner, *heuristics.heuristic, *heuristics.generalizing]
    return list(dict.fromkeys(name for name in [*named, *family.members] if "/" in name))


def _hub_model(name: str) -> dict | None:
    """The weights of a model in the hub's cache (or in a folder), and which revision they are."""
    name, _, revision = name.partition("@")
    if Path(name).is_dir():
        return _entry("a folder", Path(name).glob("*.safetensors"))
    pinned = revision or hub_revision(name)
    config = try_to_load_from_cache(name, "config.json", revision=pinned)
    if not isinstance(config, str):  # None, or a mark that the hub has no such file
        return None
    snapshot = Path(config).parent  # named by its commit
    return _entry(f"the hub, commit {snapshot.name}", snapshot.glob("*.safetensors"))
