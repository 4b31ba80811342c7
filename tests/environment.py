"""Whether an environment holds what requirements.lock pins, and this checkout's package.

`make` runs it with the new environment's Python before it calls the set-up finished: pip may count
as installed what PYTHONPATH brings, or install elsewhere by a setting, and ends without an error.
"""

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def faults() -> list[str]:
    """One sentence per package that is not as pinned, and one for another checkout's package."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = []
    for name, pinned in re.findall(r"^([\w.-]+)==(\S+)", text, flags=re.MULTILINE):
        try:
            installed = version(name).split("+")[0]  # without the build, such as +cpu
        except PackageNotFoundError:
            installed = "no version"
        if installed != pinned:
            found.append(f"{name}: {installed} is installed, requirements.lock has {pinned}")
    try:
        import shrink_utils

        package = Path(shrink_utils.__file__).resolve().parents[1]
    except ImportError:
        package = "not installed"
    if package != ROOT:
        found.append(f"shrink_utils: {package}, expected that of {ROOT}")
    return found


if __name__ == "__main__":
    told = faults()
    print("\n".join(told))
    sys.exit(bool(told))
