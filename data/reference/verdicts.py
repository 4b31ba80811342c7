"""Write docs/verdicts.md, the verdicts of every fixed analysis: ``python verdicts.py``.

Each analysis keeps its table as ``hypotheses.csv`` in a folder beside this file.
"""

import csv
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "verdicts.md"
ANALYSES = {  # folder: title, the page that fixed it
    "cohort": ("Twelve hypotheses about the regularizer", "preregistration.md"),
    "strength": ("Eight hypotheses at equal strength", "preregistration_strength.md"),
    "heldout": ("A third analysis, on held-out rows", "preregistration_heldout.md"),
}
COLUMNS = ("hypothesis", "verdict", "difference", "simultaneous interval", "seeds", "p (Holm)")
INTRODUCTION = """\
# Verdicts

Each hypothesis was written down before its runs, with the rule that decides it. A difference is of
means, paired by seed: of a centred score (the share of variance along direction 1) or of accuracy,
both as fractions of 1; that of H12 is in steps. Its interval holds for all hypotheses of its table
at once. *Supported* means that chance is ruled out; *equivalent*, that the whole interval lies
within the margin (.02 of accuracy, .044 of a score). *Less* is a difference below 0 where either
sign was possible. *Open* means undecided.

`data/reference/verdicts.py` writes this page from the tables beside it. S2, S6 and S8 lie at an
edge: the *Deviations* of their analysis and [07](../notebooks/07_ablation.ipynb) say what would
turn them.
"""


def table(rows: list[dict[str, str]]) -> str:
    """Of Markdown."""
    lines = [COLUMNS, ["---"] * len(COLUMNS), *([row[key] for key in COLUMNS] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def page() -> str:
    """The whole page; an analysis without a table has not been run."""
    parts = [INTRODUCTION]
    for folder, (title, fixed) in ANALYSES.items():
        parts.append(f"## {title}\n\n[Fixed before the runs]({fixed}), profile `{folder}`.\n")
        path = HERE / folder / "hypotheses.csv"
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                parts.append(table(list(csv.DictReader(file))) + "\n")
        else:
            parts.append("Not yet run.\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
