"""What rounding decides is found in a checked cell, and what it does not is left alone."""

import re

import nbformat

TIES = (
    'print(f"{np.mean([1.0, 0.75]):.2f}")',  # 7/8: chapter 03 once printed .88 or .87
    "print(round(np.sqrt(0.765625), 2))",
    "print(np.array([0.125, 0.3]).round(2))",
    'print("{:.1%}".format(0.1245))',
    'print("%.1f" % (1 / 4))',
    'pd.DataFrame({"a": [0.375]}).round(2)',
    'print(pd.Series([0.625]).to_string(float_format="{:.2f}".format))',
    'def shown(x):\n    return "{} to {}".format(*(format(v, "+.1f") for v in (x, -x)))\n\n\n'
    "print(shown(0.25))",
    "x = np.array([1.0, 2.0, 2.0]) / 3\nprint((x >= x[1]).sum(), 'orders reach it')",
    "print(torch.tensor([1 / 3, 2 / 3]).sum().mul(0.3).item())",
    "print(np.array([0.1 + 0.2, 0.3]).argmax())",
    'print(f"{np.float32(2.5):.0f} texts")',
)
STEADY = (
    'print(f"{7 / 8:.3f}", round(1 / 3, 3), np.array([1 / 3]).round(4), (np.ones(3) / 3).round(2))',
    'x = np.ones(3) / 3\nprint((x >= x[1] - 1e-9).sum(), f"{len(x)} of {3.0:.0f}", 6.0, 0.25)',
    'pd.DataFrame({"a": [1 / 3], "b": ["x"]}).round(3)',
    'print(np.array([3.0, 1.0, 2.0]).argsort(), " ".join(f"{x:.1f}" for x in (0.1, 0.2)))',
)


def test_twelve_planted_ties_are_found_and_nothing_else(tmp_path, nbval):
    cells = [f"# NBVAL_CHECK_OUTPUT\n{source}" for source in (*TIES, *STEADY)]
    new = nbformat.v4.new_code_cell
    marked = [new(c, outputs=[nbformat.v4.new_output("stream", text="")]) for c in cells]
    first = new("import numpy as np, pandas as pd, torch")
    unmarked = new('print(f"{np.mean([1.0, 0.75]):.2f}")')
    path = tmp_path / "ties.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[first, unmarked, *marked]), path)
    told = nbval(path).stdout.partition(" short test summary ")[0]  # which CI does not shorten
    parts = dict(
        zip(*[iter(re.split(r"_+ ties\.ipynb::Cell (\d+) _+\n", told)[1:])] * 2, strict=True)
    )
    found = {int(n) for n, part in parts.items() if "rounding decides" in part}
    assert found == set(range(2, 2 + len(TIES))), told[-3000:]
