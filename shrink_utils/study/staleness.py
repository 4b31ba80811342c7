"""One hash of the package's code: make compares it, and every result's key holds it.

Standard library only, and runnable as a file, because make calls it before anything is installed.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
LIBRARY = ("topology", "geometry", "text", "models", "training")
# The key of a run or a table names the options of the arms that it has: a new arm is no new code.
NAMED_BY_KEYS = ("training/arms.py",)
WITHOUT_NUMBERS = ("claims", "publishing", "figures.py")  # of the room `study`


@cache
def code_hash(*, study: bool = False) -> str:
    """Sixteen hex digits over the code of the library; comments and docstrings are free.

    That is what runs rest on. Measured tables rest on the code of `study` as well, without what
    judges, draws or publishes them.
    """
    files = [path for room in LIBRARY for path in (PACKAGE / room).rglob("*.py")]
    if study:
        rest = [*PACKAGE.glob("study/*.py"), *PACKAGE.glob("study/*/*.py")]
        files += (p for p in rest if not {p.parent.name, p.name} & {*WITHOUT_NUMBERS})
    return _hash(path for path in files if not path.as_posix().endswith(NAMED_BY_KEYS))


def _hash(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in files if path.stem != "__init__"):  # passes names on
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(code_only(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:16]


@cache
def code_only(source: str) -> str:
    """The syntax tree as text, without docstrings: equal for code that does the same."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body[0].value.value = ""
    return ast.dump(tree)


def write_stamps(folder: Path) -> None:
    """Write ``library.hash`` and ``package.hash``, whose times make reads, where they changed."""
    hashes = {"library.hash": code_hash(), "package.hash": _hash(PACKAGE.rglob("*.py"))}
    for name, found in hashes.items():
        path = folder / name
        if not path.is_file() or path.read_text() != found:
            path.write_text(found)


if __name__ == "__main__":
    write_stamps(Path(sys.argv[1]))
