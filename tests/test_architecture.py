"""The rooms, the direction of the imports, how many names the house has; no code comes in."""

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "shrink_utils"
# Each room may import itself, and those that are named; names and sources stand below all.
LIBRARY = ["training", "models", "geometry", "topology"]  # each also those to its right
ROOMS = {"study": [*LIBRARY, "text"], "text": []} | {
    room: LIBRARY[i + 1 :] for i, room in enumerate(LIBRARY)
}
# Bounds, with room: what "To add …" asks for breaks none. Names that the rooms list, modules, the
# longest chain of imports, and lines of a function's body; not of all lines, which buy density.
LISTED_NAMES, N_MODULES, FLOORS, FUNCTION_LINES = 115, 64, 8, 40
TWICE = {"__all__", "__dir__", "__getattr__"}  # Python's own


def _name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def _imported(path: Path) -> set[tuple[str, str]]:
    """Module and name of every import of the package in a file, late ones too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            relative = [*path.relative_to(ROOT).parts[: -node.level]] if node.level else []
            module = ".".join([*relative, *filter(None, [node.module])])
            found |= {(module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
    inside = {(m, n) for m, n in found if m.split(".")[0] == "shrink_utils"}
    return {(m.removeprefix("shrink_utils").removeprefix("."), n) for m, n in inside}


def _definer(module: str, name: str) -> str:
    """The module that an import is of: of a room's name, the one that its list takes it from."""
    folder = PACKAGE / module.replace(".", "/")
    for listed in (folder / "__init__.pyi", folder / "__init__.py"):
        if listed.is_file():
            for source, passed_on in _imported(listed):
                if passed_on == name and source != module:
                    return _definer(source, name)
    inner = f"{module}.{name}".strip(".")
    return inner if inner in MODULES else module


IMPORTS = {
    module: {_definer(*pair) for pair in _imported(path)} - {module, ""}
    for module, path in MODULES.items()
    if path.name != "__init__.py"  # these only pass names on
}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_below_it(room):
    inside = {m: found for m, found in IMPORTS.items() if m.split(".")[0] == room}
    assert inside
    for module, found in inside.items():
        allowed = {room, *ROOMS[room], "names", "sources"}
        assert {name.split(".")[0] for name in found} <= allowed, module


def test_imports_never_run_in_circles_and_the_house_has_few_floors():
    floor = {}
    for module in TopologicalSorter(IMPORTS).static_order():  # raises CycleError
        floor[module] = 1 + max((floor[name] for name in IMPORTS.get(module, ())), default=0)
    assert max(floor.values()) <= FLOORS, max(floor, key=floor.get)


TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
DEFINED = ast.FunctionDef | ast.ClassDef


def _top_level(tree: ast.Module) -> set[str]:
    """Names that a module defines: functions, classes and what it assigns."""
    names = {node.name for node in tree.body if isinstance(node, DEFINED)}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = (part for target in targets for part in ast.walk(target))
            names |= {part.id for part in found if isinstance(part, ast.Name)}
    return names


def test_the_rooms_list_no_more_names_and_the_package_has_no_more_modules_than_were_agreed():
    lists = [*PACKAGE.glob("*/__init__.pyi"), *PACKAGE.glob("*/__init__.py")]
    listed = [name for path in lists for _, name in _imported(path) if name != "names_of_stub"]
    assert 50 < len(listed) <= LISTED_NAMES
    assert len(MODULES) <= N_MODULES


def test_no_name_means_two_things_in_two_modules():
    """Nor have two files one name: a reader who searches for it finds one place."""
    places = defaultdict(list)
    for module, tree in TREES.items():
        for name in _top_level(tree):
            places[name].append(module)
    assert {name for name, found in places.items() if len(found) > 1} == TWICE
    stems = Counter(path.stem for path in MODULES.values() if path.stem != "__init__")
    assert not [stem for stem, n in stems.items() if n > 1]


def _body_lines(path: Path, node: ast.FunctionDef) -> int:
    """Lines of a function's body that are neither blank, comment nor docstring."""
    first = node.body[ast.get_docstring(node) is not None :] or node.body
    lines = path.read_text(encoding="utf-8").splitlines()[first[0].lineno - 1 : node.end_lineno]
    return sum(bool(line.strip()) and line.strip()[0] != "#" for line in lines)


def test_a_function_fits_on_a_screen():
    for module, tree in TREES.items():
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        lines = [(_body_lines(MODULES[module], node), node.name) for node in functions]
        assert max(lines, default=(0, ""))[0] <= FUNCTION_LINES, (module, max(lines))


def test_an_init_only_passes_names_on():
    """A run's identity leaves these files out, so they may not compute anything."""
    for path in PACKAGE.rglob("__init__.py"):
        docstring, *rest = ast.parse(path.read_text(encoding="utf-8")).body
        assert isinstance(docstring, ast.Expr)
        assert all(isinstance(n, ast.ImportFrom | ast.Import | ast.Assign) for n in rest), path


@pytest.mark.parametrize("room", ["models", "training", "study"])
def test_no_name_that_a_room_loads_on_demand_is_hidden_by_a_module_of_that_name(room):
    """Else `from room import name` would give the module, once anybody has imported it."""
    stub = PACKAGE / room / "__init__.pyi"
    passed_on = {name for module, name in _imported(stub) if module != room}
    assert passed_on and not passed_on & {path.stem for path in stub.parent.iterdir()}


def _loaded(code: str, heavy: list[str]) -> str:
    told = f"{code}\nimport sys; print([name for name in {heavy} if name in sys.modules])"
    command = [sys.executable, "-c", told]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_mathematics_and_the_start_of_the_command_line_are_light():
    heavy = ["transformers", "datasets", "pandas", "matplotlib", "seaborn", "IPython", "dask"]
    above = ["shrink_utils.study", "shrink_utils.models", "shrink_utils.text"]
    library = "import shrink_utils.topology, shrink_utils.geometry, shrink_utils.training.penalties"
    assert _loaded(library, [*heavy, *above]) == "[]\n"
    start = "import shrink_utils.__main__\nfrom shrink_utils.study.profiles import load_profile"
    assert _loaded(f"{start}\nload_profile('quick')", ["torch", *heavy]) == "[]\n"


def test_models_are_read_from_safetensors_and_their_code_is_refused():
    """Ruff's rules S and TID251 find what unpickles and executes; these are options of calls."""
    calls = [
        node for path in MODULES.values() for node in ast.walk(ast.parse(path.read_text("utf-8")))
    ]
    calls = [node for node in calls if isinstance(node, ast.Call)]
    loads = 0
    for call in calls:
        called = ast.unparse(call.func)
        options = {option.arg: ast.unparse(option.value) for option in call.keywords}
        off = {"trust_remote_code", "allow_pickle"} & options.keys()
        assert {options[name] for name in off} <= {"False"}, called
        if called.endswith(".from_pretrained"):
            loads += 1
            # Without the option, transformers asks at the terminal: `echo y |` would run the code.
            assert "trust_remote_code" in off, called
            weightless = re.search("Tokenizer|Config", called)
            assert weightless or options.get("use_safetensors") == "True", called
    assert loads >= 3
