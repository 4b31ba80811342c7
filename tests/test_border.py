"""The library needs gudhi, numpy, scipy and torch; above its border errors name what is missing."""

import re
import subprocess
import sys
from functools import cache
from importlib.metadata import distribution, packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_environment import CORE, ROOT

LIBRARY = """
import torch
from shrink_utils import geometry
from shrink_utils.topology import BarcodeRegularizer, barcode, prominent_features
from shrink_utils.training.gather import gathered_batch
from shrink_utils.training.penalties import PENALTIES

points, labels = torch.randn(32, 8), torch.arange(32) % 2
prominent_features(barcode(points, max_dim=1)[1].lengths)
options = {"ranked": {"keep": "longest"}, "regrouped": {"groups": "shuffled"}}
for name, term in PENALTIES.items():
    x = points.clone().requires_grad_()
    term(**options.get(name, {}))(x, labels).loss.backward()
    assert x.grad.isfinite().all() and x.grad.any(), name
assert geometry.iso_score(points) < 1 and geometry.cka(points, points) > 0.99
assert geometry.intra_sim(points, labels).value < 1 and geometry.pwcca(points, points) > 0.99
assert geometry.intrinsic_dimension(points) > 1
gathered_batch(torch.tensor(1.0), points, None)
"""


@cache
def _not_required() -> set[str]:
    """Modules of packages here that pip would not install with this one, or of rooms above."""
    required, waiting = set(), list(CORE)
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in required and (not requirement.marker or requirement.marker.evaluate()):
            required.add(name)
            waiting += map(Requirement, distribution(name).requires or [])
    ours = packages_distributions().items()
    others = {m for m, of in ours if required.isdisjoint(map(canonicalize_name, of))}
    # scipy takes a `sphinx` that was asked for as one that is there; `make book` installs it.
    return others - {"shrink_utils", "sphinx"}


def _alone(code: str, *also: str) -> subprocess.CompletedProcess:
    """Run code in a Python that lacks what this package does not require."""
    lacking = f"import sys\nfor name in {_not_required() | {*also}}: sys.modules.setdefault(name)\n"
    command = [sys.executable, "-c", lacking + code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_bars_measures_and_penalties_need_gudhi_numpy_scipy_and_torch_alone():
    assert {requirement.name for requirement in CORE} == {"gudhi", "numpy", "scipy", "torch"}
    assert {"pandas", "datasets"} <= _not_required()
    done = _alone(LIBRARY, "shrink_utils.study", "shrink_utils.models", "shrink_utils.text")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import shrink_utils.geometry.streaming", "streaming needs .*torchmetrics, .*[streaming]"),
        ("from shrink_utils.training import BarcodeTrainer", "BarcodeTrainer needs .*[study]"),
        ("from shrink_utils.models import load_encoder", "load_encoder needs .*[study]"),
        ("from shrink_utils.study import run_grid", "run_grid needs .*[study]"),
        ("from shrink_utils.__main__ import main; sys.exit(main(['claims']))", "[study]"),
    ],
)
def test_an_error_names_the_package_that_is_missing_and_the_extra_that_brings_it(code, error):
    done = _alone(code)
    pattern = error.replace("[", r"\[").replace("]", r"\]")
    assert done.returncode == 1 and re.search(pattern, done.stderr), done.stderr
