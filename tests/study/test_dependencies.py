"""What make and a run's identity rest on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from shrink_utils.study import dependencies
from shrink_utils.study.dependencies import code_version, module_closure, notebook_closure


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two rooms: study.top uses maths.a, which uses maths.b; maths.c stands alone."""
    files = {
        "__init__.py": "",
        "maths/__init__.py": (
            "from shrink_utils.maths.a import f\nfrom shrink_utils.maths.c import h\n"
        ),
        "maths/a.py": "from shrink_utils.maths.b import g\n\n\ndef f():\n    return g()\n",
        "maths/b.py": '"""B."""\n\n\ndef g():\n    """G."""\n    return 1  # one\n',
        "maths/c.py": "def h():\n    return 3\n",
        "study/__init__.py": "",
        "study/top.py": "def late():\n    from shrink_utils.maths import f\n    return f()\n",
    }
    for name, text in files.items():
        path = tmp_path / "shrink_utils" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(dependencies, "ROOT", tmp_path)
    return tmp_path / "shrink_utils"


def _names(paths, package):
    return {path.relative_to(package).as_posix() for path in paths}


def test_imports_are_followed_to_the_module_that_defines_the_name(package):
    found = _names(module_closure("shrink_utils.study.top"), package)
    assert found == {"study/top.py", "maths/__init__.py", "maths/a.py", "maths/b.py"}


def test_a_notebook_rests_on_what_its_code_cells_import(package, tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("from shrink_utils.maths import f"),
            nbformat.v4.new_code_cell("%matplotlib inline\nfrom shrink_utils.maths import h\nh()"),
        ]
    )
    path = tmp_path / "n.ipynb"
    nbformat.write(notebook, path)
    assert _names(notebook_closure(path), package) == {"maths/__init__.py", "maths/c.py"}


def test_the_code_version_ignores_comments_and_docstrings(package):
    before = code_version("shrink_utils.study.top")
    path = package / "maths" / "b.py"
    path.write_text(path.read_text().replace("# one", "# two").replace("G.", "Gee."))
    assert code_version("shrink_utils.study.top") == before


def test_the_code_version_follows_the_code_below_and_nothing_else(package):
    before = code_version("shrink_utils.study.top")
    (package / "maths" / "c.py").write_text("def h():\n    return 4\n")
    assert code_version("shrink_utils.study.top") == before
    path = package / "maths" / "b.py"
    path.write_text(path.read_text().replace("return 1", "return 2"))
    assert code_version("shrink_utils.study.top") != before


def test_a_run_rests_on_its_mathematics_and_not_on_the_figures():
    closure = module_closure("shrink_utils.training.finetune")
    found = {path.name for path in closure}
    assert {"barcodes.py", "selection.py", "regularizer.py", "trainer.py", "tasks.py"} <= found
    assert not {"figures.py", "tables.py"} & found
    claims = dependencies.ROOT / "shrink_utils" / "study" / "claims"
    assert claims.is_dir() and claims not in {path.parent for path in closure}


def test_make_gets_its_rules_from_a_bare_interpreter():
    script = Path(dependencies.__file__)
    rules = subprocess.run(
        [sys.executable, "-S", "-I", str(script), "--out", "results/x"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    ablation = next(line for line in rules.splitlines() if "notebooks/07_ablation.ipynb:" in line)
    assert "results/x/ablation.complete" in ablation
    for chapter in ("01_isotropy", "04_barcodes", "06_finetuning"):  # these train what they read
        alone = next(line for line in rules.splitlines() if f"notebooks/{chapter}.ipynb:" in line)
        assert "ablation.complete" not in alone
