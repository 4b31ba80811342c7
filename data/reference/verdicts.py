"""Write docs/verdicts.md, the verdicts of every fixed analysis: ``python verdicts.py``.

Each analysis keeps its table as ``hypotheses.csv`` in a folder beside this file.
"""

from pathlib import Path

from shrink_utils.study.claims.report import read_hypotheses

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "verdicts.md"
ANALYSES = {  # folder: title, the page that fixed it
    "cohort": ("Twelve hypotheses about the regularizer", "preregistration.md"),
    "strength": ("Eight hypotheses at equal strength", "preregistration_strength.md"),
    "heldout": ("Fourteen hypotheses: held-out rows, and uses", "preregistration_heldout.md"),
    "objectives": ("Twelve hypotheses of three other papers", "preregistration_objectives.md"),
}
COLUMNS = ("hypothesis", "verdict", "difference", "simultaneous interval", "seeds", "p (Holm)")
INTRODUCTION = """\
# Verdicts

Each hypothesis was written down before its runs, with the rule that decides it. A difference is of
means, paired by seed: of a centred score (the share of variance along direction 1) or of accuracy,
both as fractions of 1; that of H12 is in steps. Its interval holds for all hypotheses of its family
at once. *Supported* means that the adjusted p is below .05; *equivalent*, that the whole interval
lies within the margin (.02 of accuracy, .044 of a score; the pages have the others). *Less* is a
difference below 0 where either sign was possible. *Open* means undecided (U7 and U8: only against
the plain model; a free control is better than either arm).

The third analysis has two families. Differences of E1, E5 and E6 are of a centred score, of E2 and
E3 of accuracy, of E4 of loss in nats. Those of U1 to U8 are an arm's minus the plain model's, of
overlap (U1, U2), shares of rows (U3 to U6) or area (U7, U8). *Good for* means above the plain model
*and* above the free controls that the page names; U6 is *worse* than the plain model. Those of U1
and U2 are centring and rotation. Whitening, which was described beside, has .08 more overlap than
U1's arm and .13 more than U2's ([13](../notebooks/13_what_for.ipynb)).

The fourth analysis asks what Vázquez et al. (V, S), Brown et al. (B) and Rajaee & Pilehvar (R)
claim, of small models trained from nothing on real text (R: of the pretrained encoder). V1 to V3
are shares of steps, V4 of a loss change, S1, S2 and B1 to B3 similarities, S3 and B4 losses in
nats, R1 a number of directions. *As the paper* and *opposite* are signs with an adjusted p below
.05; three seeds decide large effects only. [10](../notebooks/10_training_dynamics.ipynb) reads V,
[08b](../notebooks/08b_comparing_spaces.ipynb) S,
[09](../notebooks/09_stitching.ipynb) B,
[08](../notebooks/08_geometry_after_finetuning.ipynb) R.

`data/reference/verdicts.py` writes this page from the tables beside it. S2, S6 and S8 lie at an
edge: the *Deviations* of their analysis and [07b](../notebooks/07b_equal_strength.ipynb) say what
would turn them. All runs of the second analysis were made once more, on one GPU with the same seeds
(exploratory): S4 and S5 are then *more*, S6 is *open*, and the others are as they stand here. What
a GPU had made came out the same, to the last digit: of the sixteen runs of S6 and S8, one is new.
"""


def table(folder: str) -> str:
    """Of Markdown."""
    rows = read_hypotheses(folder)[[*COLUMNS]].to_numpy().tolist()
    lines = [COLUMNS, ["---"] * len(COLUMNS), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def page() -> str:
    """The whole page; an analysis without a table has not been run."""
    parts = [INTRODUCTION]
    for folder, (title, fixed) in ANALYSES.items():
        parts.append(f"## {title}\n\n[Fixed before the runs]({fixed}), records `{folder}`.\n")
        decided = (HERE / folder / "hypotheses.csv").exists()
        parts.append((table(folder) if decided else "Not yet run.") + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
