"""Where the study's files live. Standard library only: every room may import it."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Root of the checkout.

    ``SHRINK_HOME`` when set, else the folder that holds the package, else the working directory
    (the package installed without its repository).
    """
    if configured := os.environ.get("SHRINK_HOME"):
        return Path(configured).resolve()
    checkout = Path(__file__).resolve().parents[1]
    return checkout if (checkout / "data" / "sources.toml").is_file() else Path.cwd()


def data_dir() -> Path:
    """Folder of inputs: ``SHRINK_DATA_DIR``, else ``data/`` of the checkout."""
    return Path(os.environ.get("SHRINK_DATA_DIR") or home() / "data").resolve()


def results_dir() -> Path:
    """Folder of outputs: ``SHRINK_RESULTS_DIR``, else ``results/`` of the checkout."""
    return Path(os.environ.get("SHRINK_RESULTS_DIR") or home() / "results").resolve()


def _same_checkout(folder: Path) -> None:
    """Raise RuntimeError if `folder` lies in a checkout, and this package in another one.

    Its chapters would print the numbers of that other code as their own.
    """
    for root in (folder, *folder.parents):
        if (root / "shrink_utils" / "__init__.py").is_file():
            ours = Path(__file__).resolve().parents[1]
            if not root.samefile(ours):
                raise RuntimeError(
                    f"shrink_utils is that of {ours}, not that of {root.resolve()}, which holds "
                    "this notebook: unset PYTHONPATH, and take this checkout's .venv/bin/python"
                )
            return
