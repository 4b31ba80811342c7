"""The benchmark runs and prints its table; the published algorithm is transcribed right."""

import runpy
from pathlib import Path

import pytest
import torch

from shrink_utils.topology import BarcodeRegularizer

pytestmark = pytest.mark.nightly


@pytest.fixture
def script():
    """The names of the script."""
    return runpy.run_path(str(Path(__file__).with_name("regularizer.py")))


def test_the_benchmark_prints_a_row_per_way_and_draws(script, capsys, tmp_path):
    script["main"](["--sizes", "16", "40", "--out", str(tmp_path / "speed.png")])
    rows = capsys.readouterr().out.splitlines()
    for name in ("ours", "ours, all bars", "published", "gudhi (forward)", "torch.cdist (forward)"):
        found = [row for row in rows if row.startswith(f"{name}  ")]
        assert len(found) == 2  # milliseconds, and times of torch.cdist
        assert all(float(number) > 0 for row in found for number in row.split()[-2:])
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")


def test_the_transcription_is_the_published_method(script):
    points = torch.randn(40, 32, dtype=torch.float64)
    x, y = (points.clone().requires_grad_() for _ in range(2))
    theirs, ours = script["published"](x), BarcodeRegularizer(rule="published")(y).loss
    assert theirs.item() == pytest.approx(ours.item(), rel=1e-6)
    theirs.backward()
    ours.backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-5, atol=1e-8)
