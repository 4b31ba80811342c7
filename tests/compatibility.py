"""Requirements of the two environments of ``make compatibility``: ``oldest`` or ``newest``.

Those of topology, geometry and its streaming metrics, and of their tests. Standard
library only: it is called before anything is installed.
"""

import re
import sys
import tomllib
from pathlib import Path

TESTS = ("hypothesis", "pandas", "pytest", "pytest-timeout", "scikit-learn")
EXTRAS = ("streaming",)


def requirements(stack: str) -> list[str]:
    """One per line, as pip reads them: the lower bounds as pins, or no bounds at all."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    lines = [*project["dependencies"]]
    lines += [line for name in EXTRAS for line in project["optional-dependencies"][name]]
    bounds = [re.fullmatch(r"([\w-]+)>=([\d.]+)", line).groups() for line in lines]
    oldest = stack == "oldest"
    return [*(f"{name}=={bound}.*" if oldest else name for name, bound in bounds), *TESTS]


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1])))
