"""Execute a notebook headless, whole or not at all, and store its outputs for readers."""

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import nbformat
import papermill
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from papermill.exceptions import PapermillExecutionError
from traitlets import default
from traitlets.config import Config
from zmq import ZMQError

from shrink_utils.names import WIDGET_VIEW
from shrink_utils.sources import _same_checkout, home
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import _file_lock, atomic_write

# Of the variables that Python, IPython and Jupyter read, those that change nothing a chapter says.
HARMLESS = ("PYTHONHASHSEED", "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
# What a user's IPython would run before a chapter's first cell. Before jupyter_client ends any
# kernel it interrupts it; one that still answers then logs "KeyboardInterrupt caught" as an error.
QUIET = ("log_level=CRITICAL", "extensions=[]", "exec_lines=[]", "exec_files=[]")
KILLERS = """What ends a kernel: the system, when memory is short (`dmesg` says so; JOBS=1 takes
less), the limit of a batch system, `exit()` in this cell or the one before, or compiled code."""


def _executed_notebooks(folder: Path) -> list[Path]:
    """Executed copies in a folder, by chapter: none that is half-way, none that failed."""
    return sorted(path for path in folder.glob("[0-9]*.ipynb") if "." not in path.stem)


def _execute_command(profile: Profile, source: Path, target: Path) -> None:
    name, seconds = source.stem, _run_notebook(source, target)
    done, chapters = (len(_executed_notebooks(path.parent)) for path in (target, source))
    print(f"{name}: {seconds:.0f} s, {done} of {chapters} chapters", flush=True)


def _store_command(profile: Profile) -> None:
    for executed in _executed_notebooks(profile.folder / "notebooks"):
        _store_outputs(executed, home() / "notebooks" / executed.name)
        os.utime(executed)  # newer than what it was stored into: make has nothing to do


class _OwnKernel(AsyncKernelManager):
    """A kernel of this Python with this package first on its path, and nothing of the user's.

    A kernel *named* python3 may be another environment's (JUPYTER_PATH, or the user's folder), and
    PYTHONPATH may hold another checkout: its numbers would be printed as those of this one.
    """

    @default("kernel_spec_manager")
    def _no_installed_kernels(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[])  # leaves the one that this Python's ipykernel is

    async def start_kernel(self, **options: object) -> None:
        ours = {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PYTHONNOUSERSITE": "1"}
        ours |= {"TQDM_DISABLE": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
        read = ("PYTHON", "IPYTHON", "JUPYTER")
        kept = {k: v for k, v in os.environ.items() if k in HARMLESS or not k.startswith(read)}
        await super().start_kernel(env=kept | ours, **options)


def _run_notebook(
    source: Path, target: Path, *, parameters: Mapping[str, object] | None = None
) -> float:
    """Run `source` with papermill, leave the executed copy at `target`, and return the seconds.

    `parameters` take the place of values of its first cell.

    The copy is written beside the target and renamed when whole. On an error it is kept as
    ``<name>.failed.ipynb`` and `target` is left as it was. Of two processes that execute the same
    notebook, the second one waits.

    Raises
    ------
    FileNotFoundError
        If there is no such notebook.
    RuntimeError
        If a cell raised or its kernel ended (the notebook as far as it came is kept), or if the
        notebook lies in another checkout than this package.
    """
    if not source.is_file():
        raise FileNotFoundError(f"source: no notebook {source}")
    _same_checkout(source.resolve().parent)
    target.parent.mkdir(parents=True, exist_ok=True)
    part, failed = (target.with_suffix(f".{name}.ipynb") for name in ("part", "failed"))
    started = time.perf_counter()
    with _file_lock(target), tempfile.TemporaryDirectory(prefix="shrink-", dir=_short()) as folder:
        reached = {"connection_file": f"{folder}/kernel.json", **_transport(folder)}
        try:
            papermill.execute_notebook(
                source,
                part,
                parameters=parameters,
                kernel_name="python3",
                kernel_manager_class=_OwnKernel,
                config=Config(KernelManager=reached),
                extra_arguments=[f"--ipython-dir={folder}", *(f"--IPKernelApp.{q}" for q in QUIET)],
                cwd=source.parent,
                progress_bar=False,
                start_timeout=300,  # seconds, for a busy machine
            )
        except PapermillExecutionError as error:
            told = f"cell {error.exec_count}: {error.ename}: {error.evalue}"
            raise _kept(source, part, failed, told) from error
        except (RuntimeError, ZMQError) as error:  # of jupyter_client: the kernel, its sockets
            raise _kept(source, part, failed, f"{_last_cell(part)}: {error}\n{KILLERS}") from error
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        part.replace(target)  # Windows renames onto no file
        failed.unlink(missing_ok=True)
    return time.perf_counter() - started


def _kept(source: Path, part: Path, failed: Path, told: str) -> RuntimeError:
    """The error of a notebook that did not come to its end; what ran of it is kept."""
    if not part.is_file():
        return RuntimeError(f"{source.name}, {told}")
    part.replace(failed)
    return RuntimeError(f"{source.name}, {told}\nThe notebook as far as it came: {failed}")


def _last_cell(part: Path) -> str:
    """The cell in which a kernel ended: the last that papermill began."""
    cells = nbformat.read(part, as_version=4).cells if part.is_file() else []
    begun = [
        bool(cell.metadata.papermill.start_time)
        for cell in cells
        if cell.cell_type == "code" and cell.source.strip()
    ]
    return f"cell {sum(begun)}" if any(begun) else "before its first cell"


def _short() -> str:
    """A folder for temporary files in which a socket's path is short: 107 bytes are its limit."""
    usual = tempfile.gettempdir()
    short = (path for path in (usual, "/tmp", "/dev/shm") if path.isascii() and len(path) <= 75)
    return next((path for path in short if os.access(path, os.W_OK | os.X_OK)), usual)


def _transport(folder: str) -> dict[str, str]:
    """Files that the kernel is reached by; ports where there can be none, as on Windows.

    Two processes that look for free ports at a time can find the same, and each then waits for a
    kernel that answers the other.
    """
    fits = folder.isascii() and len(folder) <= 90
    return {"transport": "ipc", "ip": f"{folder}/socket"} if fits and os.name != "nt" else {}


def _store_outputs(executed: Path, source: Path) -> None:
    """Put the outputs of an executed copy into the notebook that readers open.

    Sources, cell ids and tags stay; papermill's marks and timings go, so that storing the same
    outputs twice changes nothing; so do widgets, which need a kernel: their pictures stay. What one
    cell printed is one output, however the kernel happened to cut it.
    """
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor  # executing needs none of it

    notebook = nbformat.read(executed, as_version=4)
    notebook, _ = CoalesceStreamsPreprocessor().preprocess(notebook, {})
    for name in ("papermill", "widgets"):
        notebook.metadata.pop(name, None)
    for cell in notebook.cells:
        for name in ("papermill", "execution"):
            cell.metadata.pop(name, None)
        if cell.metadata.get("tags") == []:
            del cell.metadata["tags"]
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET_VIEW, None)
    with atomic_write(source) as part:
        nbformat.write(notebook, part)
