"""What every test shares: few threads, no hub, no progress bars, clones of this repository."""

import gc
import os

# Before anything imports torch, transformers or datasets: they read these once.
os.environ.update(
    OMP_NUM_THREADS=os.environ.get("SHRINK_TEST_THREADS", "1"),  # try 2: sums are then cut in two
    MKL_NUM_THREADS=os.environ.get("SHRINK_TEST_THREADS", "1"),
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    TOKENIZERS_PARALLELISM="false",
    TQDM_DISABLE="1",
    MPLBACKEND="agg",
    CUDA_VISIBLE_DEVICES="",  # tests hold bits of a processor; a GPU draws other numbers
)

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=30, derandomize=True, **_COMMON)
# Other clouds every night; what fails is printed with the line that repeats it.
settings.register_profile("nightly", max_examples=10_000, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def pytest_collection_modifyitems(items):
    # The longest first: a worker that began them last would leave the other one idle.
    items.sort(
        key=lambda item: (item.path.stem != "test_end_to_end", "end_to_end" not in item.keywords)
    )


def pytest_collection_finish():
    # The Trainer collects garbage after every training, and would look through all tests for .6 s.
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def run_make(*words, cwd=ROOT, **variables) -> subprocess.CompletedProcess:
    """`make` as in a shell of its own: it inherits nothing of a `make test` that runs this."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--no-print-directory", *words]
    return subprocess.run(command, cwd=cwd, env=kept | variables, capture_output=True, text=True)


@pytest.fixture(scope="session")
def study_environment():
    """The variables of a shell in which `make` runs a clone's own package, and nothing is set."""

    def variables(clone: Path) -> dict[str, str]:
        ours = ("SHRINK_", "PYTEST", "MAKE", "HYPOTHESIS")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        return {**kept, "PYTHONPATH": str(clone), "JOBS": "2"}  # notebooks at once

    return variables


@pytest.fixture(scope="session")
def start_study(study_environment):
    """Begin `make reproduce` of profile smoke in a clone, in a session of its own to be killed."""

    def start(clone: Path, *, output: int = subprocess.PIPE) -> subprocess.Popen:
        return subprocess.Popen(
            ["make", "PROFILE=smoke", "reproduce"],
            cwd=clone,
            env=study_environment(clone),
            stdout=output,
            stderr=output,
            text=True,
            start_new_session=True,
        )

    return start


@pytest.fixture(scope="session")
def clone_into():
    """Copy the working tree into a new folder, with this environment and the fetched data."""

    def copy(root: Path) -> Path:
        command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, root / name)
        (ROOT / "data" / "raw").mkdir(exist_ok=True)  # before anything was fetched into it
        (root / ".venv").symlink_to(ROOT / ".venv")
        (root / "data" / "raw").symlink_to(ROOT / "data" / "raw")
        return root

    return copy
