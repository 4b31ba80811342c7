"""Sessions 1 to 3 need nothing that Windows lacks: in what their chapters import, and when run.

typeshed, which comes with jedi, says what each module of the standard library has on which system.
"""

import ast
import re
import subprocess
import sys
import types
from dataclasses import replace
from functools import cache
from pathlib import Path

import jedi
import matplotlib.pyplot as plt
import nbformat
import pytest

import shrink_utils.study.publishing.notebooks as headless
from shrink_utils.study import figures, load_run, run_or_load, setup_notebook
from shrink_utils.study.publishing.course import write_course
from shrink_utils.study.results import atomic_write
from shrink_utils.text import fetch, load_task, read_snippets
from tests.test_architecture import IMPORTS, MODULES, ROOT, _definer

CHAPTERS = [path for n in "00 01 04 04b 05 06".split() for path in ROOT.glob(f"notebooks/{n}_*")]
# Commands of the path without make; of the command line itself, what it loads at its start.
COMMANDS = {"study.publishing.course", "study.publishing.notebooks"}
STUBS = Path(jedi.__file__).parent / "third_party" / "typeshed" / "stdlib"
POSIX_PLACE = re.compile(r"fork(server)?|/(proc|sys|dev|tmp|etc|var|usr|bin)(/.*)?")
RESERVED = re.compile(r'[<>:"\\|?*]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)', re.IGNORECASE)


def _names(body: list[ast.stmt], platform: str) -> set[str]:
    """What a stub defines on a platform."""
    known = {"sys": types.SimpleNamespace(platform=platform, version_info=sys.version_info)}
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.If):
            holds = eval(ast.unparse(node.test), known)  # noqa: S307 (typeshed's: no user's)
            chosen = node.body if holds else node.orelse
            found |= _names(chosen, platform)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@cache
def not_on_windows(module: str) -> set[str]:
    """Names that a module of the standard library has on Linux alone; "" for the whole module."""
    stub = STUBS / f"{module}.pyi"
    stub = stub if stub.is_file() else STUBS / module / "__init__.pyi"
    if module not in sys.stdlib_module_names or not stub.is_file():
        return set()
    body = ast.parse(stub.read_text(encoding="utf-8")).body
    lacking = _names(body, "linux") - _names(body, "win32")
    defined = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
    return lacking | ({""} if lacking and not _names(defined, "win32") else set())


def _is_guard(node: ast.AST) -> bool:
    """Whether a statement asks for the system, or for the name, before its body uses it."""
    if isinstance(node, ast.If | ast.IfExp):
        return bool(re.search(r"hasattr\(|sys\.platform|os\.name", ast.unparse(node.test)))
    handlers = node.handlers if isinstance(node, ast.Try) else []
    return any("ImportError" in ast.unparse(h.type) for h in handlers if h.type)


def _open_nodes(node: ast.AST):
    """The nodes below one, but for what stands behind a guard."""
    yield node
    if not _is_guard(node):
        for child in ast.iter_child_nodes(node):
            yield from _open_nodes(child)


def faults(source: str) -> list[str]:
    """What of a source Windows has not, or would read in another encoding than UTF-8."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    modules = {alias.asname or alias.name: alias.name for i in imports for alias in i.names}
    found = []
    for node in _open_nodes(tree):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if "" in not_on_windows(a.name)]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            lacking = not_on_windows(node.module)
            found += [f"{node.module}.{a.name}" for a in node.names if a.name in lacking]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id, "")
            found += [f"{module}.{node.attr}"] * (node.attr in not_on_windows(module))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            posix = re.fullmatch(
                r"fork(server)?|/(proc|sys|dev|tmp|etc|var|usr|bin)(/.*)?", node.value
            )
            found += [node.value] * bool(posix)
        elif isinstance(node, ast.Call):
            found += _in_another_encoding(node)
    return found


def _in_another_encoding(call: ast.Call) -> list[str]:
    """Text that is read or written as the system has it, which on Windows is not UTF-8."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    of_bytes = any(isinstance(a, ast.Constant) and "b" in str(a.value) for a in call.args[-1:])
    named = any(option.arg == "encoding" for option in call.keywords)
    places = {"open": 9, "fdopen": 9, "read_text": 1, "write_text": 2}  # of the encoding
    if name not in places or named or len(call.args) >= places[name]:
        return []
    archive = name == "open" and re.match(r"(tarfile|Image|PIL\.Image|opened)\.", ast.unparse(call))
    return [] if archive or (name == "open" and of_bytes) else [f"{name} without an encoding"]


def _cells(chapter: Path) -> str:
    """The code of a chapter and of its solutions, without magics."""
    notebooks = [chapter, chapter.parent / "solutions" / chapter.name]
    cells = [cell for path in notebooks for cell in nbformat.read(path, as_version=4).cells]
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    return "\n".join(line for line in code.splitlines() if not line.startswith("%"))


def _reached() -> set[str]:
    """Modules that the chapters and the commands import, and what those import, late ones too."""
    waiting = {*COMMANDS, "paths"}
    for chapter in CHAPTERS:
        for node in ast.walk(ast.parse(_cells(chapter))):
            module = getattr(node, "module", None) or ""
            if isinstance(node, ast.ImportFrom) and module.startswith("shrink_utils"):
                room = module.removeprefix("shrink_utils").removeprefix(".")
                waiting |= {_definer(room, alias.name) for alias in node.names}
    found: set[str] = set()
    while waiting:
        found.add(module := waiting.pop())
        # A whole room, as in `from shrink_utils import training`, is all that it loads when asked.
        inside = {name for name in MODULES if name.startswith(f"{module}.")}
        waiting |= (IMPORTS.get(module, inside) | inside) - found
    return found


def test_nothing_below_the_chapters_of_sessions_1_to_3_is_of_posix_alone():
    assert len(CHAPTERS) == 6
    reached = _reached()
    assert {
        "study.results",
        "study.runs",
        "text.sources",
        "training.finetuning",
    } < reached
    sources = {name: MODULES[name].read_text("utf-8") for name in reached if name in MODULES}
    sources |= {path.name: _cells(path) for path in CHAPTERS}
    assert not {name: found for name, source in sources.items() if (found := faults(source))}


@pytest.mark.parametrize(
    "planted",
    [
        "import os\nos.getuid()",
        "import os as system\nsystem.fork()",
        "def f():\n    from os import sched_getaffinity",
        "import fcntl",
        "import resource, json",
        "import signal\nsignal.signal(signal.SIGALRM, f)",
        "import signal\nos.kill(1, signal.SIGKILL)",
        "info = Path('/proc/cpuinfo')",
        "multiprocessing.get_context('fork')",
        "if linux:\n    import os\n    os.getuid()",
        "path.read_text()",
        "path.write_text('ä')",
        "open(path)",
        "with path.open('a') as page:\n    pass",
    ],
)
def test_what_windows_lacks_is_found_wherever_it_stands(planted):
    assert len(faults(planted)) == 1
    results = MODULES["study.results"].read_text("utf-8")
    assert len(faults(f"{results}\n{planted}")) == 1


def test_what_is_asked_for_first_may_be_of_posix():
    assert not faults("import os\nx = os.getuid() if hasattr(os, 'getuid') else 'me'")
    assert not faults("import os, sys\nif sys.platform != 'win32':\n    os.fork()")
    assert not faults("try:\n    import fcntl\nexcept ImportError:\n    fcntl = None")
    assert not faults("import os\nos.environ, os.getpid(), os.replace(a, b), os.path.join(a, b)")
    assert not faults("open(path, 'rb')\nopen(path, encoding='utf-8')\npath.read_text('utf-8')")


class _OnWindows(types.ModuleType):
    """A module of the standard library with what it has on Windows."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module.__name__)
        self._module = module
        if module is sys:
            self.platform = "win32"

    def __getattr__(self, name: str) -> object:
        if name in not_on_windows(self.__name__):
            raise AttributeError(f"{self.__name__} has no {name} on Windows")
        return getattr(self._module, name)


@pytest.fixture
def windows(monkeypatch):
    """This package on a system whose modules have nothing of POSIX; other packages see Linux."""
    for module in [m for name, m in sys.modules.items() if name.startswith("shrink_utils")]:
        for name, value in list(vars(module).items()):
            if isinstance(value, types.ModuleType) and not_on_windows(value.__name__):
                monkeypatch.setattr(module, name, _OnWindows(value))


def test_what_the_chapters_call_runs_without_posix(windows, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "a place of one's own"))
    profile = setup_notebook("smoke")
    (fetch("vader_sentiment") / "LICENSE.txt").read_bytes()
    assert len(read_snippets("movies")) and load_task("sentiment_movies", max_train=8, max_eval=8)
    config = replace(profile.runs()[1], epochs=1, train_rows=16, eval_rows=8)
    run = run_or_load(config, profile.folder / "runs")
    assert load_run(run.folder).history.equals(run.history)
    figures.show(plt.figure(), "a_figure", profile=profile, alt="nothing", caption="Nothing.")
    with atomic_write(
        profile.folder / "figures" / "a_figure.png"
    ) as part:  # in the place of another
        part.write_bytes(b"new")
    written_names = [path.name for path in tmp_path.rglob("*")]
    assert len(written_names) > 10 and not list(filter(RESERVED.search, written_names))


def test_the_course_is_written_and_a_notebook_run_without_posix(windows, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")  # execute sets it; give it back afterwards
    monkeypatch.setenv("TQDM_DISABLE", "1")
    for name in ("solutions/04_barcodes.ipynb", "04_barcodes.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / "notebooks" / name).read_bytes())
    folder, kept = write_course(tmp_path)
    assert (folder / "instructor" / "04_barcodes.ipynb").is_file() and kept is None
    asked = "from ipykernel.kernelapp import IPKernelApp; print(IPKernelApp.instance().transport)"
    cells = [nbformat.v4.new_code_cell(asked)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "any.ipynb")
    rename = Path.rename

    def as_on_windows(path, target):
        if Path(target).exists():
            raise FileExistsError(target)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", as_on_windows)
    for _ in range(2):  # the second time onto the first one's file
        headless.run_notebook(tmp_path / "any.ipynb", tmp_path / "done.ipynb")
    output = nbformat.read(tmp_path / "done.ipynb", as_version=4).cells[0].outputs[0]
    assert output.text == "tcp\n"


def test_every_file_can_be_checked_out_on_windows_and_macos():
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = names.splitlines()
    assert len(names) > 100 and len({name.casefold() for name in names}) == len(names)
    assert not [name for name in names if any(map(RESERVED.search, name.split("/")))]
