"""The benchmark runs and prints what it is there for."""

from __future__ import annotations

import re
import runpy
from pathlib import Path


def test_the_benchmark_prints_time_and_memory(capsys):
    script = runpy.run_path(str(Path(__file__).with_name("streaming.py")))
    script["main"](["--sentences", "70", "--model", "tiny-random", "--threads", "1"])
    printed = capsys.readouterr().out
    numbers = {
        name: float(re.search(rf"^{name} +([\d.]+) ", printed, re.MULTILINE).group(1))
        for name in ("forward passes alone", "with all accumulators", "ratio", "accumulators")
    }
    forward, whole = numbers["forward passes alone"], numbers["with all accumulators"]
    half = 0.0005  # of the last digit printed: the passes of a tiny encoder take milliseconds
    assert forward > half and whole > half
    least, most = (whole - half) / (forward + half), (whole + half) / (forward - half)
    assert least - half <= numbers["ratio"] <= most + half
    assert 0 < numbers["accumulators"] < 1
    assert "70 sentences, 3 layers, 1 thread(s)" in printed
