"""Rooms load a name when it is first asked for: the right one, whatever was imported before."""

from __future__ import annotations

import ast
import importlib
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "shrink_utils"
LAZY = sorted(path.parent.name for path in PACKAGE.rglob("__init__.pyi"))
# The known trap: importing a submodule puts it in the place of a function that has its name.
COMPARE = """
import importlib, pkgutil, sys
for modules_first in (False, True):  # in a package imported afresh; other libraries stay
    for name in [name for name in sys.modules if name.split(".")[0] == "shrink_utils"]:
        del sys.modules[name]
    rooms = {{name: importlib.import_module(f"shrink_utils.{{name}}") for name in {rooms}}}
    if modules_first:
        for room in rooms.values():
            for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
                importlib.import_module(module.name)
    for room, name, source in {names}:
        exec(f"from shrink_utils.{{room}} import {{name}} as found")
        defined = importlib.import_module(source)
        if not source.endswith(f"{{room}}.{{name}}") or hasattr(defined, name):
            defined = getattr(defined, name)  # else the room's name is that of a module
        same = found is defined and getattr(rooms[room], name) is defined
        assert same, (modules_first, room, name, found)
"""


def _run(code: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", code],
        cwd=PACKAGE.parent,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


def _named(room: str) -> list[tuple[str, str, str]]:
    """Room, name, and the module that the stub takes it from: of every name of a room's stub."""
    tree = ast.parse((PACKAGE / room / "__init__.pyi").read_text(encoding="utf-8"))
    return [
        (room, alias.name, f"shrink_utils.{room}.{node.module or alias.name}")
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


def test_the_rooms_above_the_mathematics_are_lazy():
    assert LAZY == ["models", "study", "text", "training"]


def test_a_name_is_what_its_stub_says_whether_names_or_modules_come_first():
    names = [named for room in LAZY for named in _named(room)]
    assert len(names) > 100
    ran = _run(COMPARE.format(rooms=LAZY, names=names))
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("room", LAZY)
def test_a_room_lists_the_names_of_its_stub(room):
    module = importlib.import_module(f"shrink_utils.{room}")
    names = sorted(name for _, name, _ in _named(room))
    assert sorted(module.__all__) == names
    assert dir(module) == names
    with pytest.raises(AttributeError, match=f"shrink_utils.{room} attribute no_such_name"):
        _ = module.no_such_name


def test_a_function_travels_to_another_process_by_its_name():
    from shrink_utils.text import sources, task_spec
    from shrink_utils.training import RunConfig, finetune

    for value in (finetune, sources, task_spec, RunConfig):
        assert pickle.loads(pickle.dumps(value)) is value
    loaded = _run(f"import pickle; print(pickle.loads({pickle.dumps(sources)!r}).__qualname__)")
    assert loaded.stdout == "sources\n", loaded.stderr


def test_the_start_of_the_command_line_is_light():
    """What it costs is felt at every call: make calls it for every notebook."""
    heavy = ["torch", "transformers", "datasets", "pandas", "seaborn", "matplotlib", "dask"]
    told = _run(
        "import sys; from shrink_utils import __main__; __main__.load_profile('quick')\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert told.stdout == "[]\n", told.stderr


def test_the_installed_package_has_its_stubs(tmp_path):
    build = "from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    copy = tmp_path / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "shrink_utils"):
        (copy / name).symlink_to(PACKAGE.parent / name)
    subprocess.run(
        [sys.executable, "-c", f"import sys; {build}", str(tmp_path)],
        cwd=copy,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {f"shrink_utils/{room}/__init__.pyi" for room in LAZY} <= packed
    assert "shrink_utils/study/profiles/quick.toml" in packed


def _imports_of(chapter: str) -> str:
    """The import lines of a chapter's first cells."""
    (path,) = (PACKAGE.parent / "notebooks").glob(f"{chapter}_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (first, *_) = [source for source in code if "from shrink_utils" in source]
    return "\n".join(
        ast.unparse(node)
        for node in ast.parse(first).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


@pytest.mark.parametrize(
    ("chapter", "heavy"),
    [
        ("04", ["transformers.trainer", "datasets", "sklearn", "dask"]),
        ("05", ["transformers", "datasets", "sklearn", "statsmodels.api", "dask"]),
        ("07", ["transformers", "datasets", "sklearn", "dask", "numba", "statsmodels.api"]),
        ("11", ["statsmodels.api", "dask"]),
    ],
)
def test_the_import_cell_of_a_chapter_loads_no_more_than_it_shows(chapter, heavy):
    """07 shows finished runs: whoever waits ten seconds for its first cell waits for nothing."""
    told = _run(
        f"{_imports_of(chapter)}\n"
        f"import sys; print([name for name in {heavy} if name in sys.modules])"
    )
    assert told.stdout == "[]\n", told.stderr
