"""Claims of this study: is topology what helps? Prominent bars less another arm.

At equal weights arms differ in strength, since a nat of entropy and a unit of cosine are no common
currency; so they are also compared where they are equally strong, at the anisotropy that prominent
bars reach. All bars at equal weights are rows of STL: ``lowers-centred-of-all``.
"""

from collections.abc import Iterator

import pandas as pd

from shrink_utils.study.ablation import _sweep_of, interpolate_frontier
from shrink_utils.study.claims.claim import _as_table, _per_seed, claim
from shrink_utils.study.claims.stl import ARM
from shrink_utils.study.run_tables import TASK_OF_MODEL

NEAREST_AT_MOST = 0.25  # of the seeds, whose sweep does not pass the score: as docs/preregistration
OTHERS = {  # what prominent bars are compared with
    "random": "the same number of random bars",
    "all": "all bars",
    "cosine": "the average cosine",
    "isoscore": "IsoScore★",
    "spectral": "spectral entropy",
}
CALIBRATIONS = ("cosine", "isoscore", "spectral")  # rewards of isotropy without bars


@_as_table
def _topology_claims(frontier: pd.DataFrame, *, weight: float = 1.0) -> Iterator[dict]:
    """Prominent bars against other arms, at the weight of the grid; from `_frontier_table`.

    Without a sweep there are no claims.

    Raises
    ------
    ValueError
        If an arm lacks a seed that the prominent bars have, or they one of an arm's (`claim`).
    """
    for (model, task), rows in frontier.groupby(TASK_OF_MODEL, sort=False):
        ours = rows[(rows.arm == ARM) & (rows.weight == weight)]
        if ours.empty:
            continue
        about = {"cell": f"{model}:{task}", "task": task, "metric": rows.metric.iloc[0]}
        for other in OTHERS:
            if other in set(rows.arm):
                yield from _beside(about, rows, ours, other)
        for other in CALIBRATIONS:
            if other in set(rows.arm):
                yield _calibration(about, rows, other)
        yield from _stronger(about, rows, weight)


def _beside(
    about: dict[str, str], rows: pd.DataFrame, ours: pd.DataFrame, other: str
) -> Iterator[dict]:
    if missing := sorted(set(ours.seed) - set(rows.seed[rows.arm == other])):
        cell = ":".join(rows[TASK_OF_MODEL].iloc[0])
        lacking = f"frontier: {other} lacks the seeds {missing} of {ARM} on {cell}"
        raise ValueError(f"{lacking}; run it too")
    weight = ours.weight.iloc[0]
    about = about | {"arm": ARM, "other": other, "spoken": OTHERS[other], "weight": weight}
    theirs = rows[(rows.arm == other) & (rows.weight == weight)]
    score, graded = _per_seed(ours, "centred_1"), _per_seed(ours, "graded")
    if len(theirs) and other != "all":
        less = score - _per_seed(theirs, "centred_1")
        yield claim("topology:lowers-more", less, **about)
    if len(theirs):
        more = graded - _per_seed(theirs, "graded")
        yield claim("topology:metric-no-worse", more, **about)
    sweep = dict(list(_sweep_of(rows, other).groupby("seed")))
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
    words = {"direction": "greater" if tested else "described", "note": note if missed else ""}
    yield claim("topology:matched", graded - matched, **words, **about)


def _calibration(about: dict[str, str], rows: pd.DataFrame, other: str) -> dict:
    """Ding et al., as STL cite them: no calibration of isotropy helps consistently."""
    theirs, plain = rows[rows.arm == other], rows[rows.arm == "none"]
    best = theirs.groupby("weight").value.mean().idxmax()
    gained = _per_seed(theirs[theirs.weight == best], "graded")
    lost = _per_seed(plain, "graded")[gained.index] - gained
    tries = theirs.weight.nunique()
    words = {"arm": other, "spoken": OTHERS[other], "tries": tries}
    return claim("topology:calibration", lost, **words, **about)


def _stronger(about: dict[str, str], rows: pd.DataFrame, weight: float) -> Iterator[dict]:
    """Selected bars beside all at the sweep's larger weights: no interpolation."""
    swept = rows[(rows.weight > weight) & rows.arm.isin([ARM, "all"])]
    for stronger, both in swept.groupby("weight"):
        arms = dict(list(both.groupby("arm")))
        if len(arms) == 2:
            apart, more = (
                _per_seed(arms[ARM], column) - _per_seed(arms["all"], column)
                for column in ("centred_1", "graded")
            )
            words = {"arm": ARM, "stronger": stronger, "apart": apart.mean()}
            yield claim("topology:metric-above-all", more, **words, **about)
