"""A run's name: told without loading what computes it."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from shrink_utils.study.dependencies import code_version
from shrink_utils.study.runs.whole_folder import name_of
from shrink_utils.text import hub_revision, source_hashes
from shrink_utils.training import RunConfig, arm_options

__all__ = ["run_id"]


@cache
def _computed_by() -> dict[str, str]:
    """The code that computes a run (the list of arms left out), its archives and libraries."""
    code = code_version("shrink_utils.training.finetune", but="shrink_utils.training.arms")
    libraries = {name: version(name) for name in ("torch", "transformers", "gudhi")}
    return {"code": code, **source_hashes(), **libraries}


def run_id(config: RunConfig) -> str:
    """Hash of the configuration, its arm's options, its model's commit and what computes it.

    16 hex digits. The arm's own options count, not the other arms': a new arm leaves finished runs
    valid.
    """
    parts = (config.as_dict(), arm_options(config.arm), hub_revision(config.model))
    return name_of(*parts, _computed_by())
