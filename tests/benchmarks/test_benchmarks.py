"""The benchmark runs and prints its tables; the published algorithm is transcribed right."""

import re
import runpy
from pathlib import Path

import pytest
import torch

from shrink_utils.topology import BarcodeRegularizer, h0_barcode, prominent_features

pytestmark = pytest.mark.nightly


@pytest.fixture
def script():
    """The names of the script."""
    return runpy.run_path(str(Path(__file__).with_name("regularizer.py")))


def test_the_benchmark_of_the_regularizer_prints_its_tables_and_draws(script, capsys, tmp_path):
    figure = tmp_path / "figures" / "speed.png"
    script["main"](["--sizes", "16", "40", "--repeats", "2", "--out", str(figure)])
    printed = capsys.readouterr().out
    for n in (16, 40):
        table = printed.split(f"\n{n} points")[1]
        for name in ("ours", "ours, all bars", "published", r"gudhi \*", r"torch.cdist \* ~"):
            row = re.search(rf"^  {name} +([\d.]+) ms +([\d.]+) ms +([\d.]+)", table, re.MULTILINE)
            median, least, ratio = map(float, row.groups())
            assert 0 < least <= median
            assert ratio > 0
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_the_transcription_is_the_published_method(script):
    points = torch.randn(40, 32, dtype=torch.float64)
    for name, selection in (("entropy_of_all", "all"), ("entropy_of_selected", "prominent")):
        x, y = (points.clone().requires_grad_() for _ in range(2))
        entropy = script[name](x)
        entropy.backward()
        loss = BarcodeRegularizer(selection, rule="published")(y).loss
        (-loss).backward()
        assert entropy.item() == pytest.approx(-loss.item(), rel=1e-6)
        torch.testing.assert_close(x.grad, y.grad, rtol=1e-5, atol=1e-8)
    lengths = h0_barcode(points).lengths
    bars = torch.cat([lengths[1:], lengths[:1]])
    kept = lengths[prominent_features(lengths, rule="published")]
    assert script["select"](bars).sort().values.tolist() == sorted(kept.tolist())
