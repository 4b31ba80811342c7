"""The rooms, and the direction of the imports between them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "shrink_utils"
# Each room may import those further right, and itself; names and paths stand below all.
ORDER = ["study", "training", "models", "text", "geometry", "topology"]
# The same within the study: a folder, or a file beside the folders, uses those further down.
STUDY = [
    "watch",
    "full_length_figures",
    "full_length",
    "records",
    "verification",
    "publishing",
    "claims",
    "dynamics",
    "generalization",
    "stitching",
    "scorecard",
    "further_models",
    "language",
    "after_finetuning",
    "ablation",
    "finetuning",
    "diagnose",
    "similarity",
    "contextuality",
    "diagrams",
    "play",
    "barcodes",
    "isotropy",
    "regularizer",
    "corpora",
    "explorer",
    "grid",
    "cluster",
    "finetuned",
    "tables",
    "runs",
    "scratch",
    "session",
    "figures",
    "drawing",
    "results",
    "profiles",
    "intervals",
    "dependencies",
]
MODULES = sorted(PACKAGE.rglob("*.py"))
IN_STUDY = sorted({*(PACKAGE / "study").rglob("*.py")} - {PACKAGE / "study" / "__init__.py"})
STUBS = sorted(PACKAGE.rglob("__init__.pyi"))
MATHEMATICS = {"topology", "geometry"}
USES_TREES = {"geometry/dimension.py"}  # the one module of geometry that may import topology
LONGEST = 370  # lines of a module
# How a room loads a name when it is first asked for; its stub says where each comes from.
LAZY = "__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)"


def _imports(source: str) -> set[str]:
    """What a module imports, dotted: of ``from a import b``, ``a.b``."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the direction"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _rooms(source: str) -> set[str]:
    inside = {name.split(".")[1] for name in _imports(source) if name.startswith("shrink_utils.")}
    return inside & set(ORDER)


def _places_in_study(source: str) -> set[str]:
    """Folders and files of the study that a module imports; a name of its stub is where that is."""
    stub = ast.parse((PACKAGE / "study" / "__init__.pyi").read_text(encoding="utf-8"))
    definers = {
        alias.name: (node.module or alias.name).split(".")[0]
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    parts = [name.split(".") for name in _imports(source)]
    inside = [part[2:] for part in parts if part[:2] == ["shrink_utils", "study"]]
    return {definers.get(part[0], part[0]) if part else "study" for part in inside}


def _place(path: Path) -> str:
    """Where a module of the study stands in the order."""
    return path.relative_to(PACKAGE / "study").parts[0].removesuffix(".py")


def test_every_module_is_in_a_room():
    top = {path.name for path in PACKAGE.glob("*.py")}
    assert top == {"__init__.py", "__main__.py", "names.py", "paths.py"}
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == set(
        ORDER
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_point_downward(path):
    room = path.relative_to(PACKAGE).parts[0]
    if room in ORDER:
        allowed = {room} | set(ORDER[ORDER.index(room) + 1 :])
        if room in MATHEMATICS and path.relative_to(PACKAGE).as_posix() not in USES_TREES:
            allowed = {room}
        assert _rooms(path.read_text(encoding="utf-8")) <= allowed


def test_every_folder_and_file_of_the_study_has_its_place():
    assert {_place(path) for path in IN_STUDY} == set(STUDY)


@pytest.mark.parametrize("path", IN_STUDY, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_within_the_study_point_downward(path):
    found = _places_in_study(path.read_text(encoding="utf-8"))
    assert found <= set(STUDY[STUDY.index(_place(path)) :])


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("from shrink_utils.study.claims.verdicts import all_claims", "claims"),
        ("import shrink_utils.study.claims.verdicts", "claims"),
        ("from shrink_utils.study.verification import verify", "verification"),
        ("from shrink_utils.study import all_claims", "claims"),
        ("from shrink_utils.study import figures", "figures"),
        ("from shrink_utils.study import verification", "verification"),
        ("from shrink_utils import study", "study"),
        ("def f():\n    from shrink_utils.study import run_id", "runs"),
    ],
)
def test_no_form_of_import_is_overlooked(source, place):
    assert _places_in_study(source) == {place} and _rooms(source) == {"study"}


@pytest.mark.parametrize("room", sorted(MATHEMATICS))
def test_the_mathematics_needs_no_transformers(room):
    heavy = {"transformers", "datasets", "pandas", "matplotlib", "seaborn", "IPython"}
    for path in (PACKAGE / room).rglob("*.py"):
        assert (
            not {name.split(".")[0] for name in _imports(path.read_text(encoding="utf-8"))} & heavy
        )


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.name == "__init__.py"],
    ids=lambda p: p.relative_to(PACKAGE).as_posix(),
)
def test_an_init_only_passes_names_on(path):
    """A run's identity leaves these files out, so they may not compute anything."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    docstring, *rest = body
    assert isinstance(docstring, ast.Expr)
    assigned = [ast.unparse(n) for n in rest if isinstance(n, ast.Assign)]
    assert all(isinstance(n, ast.ImportFrom | ast.Import | ast.Assign) for n in rest)
    assert all(line == LAZY or line.startswith(("__all__ =", "__version__ =")) for line in assigned)


@pytest.mark.parametrize("path", STUBS, ids=lambda p: p.parent.name)
def test_a_stub_names_what_it_takes_from_its_own_room(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    *imports, public = tree.body
    assert all(isinstance(node, ast.ImportFrom) and node.level == 1 for node in imports)
    taken = {alias.asname or alias.name for node in imports for alias in node.names}
    assert sorted(taken) == sorted(ast.literal_eval(public.value))
    assert LAZY in ast.unparse(ast.parse(path.with_suffix(".py").read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_modules_stay_small(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST
