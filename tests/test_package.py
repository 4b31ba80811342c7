"""The wheel: what it holds, and what it does in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import shrink_utils
from tests.test_environment import CORE

pytestmark = pytest.mark.nightly
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def packed(tmp_path_factory, clone_into):
    """The folder of the wheel, made of a copy of the repository."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("source", "packed"))
    clone_into(source)
    command = [sys.executable, "-c", BUILD, str(target)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return target


def test_the_wheel_holds_the_package_and_nothing_else(packed):
    (wheel,) = packed.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in names} == {
        "shrink_utils",
        f"shrink_utils-{shrink_utils.__version__}.dist-info",
    }
    root = Path(shrink_utils.__file__).parents[1]
    kinds = ("*.py", "*.pyi", "*.toml", "py.typed")
    files = {
        p.relative_to(root).as_posix() for k in kinds for p in root.glob(f"shrink_utils/**/{k}")
    }
    assert {name for name in names if name.startswith("shrink_utils/")} == files


def _closure(requirements):
    """Distributions that pip would install for these requirements, here and now."""
    found, waiting = {}, list(requirements)
    while waiting:
        requirement = waiting.pop()
        if requirement.name in found or (requirement.marker and not requirement.marker.evaluate()):
            continue
        found[requirement.name] = distribution(requirement.name)
        waiting += map(Requirement, found[requirement.name].requires or [])
    return found.values()


def _environment(folder, requirements):
    """The Python of an environment with these packages and what they require, and no other package.

    The packages, and pip, are links to those of this environment: nothing is downloaded.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in _closure([*requirements, Requirement("pip")]):
        tops = {file.parts[0] for file in package.files or [] if file.parts[0] not in ("..", "/")}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(package.locate_file(top)))
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def empty_environment(packed, tmp_path_factory):
    """The Python of an environment with the wheel and what it requires, and no other package."""
    python = _environment(tmp_path_factory.mktemp("environment"), CORE)
    (wheel,) = packed.glob("*.whl")
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", "install", *options, str(wheel)], check=True)
    return python


def _call(python, *arguments, cwd):
    """In isolation (-I): neither PYTHONPATH nor the working folder leads to this package."""
    return subprocess.run([python, "-I", *arguments], cwd=cwd, capture_output=True, text=True)


@pytest.mark.parametrize(
    "call",
    [
        "from shrink_utils.topology import BarcodeRegularizer\n"
        "points = torch.randn(32, 8, requires_grad=True)\n"
        "BarcodeRegularizer()(points, torch.arange(32) % 2).loss.backward()\n"
        "assert points.grad.isfinite().all()",
        "from shrink_utils.geometry import cka\nassert cka(torch.eye(9), torch.eye(9)) > 0.99",
        "from shrink_utils.training.penalties import AverageCosine\n"
        "AverageCosine()(torch.randn(32, 8), torch.arange(32) % 2)",
        "from shrink_utils.training.gather import whole_batch\n"
        "whole_batch(torch.tensor(1.0), torch.randn(4, 3), None)",
    ],
    ids=["regularizer", "measures", "penalties", "gather"],
)
def test_the_wheel_alone_keeps_the_promises_of_the_readme(empty_environment, tmp_path, call):
    done = _call(empty_environment, "-c", f"import torch\n{call}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["-c", "import shrink_utils.geometry.streaming"], "torchmetrics"),
        (["-m", "shrink_utils", "claims"], "pip install '.[study]'"),
    ],
)
def test_what_needs_an_extra_says_so(empty_environment, tmp_path, arguments, extra):
    done = _call(empty_environment, *arguments, cwd=tmp_path)
    assert done.returncode == 1 and extra in done.stderr
