"""The fine-tuning runs of a folder, by what they are and not by how their folders are called."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from shrink_utils.study.runs.whole_folder import read_json
from shrink_utils.training import RunConfig

__all__ = ["full_label", "newest_runs"]


def newest_runs(folders: Iterable[Path]) -> dict[RunConfig, Path]:
    """The folder of each configuration: the newest one, where older code has left others.

    Left out are runs of another kind, and configurations that this code cannot read: with fields
    or values of other code, or damaged.
    """
    known = [(config, path) for path in folders if (config := _config(path)) is not None]
    return dict(sorted(known, key=lambda run: _written(run[1])))  # the last of equal keys stays


def full_label(config: RunConfig) -> str:
    """A run of grid or sweep: these also differ in the weight of the regularizer."""
    return f"{config.label} · weight {config.weight:g}"


def _config(run: Path) -> RunConfig | None:
    try:
        return RunConfig(**read_json(run / "config.json"))
    except (TypeError, ValueError):
        return None


def _written(run: Path) -> str:
    """When a run was written; all times are UTC and of one form."""
    return str(read_json(run / "provenance.json").get("time", ""))
