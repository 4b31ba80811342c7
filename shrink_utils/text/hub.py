"""Which commit of a model or a data set on the Hugging Face hub is read."""

from __future__ import annotations

import tomllib

from shrink_utils.paths import home

__all__ = ["hub_revision"]


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
    table = home() / "data" / "hub.toml"
    if not table.is_file():
        return None
    return tomllib.loads(table.read_text(encoding="utf-8")).get(name)
