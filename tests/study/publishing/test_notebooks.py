"""Headless execution: whole, or kept as failed; storing changes outputs and nothing else."""

import threading
import time

import nbformat
import pytest

from shrink_utils.names import WIDGET_VIEW
from shrink_utils.study.publishing.notebooks import run_notebook, store_outputs
from shrink_utils.study.results import file_lock


def _notebook(path, *sources):
    cells = [nbformat.v4.new_code_cell(source, id=f"c{i}") for i, source in enumerate(sources)]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
    return path


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")  # execute sets it; give it back afterwards
    monkeypatch.setenv("TQDM_DISABLE", "1")


def test_an_executed_notebook_is_written_whole_and_its_kernel_takes_no_port(tmp_path):
    asked = "from ipykernel.kernelapp import IPKernelApp; print(IPKernelApp.instance().transport)"
    source = _notebook(tmp_path / "n.ipynb", "import os; print(os.getcwd())", asked)
    target = tmp_path / "out" / "n.ipynb"
    assert run_notebook(source, target) > 0
    assert [path.name for path in target.parent.iterdir()] == ["n.ipynb"]
    where, port = (cell.outputs[0].text for cell in nbformat.read(target, as_version=4).cells)
    assert where.strip() == str(tmp_path)  # as in Jupyter
    assert port.strip() == "ipc"  # another execution might have found the same port


def test_a_failing_notebook_is_kept_and_the_last_good_one_left(tmp_path):
    target = tmp_path / "out" / "n.ipynb"
    run_notebook(_notebook(tmp_path / "n.ipynb", "1 + 1"), target)
    good = target.read_bytes()
    failing = _notebook(tmp_path / "n.ipynb", "print('so far')", "1 / 0")
    with pytest.raises(RuntimeError, match=r"n\.ipynb, cell 2: ZeroDivisionError"):
        run_notebook(failing, target)
    assert target.read_bytes() == good
    assert "so far" in (target.parent / "n.failed.ipynb").read_text()
    run_notebook(_notebook(tmp_path / "n.ipynb", "1 + 1"), target)
    assert [path.name for path in target.parent.iterdir()] == ["n.ipynb"]


def test_of_two_executions_of_a_notebook_the_second_waits(tmp_path):
    source, target = _notebook(tmp_path / "n.ipynb", "1 + 1"), tmp_path / "out" / "n.ipynb"
    held, done = threading.Event(), []

    def first():
        with file_lock(target):
            held.set()
            time.sleep(1)
            done.append(target.exists())

    other = threading.Thread(target=first)
    other.start()
    held.wait()
    run_notebook(source, target)
    assert done == [False] and target.is_file()
    other.join()


WIDGET = """
import ipywidgets
from IPython.display import display
from shrink_utils.study.figures import with_fallback
import io, PIL.Image
PIL.Image.new("P", (8, 6)).save(png := io.BytesIO(), "png")
data, metadata = with_fallback(ipywidgets.IntSlider(), png.getvalue(), alt="A slider.")
display(data, metadata=metadata, raw=True)
"""


def test_stored_outputs_carry_no_marks_of_the_execution_and_a_picture_for_a_widget(tmp_path):
    source = _notebook(tmp_path / "n.ipynb", "1 + 1", WIDGET)
    target = tmp_path / "out" / "n.ipynb"
    run_notebook(source, target)
    assert WIDGET_VIEW in nbformat.read(target, as_version=4).cells[1].outputs[0].data
    store_outputs(target, source)
    stored = nbformat.read(source, as_version=4)
    assert stored.cells[0].outputs[0].data["text/plain"] == "2" and stored.cells[0].id == "c0"
    (output,) = stored.cells[1].outputs
    assert set(output.data) == {"image/png", "text/plain"}
    assert output.metadata["image/png"] == {"alt": "A slider.", "width": 4, "height": 3}
    once = source.read_text()
    assert "papermill" not in once and 'execution"' not in once and '"widgets"' not in once
    run_notebook(source, target)
    store_outputs(target, source)
    assert source.read_text() == once
