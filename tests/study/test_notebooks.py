"""Headless execution: whole, or kept as failed; storing changes outputs and nothing else."""

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import nbformat
import pytest

from shrink_utils.names import WIDGET_VIEW
from shrink_utils.sources import home
from shrink_utils.study import setup_notebook
from shrink_utils.study.notebooks import _run_notebook, _store_outputs
from shrink_utils.study.results import _file_lock


def _notebook(path, *sources):
    path.parent.mkdir(exist_ok=True)
    cells = [nbformat.v4.new_code_cell(source, id=f"c{i}") for i, source in enumerate(sources)]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    return path


def test_a_failing_notebook_is_kept_and_the_last_good_one_left(tmp_path):
    target = tmp_path / "out" / "n.ipynb"
    target.parent.mkdir()
    target.write_text("good")
    failing = _notebook(tmp_path / "n.ipynb", "print('so far')", "1 / 0")
    with pytest.raises(RuntimeError, match=r"n\.ipynb, cell 2: ZeroDivisionError"):
        _run_notebook(failing, target)
    assert target.read_text() == "good"
    assert "so far" in (target.parent / "n.failed.ipynb").read_text()
    asked = "from ipykernel.kernelapp import IPKernelApp; print(IPKernelApp.instance().transport)"
    _run_notebook(_notebook(tmp_path / "n.ipynb", asked), target)
    assert [path.name for path in target.parent.iterdir()] == ["n.ipynb"]
    (cell,) = nbformat.read(target, as_version=4).cells
    assert cell.outputs[0].text == "ipc\n"  # another execution might have found the same port


@pytest.fixture
def other(tmp_path):
    """A folder that holds another checkout's package, and what Python runs when it is on a path."""
    package = tmp_path / "other" / "shrink_utils"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = 'of another checkout'\n")
    for name in ("sitecustomize", "usercustomize", "startup"):
        (package.parent / f"{name}.py").write_text("import builtins; builtins.intruder = __file__")
    return package.parent


def _home_of_a_user(folder: Path, other: Path) -> dict[str, str]:
    """What shells, clusters' modules and years of use leave: all of it meant for other work."""
    kernels = folder / ".local/share/jupyter/kernels/python3"
    startup = folder / ".ipython/profile_default/startup"
    jupyter = folder / ".jupyter"
    for made in (kernels, startup, jupyter):
        made.mkdir(parents=True)
    (kernels / "kernel.json").write_text('{"argv": ["false"], "display_name": "mine"}')
    (startup / "00.py").write_text("import builtins, os; builtins.intruder = 1; os.chdir('/')")
    (startup.parent / "ipython_config.py").write_text(
        "c.InteractiveShellApp.exec_lines = ['import builtins; builtins.intruder = 2']\n"
        "c.InteractiveShellApp.extensions = ['no_such_extension']\n"
    )
    (jupyter / "jupyter_config.json").write_text("{no json")
    (jupyter / "matplotlibrc").write_text("text.usetex: True\naxes.grid: True\nfont.size: 30\n")
    return {
        "HOME": str(folder),
        "PYTHONPATH": str(other),
        "PYTHONSTARTUP": str(other / "startup.py"),
        "PYTHONOPTIMIZE": "2",
        "JUPYTER_PATH": str(folder / ".local/share/jupyter"),
        "JUPYTER_CONFIG_DIR": str(jupyter),
        "MATPLOTLIBRC": str(jupyter),
        "IPYTHONDIR": str(folder / ".ipython"),
    }


ASKED = """
import builtins, os, sys, shrink_utils
from shrink_utils.study.figures import plt, use_house_style
use_house_style()
print(sys.executable, shrink_utils.__file__, os.getcwd(), sys.flags.optimize, sep="\\n")
print(getattr(builtins, "intruder", "nobody"), [p for p in sys.path if "other" in p])
print([plt.rcParams[name] for name in ("text.usetex", "axes.grid")])
"""


def test_a_kernel_is_of_this_python_and_this_package_whatever_a_user_has(
    tmp_path, other, monkeypatch
):
    for name, value in _home_of_a_user(tmp_path / "home", other).items():
        monkeypatch.setenv(name, value)
    target = tmp_path / "out" / "n.ipynb"
    _run_notebook(_notebook(tmp_path / "n.ipynb", ASKED), target)
    (cell,) = nbformat.read(target, as_version=4).cells
    package = home() / "shrink_utils" / "__init__.py"
    found = [sys.executable, str(package), str(tmp_path), "0", "nobody []", "[False, False]"]
    assert cell.outputs[0].text.splitlines() == found


def test_a_chapter_of_another_checkout_is_refused_and_both_are_named(tmp_path, other, monkeypatch):
    chapter = _notebook(other / "notebooks" / "n.ipynb", "1 + 1")
    with pytest.raises(RuntimeError) as caught:
        _run_notebook(chapter, tmp_path / "n.ipynb")
    assert str(home()) in str(caught.value) and str(other) in str(caught.value)
    monkeypatch.chdir(chapter.parent)
    with pytest.raises(RuntimeError) as caught:
        setup_notebook("smoke")  # as in a kernel that somebody else has started
    assert str(home()) in str(caught.value) and str(other) in str(caught.value)


@pytest.mark.parametrize("ends", ["import os; os.kill(os.getpid(), 9)", "import os; os._exit(0)"])
def test_a_kernel_that_ends_names_the_cell_and_what_ran_is_kept(tmp_path, ends):
    target = tmp_path / "out" / "n.ipynb"
    source = _notebook(tmp_path / "n.ipynb", "print('so far')", "", ends, "print('never')")
    with pytest.raises(RuntimeError, match=r"n\.ipynb, cell 2: .*\n.*memory") as caught:
        _run_notebook(source, target)
    assert str(target.parent / "n.failed.ipynb") in str(caught.value)
    assert [path.name for path in target.parent.iterdir()] == ["n.failed.ipynb"]
    assert "so far\\n" in (target.parent / "n.failed.ipynb").read_text()


def test_a_folder_for_temporary_files_may_have_any_name(tmp_path, monkeypatch):
    name = "s" * 60 + "é" * 20 + "\udcff" * 3
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / name))
    os.mkdir(tmp_path / name)
    asked = "import tempfile; print(ascii(tempfile.gettempdir()))"
    target = tmp_path / "out.ipynb"
    _run_notebook(_notebook(tmp_path / "n.ipynb", asked), target)
    output = nbformat.read(target, as_version=4).cells[0].outputs[0].text
    assert output.strip() == ascii(str(tmp_path / name))


def test_of_two_executions_of_a_notebook_the_second_waits(tmp_path):
    source, target = _notebook(tmp_path / "n.ipynb", "1 + 1"), tmp_path / "out" / "n.ipynb"
    held, done = threading.Event(), []

    def first():
        with _file_lock(target):
            held.set()
            time.sleep(1)
            done.append(target.exists())

    other = threading.Thread(target=first)
    other.start()
    held.wait()
    _run_notebook(source, target)
    assert done == [False] and target.is_file()
    other.join()


WIDGET = """
import ipywidgets
from IPython.display import display
from shrink_utils.study.figures import _with_fallback
import io, PIL.Image
PIL.Image.new("P", (8, 6)).save(png := io.BytesIO(), "png")
data, metadata = _with_fallback(ipywidgets.IntSlider(), png.getvalue(), alt="A slider.")
display(data, metadata=metadata, raw=True)
"""


def test_stored_outputs_carry_no_marks_of_the_execution_and_a_picture_for_a_widget(tmp_path):
    source = _notebook(tmp_path / "n.ipynb", "1 + 1", WIDGET)
    target = tmp_path / "out" / "n.ipynb"
    _run_notebook(source, target)
    assert WIDGET_VIEW in nbformat.read(target, as_version=4).cells[1].outputs[0].data
    _store_outputs(target, source)
    stored = nbformat.read(source, as_version=4)
    assert stored.cells[0].outputs[0].data["text/plain"] == "2" and stored.cells[0].id == "c0"
    (output,) = stored.cells[1].outputs
    assert set(output.data) == {"image/png", "text/plain"}
    assert output.metadata["image/png"] == {"alt": "A slider.", "width": 4, "height": 3}
    once = source.read_text()
    assert "papermill" not in once and 'execution"' not in once and '"widgets"' not in once
    _store_outputs(target, source)
    assert source.read_text() == once
