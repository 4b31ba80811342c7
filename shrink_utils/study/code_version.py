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
# What runs rest on, too: how they are made, and the tables that they leave.
MEASURED = ("sources.py", "study/finetuning.py", "study/run_tables.py")
# The key of a run or a table names the options of the arms that it has: a new arm is no new code.
NAMED_BY_KEYS = "ARMS"
# Of the room `study`, what enters no measured table: it judges, draws, publishes or checks, reads
# what is finished, or says which runs are made where. `profiles.py`, which says what they are and
# sets the threads that sum and the seed, stays; a run's key has the values of its configuration.
WITHOUT_NUMBERS = """claims book.py course.py diagnosis.py figures.py notebooks.py own.py
own_answer.py own_task.py pages.py tables.py""".split()


@cache
def code_hash(*, study: bool = False) -> str:
    """Sixteen hex digits over the code of the library: of `_code_only`.

    That is what runs rest on. Measured tables rest on the code of `study` as well, but for
    `WITHOUT_NUMBERS`.
    """
    files = [path for room in LIBRARY for path in (PACKAGE / room).rglob("*.py")]
    files += filter(Path.is_file, (PACKAGE / name for name in MEASURED))
    if study:
        rest = [*PACKAGE.glob("study/*.py"), *PACKAGE.glob("study/*/*.py")]
        files += (p for p in rest if not {p.parent.name, p.name} & {*WITHOUT_NUMBERS})
    return _hash(files)


def _hash(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in files if path.stem != "__init__"):  # passes names on
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(_code_only(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:16]


@cache
def _code_only(source: str) -> str:
    """The syntax tree as text: equal for code that does the same.

    It has no comments, no docstrings, no words of errors and warnings, and no list of arms.
    """
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not _is_named_by_keys(node)]
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body[0].value.value = ""
        elif isinstance(node, ast.Raise) or _warns(node):
            _WithoutWords().visit(node)
    return ast.dump(tree)


def _is_named_by_keys(node: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == NAMED_BY_KEYS


def _warns(node: ast.AST) -> bool:
    """Whether this is the statement ``warnings.warn(…)``, or ``_warn(…)`` of geometry."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) in ("warnings.warn", "_warn")


class _WithoutWords(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Constant:
        return ast.Constant("")  # with what it names: values in a sentence


def _write_stamps(folder: Path) -> None:
    """Write ``library.hash`` and ``package.hash``, whose times make reads, where they changed."""
    hashes = {"library.hash": code_hash(), "package.hash": _hash(PACKAGE.rglob("*.py"))}
    for name, found in hashes.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != found:
            path.write_text(found, encoding="utf-8")


if __name__ == "__main__":
    _write_stamps(Path(sys.argv[1]))
