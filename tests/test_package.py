"""What the wheel holds."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import shrink_utils

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
