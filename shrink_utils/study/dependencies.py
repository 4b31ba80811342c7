"""Which modules a notebook or a module rests on: for make, and for the code version of a run.

Standard library only, and runnable as a file, because make calls it before anything is installed.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
from functools import cache
from pathlib import Path

PACKAGE = "shrink_utils"
ROOT = Path(__file__).resolve().parents[2]


def module_closure(*modules: str) -> list[Path]:
    """Files that importing `modules` (dotted names) uses, through the package's own imports.

    ``from shrink_utils.room import name`` counts the room's ``__init__`` (its ``.pyi`` where names
    are loaded lazily) and the one module that defines `name`, not the whole room: a change
    elsewhere in the room is not a change here.

    Raises
    ------
    ModuleNotFoundError
        The results of a module that does not exist would never be stale.
    """
    found: set[Path] = set()
    waiting = []
    for module in modules:
        if (path := _file(module)) is None:
            raise ModuleNotFoundError(f"modules: the package has no module {module!r}")
        waiting.append(path)
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.stem != "__init__":  # which only passes names on
            waiting.extend(_imports(path.read_text(encoding="utf-8")))
    return sorted(found)


def notebook_closure(notebook: Path) -> list[Path]:
    """Files of the package that a notebook's code cells rest on."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    direct = _imports("\n".join(lines))
    return module_closure(*(_dotted(path) for path in direct))


def code_version(*modules: str, but: str = "") -> str:
    """Sixteen hex digits over the code that `modules` rest on; comments and docstrings are free.

    The module `but` does not count, because the caller accounts for what it uses of it.
    """
    digest = hashlib.sha256()
    for path in module_closure(*modules):
        if _dotted(path) == but or path.stem == "__init__":
            continue
        digest.update(_dotted(path).encode())
        digest.update(_code_only(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:16]


def _imports(source: str) -> list[Path]:
    """Files named by the import statements of a source text."""
    files: list[Path] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            names += [_definer(node.module, alias.name) for alias in node.names]
        else:
            continue
        files += [path for name in names if (path := _file(name))]
    return files


def _definer(module: str, name: str) -> str:
    """The module that `name` comes from when it is imported from `module`."""
    path = _file(module)
    if path is not None and path.stem == "__init__":
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and name in [
                a.asname or a.name for a in node.names
            ]:
                parts = (module if node.level else None, node.module)  # stubs: from .module import
                source = ".".join(filter(None, parts))
                return source if _file(f"{source}.{name}") is None else f"{source}.{name}"
    return f"{module}.{name}"


def _file(module: str) -> Path | None:
    if module.split(".")[0] != PACKAGE:
        return None
    base = ROOT.joinpath(*module.split("."))
    candidates = (base / "__init__.pyi", base / "__init__.py", base.with_suffix(".py"))
    return next((path for path in candidates if path.is_file()), None)


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _code_only(source: str) -> str:
    """The syntax tree as text, without docstrings: equal for code that does the same."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body[0].value.value = ""
    return ast.dump(tree)


def _make_rules(out: str) -> str:
    """Prerequisites of every executed notebook, for make."""
    computes_runs = f"{PACKAGE}/study/grid.py"  # what imports it wants the whole grid first
    rules = []
    for notebook in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        files = _relative(notebook_closure(notebook))
        grid = [f"{out}/ablation.complete"] * (computes_runs in files)
        rules.append(f"{out}/notebooks/{notebook.name}: {' '.join([*files, *grid])}")
    training = _relative(module_closure(f"{PACKAGE}.study.grid"))
    return "\n".join([*rules, f"{out}/ablation.complete: {' '.join(training)}"])


def _relative(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="print make's prerequisites of the notebooks")
    parser.add_argument("--out", required=True, help="folder of the results, results/<profile>")
    print(_make_rules(parser.parse_args().out))
