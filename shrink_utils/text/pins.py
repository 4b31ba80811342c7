"""What ``data/`` pins: commits of what a hub serves, hashes of the archives that are fetched."""

from __future__ import annotations

import tomllib

from shrink_utils.paths import home
from shrink_utils.text.sources import sources

__all__ = ["hub_revision", "hub_revisions", "source_hashes"]


def hub_revision(name: str) -> str | None:
    """Commit that ``data/hub.toml`` pins for an id of the hub.

    Parameters
    ----------
    name : str
        As ``"google-bert/bert-base-uncased"``; of a local folder nothing is pinned.

    Returns
    -------
    str or None
        None for what is not pinned (the hub's newest is read then, and the provenance page says
        which commit that was), and where the package is used outside a checkout.
    """
    return hub_revisions().get(name)


def hub_revisions() -> dict[str, str]:
    """Every commit that ``data/hub.toml`` pins, by id; none outside a checkout."""
    table = home() / "data" / "hub.toml"
    return tomllib.loads(table.read_text(encoding="utf-8")) if table.is_file() else {}


def source_hashes() -> dict[str, str]:
    """The sha256 that each source's archive has to have, by name; none outside a checkout."""
    try:
        return {name: source.sha256 for name, source in sources().items()}
    except FileNotFoundError:
        return {}
