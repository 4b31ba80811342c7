"""Claims of this study: is topology what helps? Prominent bars less another arm.

At equal weights arms differ in strength, since a nat of entropy and a unit of cosine are no common
currency; so they are also compared where they are equally strong, at the anisotropy that prominent
bars reach. All bars at equal weights are rows of STL: ``lowers-centred-of-all``.
"""

from collections.abc import Iterator
from functools import partial

import pandas as pd

from shrink_utils.study.ablation import TASK_OF_MODEL, interpolate_frontier, sweep_of
from shrink_utils.study.claims.claim import MARGIN, Claim, evaluated, per_seed
from shrink_utils.study.claims.stl import ARM, with_grades

NEAREST_AT_MOST = 0.25  # of the seeds, whose sweep does not pass the score: as docs/preregistration
OTHERS = {  # what prominent bars are compared with
    "random": "the same number of random bars",
    "all": "all bars",
    "cosine": "the average cosine",
    "isoscore": "IsoScore★",
    "spectral": "spectral entropy",
}
CALIBRATIONS = ("cosine", "isoscore", "spectral")  # rewards of isotropy without bars


@evaluated
def topology_claims(frontier: pd.DataFrame, *, weight: float = 1.0) -> Iterator[Claim]:
    """Prominent bars against other arms, at the weight of the grid; from `frontier_table`.

    Without a sweep there are no claims.

    Raises
    ------
    ValueError
        If an arm lacks a seed that the prominent bars have, or they one of an arm's (`evaluate`).
    """
    for (model, task), rows in with_grades(frontier).groupby(TASK_OF_MODEL, sort=False):
        ours = rows[(rows.arm == ARM) & (rows.weight == weight)]
        if ours.empty:
            continue
        claim = partial(Claim, source="ours", kind="our control", task=task, arm=ARM)
        for other in OTHERS:
            if other in set(rows.arm):
                yield from _beside(claim, f"{model}:{task}", rows, ours, other)
        for other in CALIBRATIONS:
            if other in set(rows.arm):
                yield _calibration(claim, f"{model}:{task}", rows, other)
        yield from _stronger(claim, f"{model}:{task}", rows, weight)


def _beside(
    claim: partial, cell: str, rows: pd.DataFrame, ours: pd.DataFrame, other: str
) -> Iterator[Claim]:
    weight, metric = ours.weight.iloc[0], ours.metric.iloc[0]
    spoken, each = OTHERS[other], f"at weight {weight:g}"
    theirs = rows[(rows.arm == other) & (rows.weight == weight)]
    if missing := sorted(set(ours.seed) - set(rows.seed[rows.arm == other])):
        lacking = f"frontier: {other} lacks the seeds {missing} of {ARM} on {cell}"
        raise ValueError(f"{lacking}; run it too")
    score, graded = per_seed(ours, "centred_1"), per_seed(ours, "graded")
    if len(theirs) and other != "all":
        statement = f"prominent bars lower the first centred score more than {spoken}, {each} each"
        lower = score - per_seed(theirs, "centred_1")
        yield claim(f"topology:lowers-more:{cell}:{other}", statement, "less", lower)
    if len(theirs):
        statement = f"{metric} with prominent bars is no worse (by {MARGIN}) than with {spoken}, "
        kept = graded - per_seed(theirs, "graded")
        name = f"topology:metric-no-worse:{cell}:{other}"
        yield claim(name, f"{statement}{each} each", "no_worse", kept)
    sweep = dict(list(sweep_of(rows, other).groupby("seed")))
    places = {
        seed: interpolate_frontier(sweep[seed].centred_1, score[seed]) for seed in score.index
    }
    matched = pd.Series({seed: place.of(sweep[seed].graded) for seed, place in places.items()})
    missed = sum(not place.passed for place in places.values())
    # The rule of the hypotheses: at its nearest point an arm is weaker or stronger than prominent
    # bars, so the difference there nearly repeats that of the grid.
    tested = missed / len(places) <= NEAREST_AT_MOST
    note = f" (none does in {missed} of {len(places)} seeds: the nearest is taken"
    note += ")" if tested else ", so this is not tested)"
    statement = (
        f"at the first centred score that prominent bars reach {each}, {metric} is higher than "
        f"with {spoken} of the weight that reaches it{note if missed else ''}"
    )
    direction = "greater" if tested else "described"
    yield claim(f"topology:matched:{cell}:{other}", statement, direction, graded - matched)


def _calibration(claim: partial, cell: str, rows: pd.DataFrame, other: str) -> Claim:
    """Ding et al., as STL cite them: no calibration of isotropy helps consistently."""
    theirs, plain = rows[rows.arm == other], rows[rows.arm == "none"]
    best = theirs.groupby("weight").value.mean().idxmax()
    gained = per_seed(theirs[theirs.weight == best], "graded")
    return claim(
        f"topology:calibration:{cell}:{other}",
        f"the best weight of {OTHERS[other]} does not raise {rows.metric.iloc[0]} above plain "
        f"fine-tuning's (a gain of up to {MARGIN} is none)",
        "no_worse",
        per_seed(plain, "graded")[gained.index] - gained,
        source="STL §2, after Ding et al.",
        kind="analogue",
        arm=other,
        tries=theirs.weight.nunique(),
    )


def _stronger(claim: partial, cell: str, rows: pd.DataFrame, weight: float) -> Iterator[Claim]:
    """Selected bars beside all at the sweep's larger weights: no interpolation."""
    swept = rows[(rows.weight > weight) & rows.arm.isin([ARM, "all"])]
    for stronger, both in swept.groupby("weight"):
        of = dict(list(both.groupby("arm")))
        if len(of) == 2:
            apart = (per_seed(of[ARM], "centred_1") - per_seed(of["all"], "centred_1")).mean()
            yield claim(
                f"topology:metric-above-all:{cell}:{stronger:g}",
                f"{both.metric.iloc[0]} is higher with prominent bars than with all, at weight "
                f"{stronger:g} each (their centred scores differ by {apart:+.3f})",
                "greater",
                per_seed(of[ARM], "graded") - per_seed(of["all"], "graded"),
                source="ours, after STL's second hypothesis",
            )
