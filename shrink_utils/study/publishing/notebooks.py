"""Execute a notebook headless, whole or not at all, and store its outputs for readers."""

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import papermill
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from shrink_utils.names import WIDGET_VIEW
from shrink_utils.study.results import atomic_write, file_lock


def executed_notebooks(folder: Path) -> list[Path]:
    """Executed copies in a folder, by chapter: none that is half-way, none that failed."""
    return sorted(path for path in folder.glob("[0-9]*.ipynb") if "." not in path.stem)


def run_notebook(source: Path, target: Path) -> float:
    """Run `source` with papermill, leave the executed copy at `target`, and return the seconds.

    The copy is written beside the target and renamed when whole. On an error it is kept as
    ``<name>.failed.ipynb`` and `target` is left as it was. Of two processes that execute the same
    notebook, the second one waits.

    Raises
    ------
    FileNotFoundError
        If there is no such notebook.
    RuntimeError
        If a cell raised; the notebook as far as it came is kept.
    """
    if not source.is_file():
        raise FileNotFoundError(f"source: no notebook {source}")
    target.parent.mkdir(parents=True, exist_ok=True)
    part, failed = (target.with_suffix(f".{name}.ipynb") for name in ("part", "failed"))
    # The kernel inherits these: stored outputs hold no progress bars and need no screen.
    os.environ.update(TQDM_DISABLE="1", MPLBACKEND="module://matplotlib_inline.backend_inline")
    started = time.perf_counter()
    with file_lock(target), TemporaryDirectory(prefix="shrink-kernel-") as sockets:
        try:
            papermill.execute_notebook(
                source,
                part,
                kernel_name="python3",
                cwd=source.parent,
                progress_bar=False,
                # Before it ends any kernel, jupyter_client interrupts it; a kernel that still
                # answers a message then logs "KeyboardInterrupt caught in kernel" as an error.
                extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
                config=Config(KernelManager=_way_to_the_kernel(sockets)),
            )
        except PapermillExecutionError as error:
            part.replace(failed)
            raise RuntimeError(
                f"{source.name}, cell {error.exec_count}: {error.ename}: {error.evalue}\n"
                f"The notebook as far as it came: {failed}"
            ) from error
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        part.replace(target)  # Windows renames onto no file
        failed.unlink(missing_ok=True)
    return time.perf_counter() - started


def _way_to_the_kernel(folder: str) -> dict[str, str]:
    """Files that the kernel is reached by; on Windows, which may have none such, ports.

    Two processes that look for free ports at a time can find the same, and each then waits for a
    kernel that answers the other.
    """
    return {} if sys.platform == "win32" else {"transport": "ipc", "ip": f"{folder}/socket"}


def store_outputs(executed: Path, source: Path) -> None:
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
