"""What the wheel holds, and what the package does where only its requirements are installed."""

import subprocess
import sys
import zipfile
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import shrink_utils
from tests.test_environment import CORE, ROOT

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


def _not_required() -> set[str]:
    """Modules of packages here that pip would not install with this one."""
    required, waiting = set(), list(CORE)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in required and (not requirement.marker or requirement.marker.evaluate()):
            required.add(name)
            waiting += map(Requirement, distribution(name).requires or [])
    return {
        module
        for module, of in packages_distributions().items()
        if required.isdisjoint(map(canonicalize_name, of))
    } - {"shrink_utils"}


def _call(code):
    """Run code in a Python that lacks what this package does not require."""
    lacking = f"import sys\nfor name in {_not_required()}: sys.modules.setdefault(name)\n"
    command = [sys.executable, "-c", lacking + code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


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
        "from shrink_utils.training.gather import gathered_batch\n"
        "gathered_batch(torch.tensor(1.0), torch.randn(4, 3), None)",
    ],
    ids=["regularizer", "measures", "penalties", "gather"],
)
def test_the_package_alone_keeps_the_promises_of_the_readme(call):
    done = _call(f"import torch\n{call}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("import shrink_utils.geometry.streaming", "torchmetrics"),
        ("from shrink_utils.__main__ import main; sys.exit(main(['claims']))", "'.[study]'"),
    ],
)
def test_what_needs_an_extra_says_so(code, extra):
    done = _call(code)
    assert done.returncode == 1 and extra in done.stderr
