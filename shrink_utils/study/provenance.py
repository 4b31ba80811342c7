"""Where a result comes from: the stamp that every run and every table carries."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version

import torch

from shrink_utils.paths import home

__all__ = ["provenance"]

PACKAGES = (
    "torch",
    "transformers",
    "datasets",
    "numpy",
    "pandas",
    "gudhi",
    "scipy",
    "torchmetrics",
)


def provenance() -> dict[str, object]:
    """Packages, interpreter, device, threads, commit and time (UTC) of this process."""
    return {
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "platform": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
        "commit": _commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str:
    """Commit of the checkout, marked when files differ from it; 'unknown' outside git."""
    command = ["git", "-C", str(home()), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
