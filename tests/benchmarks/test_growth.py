"""The benchmark runs and prints what docs/plan.md rests on."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest


def test_the_benchmark_prints_growth(capsys):
    script = runpy.run_path(str(Path(__file__).with_name("growth.py")))
    script["SHAPES"].clear()
    script["SHAPES"]["small"] = (1, 24, 2)
    options = ["--rows", "4096", "--widths", "8", "--repeats", "1", "--sentences", "200"]
    script["main"](options)
    printed = capsys.readouterr().out
    assert len(re.findall(r"slope [\d.]+, [\d.]+ µs a row, ", printed)) == 4
    assert re.search(r"exponents 0\.\d+ and \d\.\d+", printed)
    assert re.search(r"small: \d+\.\d GFLOP forward and backward", printed)
    assert re.search(r"recorder \d+\.\d ms", printed)


def test_a_power_law_has_its_exponent_as_slope():
    script = runpy.run_path(str(Path(__file__).with_name("growth.py")))
    assert script["slope"]([1, 2, 4], [3, 12, 48]) == pytest.approx(2)
