"""What regularization does to fine-tuning: Kudriashov et al. 2025, *Shrink the longest* (STL).

Scores are of the last 30 % of the steps; rows whose name ends in ``-best`` are of the validation
rows at each run's epoch of least validation loss, which the paper does not look at. The arms
``prominent`` and ``published`` are two readings of the bars that STL call selected. Profile
``paper`` alone has the models and tasks of Table 3; where a study lacks them, the mean of the table
stands beside ours. With them Rajaee & Pilehvar 2021 (RP), Mickus, Grönroos & Attieh 2024 (MGA), and
this study's own claims on topology.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from shrink_utils.sources import data_dir
from shrink_utils.study.claims.claim import _as_table, _less, _most_favourable, _per_seed, claim
from shrink_utils.study.run_tables import RUN, TASK_OF_MODEL

ARM = "prominent"
TABLE3 = "STL Table 3"
SELECTED = (ARM, "published")
# Of an arm beside another one: the claim, that other arm, and the column of the runs.
QUESTIONS = [
    ("stl:lowers-centred-of-none", "none", "centred_1"),
    ("stl:lowers-centred-of-none-best", "none", "centred_1_best"),
    ("stl:lowers-raw-of-none", "none", "raw_1"),
    ("stl:lowers-raw-of-none-best", "none", "raw_1_best"),
    ("stl:metric-rises", "none", "graded"),
    ("stl:metric-rises-best", "none", "graded_best"),
    ("stl:metric-kept", "none", "graded"),
    ("stl:raises-centred-2", "none", "centred_2"),
    ("stl:raises-centred-3", "none", "centred_3"),
    ("stl:lowers-centred-of-all", "all", "centred_1"),
    ("stl:lowers-centred-of-all-best", "all", "centred_1_best"),
    ("stl:lowers-raw-of-all", "all", "raw_1"),
    ("stl:lowers-raw-of-all-best", "all", "raw_1_best"),
    ("stl:metric-above-all", "all", "graded"),
    ("stl:metric-above-all-best", "all", "graded_best"),
    ("stl:lowers-raw-2", "none", "raw_2"),
    ("stl:raises-raw-3", "none", "raw_3"),
    ("stl:lowers-three-centred", "none", "centred_three"),
    ("stl:lowers-three-raw", "none", "raw_three"),
    ("stl:converges-sooner", "none", "first_loss"),
]
DEPARTURES = (
    "AdamW, where STL use Adam; a constant rate after the warm-up, where their code has a cosine "
    "schedule"
)


def _with_sums(scores: pd.DataFrame) -> pd.DataFrame:
    """With ``centred_three`` and ``raw_three``, of the first three scores."""
    for space in ("centred", "raw"):
        three = scores[[f"{space}_{k}" for k in (1, 2, 3)]].sum(axis=1)
        scores = scores.assign(**{f"{space}_three": three})
    return scores


def _table3(model: str, task: str) -> tuple[pd.DataFrame, str]:
    """STL's Table 3 for a model and task, arms × ``centred_1``, …; and what to call it.

    ``centred_three`` and ``raw_three`` are the sums of three scores.

    Its own cell where it has the model and task, else a mean, which tells the size to expect and no
    more: its name then says of how many.
    """
    table = pd.read_csv(data_dir() / "published" / "stl_table3.csv")
    for column, own in zip(TASK_OF_MODEL, (model.rsplit("/", 1)[-1], task), strict=True):
        same = table[table[column] == own]
        table = same if len(same) else table
    scores = table.assign(name=table.space + "_" + table.k.astype(str))
    scores = scores.groupby(["arm", "name"]).score.mean().unstack()
    for arm in SELECTED:
        scores.loc[arm] = scores.loc["selected"]
    scores = _with_sums(scores)
    n_cells = len(table[TASK_OF_MODEL].drop_duplicates())
    return scores, TABLE3 if n_cells == 1 else f"{TABLE3}, mean of {n_cells}"


def _about_stl(model: str, task: str, arm: str, *, table3: str) -> dict[str, str]:
    """Words of a `claim` of an arm; only beside STL's own cell of Table 3 is one a paper's test."""
    kind, analogue = "paper's test" if table3 == TABLE3 else "scaled test", "analogue"
    if arm == "random":
        kind = analogue = "our control"
    words = {"kind": kind, "analogue": analogue, "table3": table3, "departures": DEPARTURES}
    return {"cell": f"{model}:{task}:{arm}", "task": task, "arm": arm} | words


@_as_table
def _stl_claims(graded: pd.DataFrame) -> Iterator[dict]:
    """On every model and task of the ablation; from `tables._graded_runs`."""
    for (model, task), runs in _with_sums(graded).groupby(TASK_OF_MODEL, sort=False):
        scores, name = _table3(model, task)
        for arm, rows in runs.groupby("arm", sort=False):
            about = _about_stl(model, task, arm, table3=name)
            if "late_change" in rows and rows.late_change.notna().all():
                # Validation loss stands still where STL average; ups and downs do not cancel.
                yield claim("stl:converged", -_per_seed(rows, "late_change").abs(), **about)
            if arm == "none":
                for space in ("centred", "raw"):
                    rise = _per_seed(rows, f"{space}_after") - _per_seed(rows, f"{space}_before")
                    yield claim(f"stl:rises-{space}", rise, **about)
            else:
                yield from _beside_others(about, rows, runs, scores)


def _beside_others(
    about: dict[str, str], rows: pd.DataFrame, runs: pd.DataFrame, scores: pd.DataFrame
) -> Iterator[dict]:
    """The `QUESTIONS` on an arm, with what Table 3 says to each."""
    arm, metric = about["arm"], rows.metric.iloc[0]
    others = {"none", "all"} if arm in SELECTED and "all" in set(runs.arm) else {"none"}
    for name, other, column in QUESTIONS:
        if other in others and column in runs:
            less, published = _less(rows, runs[runs.arm == other], column), math.nan
            if {arm, other} <= set(scores.index) and column in scores:
                published = scores.at[arm, column] - scores.at[other, column]
            yield claim(name, less, published=published, metric=metric, **about)


# --- what the last [CLS] vectors of a run show, before and after fine-tuning ----------------------

# Of the validation rows, which every fine-tuning run keeps: STL, Rajaee & Pilehvar (RP), and
# Mickus, Grönroos & Attieh 2024, *Isotropy, Clusters, and Classifiers* (arXiv 2402.03191; MGA).

ALIGNED = 0.9  # |cos|, within 26 degrees; ours, and exploratory: it was set after first results
YARDSTICKS = ("own", "pretrained")  # whose mean eigenvalue


@_as_table
def _clouds_claims(clouds: pd.DataFrame) -> Iterator[dict]:
    """On the table ``clouds``; RP's and MGA's on every arm."""
    for (model, task), rows in clouds.groupby(TASK_OF_MODEL, sort=False):
        yield from _of_stl(model, task, rows)
    # RP count eigenvalues above 5 times a mean. Whether the count rises depends on which mean.
    for yardstick in YARDSTICKS:
        for (model, task, arm), rows in clouds.groupby([*TASK_OF_MODEL, "arm"], sort=False):
            rise = _per_seed(rows, f"elongated_{yardstick}") - _per_seed(rows, "elongated_before")
            yield claim(f"rp:elongated-{yardstick}", rise, **_about_rp(model, task, arm))
    for (model, task), rows in clouds.groupby(TASK_OF_MODEL, sort=False):
        if rows.classes.iloc[0] > 1 and "none" in set(rows.arm) and rows.arm.nunique() > 1:
            # By seed: what the arms' silhouettes gain, with the sign of what IsoScore gains.
            wide = rows.pivot(index="seed", columns="arm", values=["isoscore", "silhouette"])
            isotropy, clusters = (
                wide[measure].drop(columns="none").sub(wide[measure]["none"], axis=0)
                for measure in ("isoscore", "silhouette")
            )
            conflict = (np.sign(isotropy) * clusters).mean(axis=1)
            yield claim("mga:conflict", conflict, cell=f"{model}:{task}", task=task)


def _of_stl(model: str, task: str, rows: pd.DataFrame) -> Iterator[dict]:
    name, of = _table3(model, task)[1], dict(list(rows.groupby("arm", sort=False)))
    for arm, own in of.items():
        about = _about_stl(model, task, arm, table3=name)
        if arm == "all" and ARM in of:
            # Bars are one class's; lengths scale with the cloud, so their logarithm is compared.
            yield claim("stl:shorter-tree", _less(own, of[ARM], "log_edge"), **about)
        if arm != "none" and own.classes.iloc[0] > 1 and "none" in of:
            yield claim("stl:clusters-kept", _less(own, of["none"], "silhouette"), **about)
            if arm in SELECTED and "all" in of:
                yield claim("stl:clusters-above-all", _less(own, of["all"], "silhouette"), **about)
        if own.classes.iloc[0] == 2:
            # STL speak of the classifier's hyperplane; its weights are not kept with the clouds.
            beyond = _per_seed(own, "class_cosine") - ALIGNED
            yield claim("stl:class-normal", beyond, aligned=ALIGNED, **about)


# --- Rajaee & Pilehvar 2021 (RP): geometry after fine-tuning, less that before ------------------

# RP study other tasks and no regularizer: the arm "none" repeats their question, the others extend
# it. Pretrained model and texts are the same for all seeds; a probe's halves are the seed's.

ISOTROPY = {
    "partition": "log I(W)",
    "partition-unit": "log I(W), unit norm",
    "isoscore": "IsoScore",
}
# Of chapter 08's ways to make a cloud isotropic, on fine-tuned vectors. (Subtracting the mean of
# the whole cloud changes nothing for a probe that standardizes: no row.)
TREATMENTS = {
    "cluster-means": ("clusters", 0),
    "global": ("global", 3),
    "clusters": ("clusters", 3),
}


@_as_table
def _rajaee_claims(table: pd.DataFrame, words: pd.DataFrame) -> Iterator[dict]:
    """From two tables of chapter 08."""
    yield from _not_necessarily(table[table.vectors == "cls"])
    drops = _accuracy_drops(table)
    lost = drops[(drops.vectors == "mean") & (drops.skipped == 0)]
    for short, (treatment, removed) in TREATMENTS.items():
        treated = lost[(lost.treatment == treatment) & (lost.removed == removed)]
        for about, after, _ in _arms(treated, "lost"):
            yield claim(f"rp:treatment-{short}", after, **about)
    # The dominant directions of the whole cloud, and as control the next ones.
    three = drops[(drops.treatment == "global") & (drops.removed == 3)]
    for vectors, (skipped, suffix) in product(("cls", "mean"), ((0, ""), (3, "-control"))):
        chosen = three[(three.vectors == vectors) & (three.skipped == skipped)]
        for about, after, before in _arms(chosen, "drop"):
            yield claim(f"rp:removal-{vectors}{suffix}", after - before, **about)
    last = words[(words.layer == words.layer.max()) & (words.labels == "true")]
    for probe in ("frequency", "type"):
        for about, after, before in _arms(last[last.probe == probe], "value"):
            yield claim(f"rp:words-{probe}", after - before, **about)


def _not_necessarily(table: pd.DataFrame) -> Iterator[dict]:
    """A claim of existence: one layer where isotropy falls is enough, and only rises refute it.

    Of [CLS], in plain fine-tuning, as RP ask.
    """
    for short, measure in ISOTROPY.items():
        shape = table[table.measure == measure]
        for (model, task), own in shape.groupby(["model", "task"], sort=False):
            by = {key: _per_seed(rows, "value") for key, rows in own.groupby(["arm", "layer"])}
            layers = own.layer[own.arm == "none"].unique()
            changes = (by["none", i] - by["pretrained", i] for i in layers)
            found = _most_favourable(changes, "less")
            yield claim(f"rp:not-necessarily-{short}", **found, **_about_rp(model, task, "none"))


def _arms(table: pd.DataFrame, value: str) -> Iterator[tuple]:
    """Per model, task and fine-tuned arm: its words, and a column by seed, after and before."""
    for (model, task, arm), rows in table.groupby(["model", "task", "arm"], sort=False):
        if arm not in ("pretrained", "isotropic"):
            before = (table.model == model) & (table.task == task) & (table.arm == "pretrained")
            both = (_per_seed(part, value) for part in (rows, table[before]))
            yield _about_rp(model, task, arm), *both


def _about_rp(model: str, task: str, arm: str) -> dict[str, str]:
    """Words of a `claim` of an arm; RP know plain fine-tuning alone."""
    kind = "scaled test" if arm == "none" else "analogue"
    return {"cell": f"{model}:{task}:{arm}", "task": task, "arm": arm, "kind": kind}


def _accuracy_drops(table: pd.DataFrame) -> pd.DataFrame:
    """What each treatment costs the probe: ``drop``, against vectors with the mean subtracted.

    From a table of chapter 08. Columns model, task, arm, seed, vectors, treatment, removed,
    skipped, drop, and ``lost``, against untreated vectors.
    """
    accuracy = table[table.measure == "accuracy"]
    keys = ["model", "task", "arm", "seed", "vectors", "treatment"]
    untreated = accuracy[accuracy.treatment == "untreated"].set_index(keys[:-1]).value
    centred = accuracy[accuracy.removed == 0].set_index(keys).value
    drops = accuracy[accuracy.treatment.isin(["global", "clusters"])].set_index(keys)
    drops["drop"] = centred.reindex(drops.index) - drops.value
    drops["lost"] = untreated.reindex(drops.index.droplevel(-1)).to_numpy() - drops.value
    return drops.reset_index()[[*keys, "removed", "skipped", "drop", "lost"]]


# --- frontiers: what an arm costs at each of its weights -------------------------------------


class _FrontierPoint(NamedTuple):
    """A point between two of a sweep: `share` of the way from the first to the second."""

    first: int
    second: int
    share: float
    passed: bool  # whether the sweep passes the score

    def of(self, values: Sequence) -> float | np.ndarray:
        """What the point has of a quantity that each point of the sweep has a value of."""
        first, second = list(values)[self.first], list(values)[self.second]
        return first + self.share * (second - first)


def _frontier_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that a frontier is drawn through, one per row.

    Parameters
    ----------
    runs : DataFrame
        The table ``runs``, of the grid and of the sweep together; a run may stand there twice.

    Returns
    -------
    DataFrame
        Columns model, task, arm, weight, seed, centred_1, raw_1, metric, value (and ``graded``, if
        `tables._add_correctness` has added it); of the models and tasks with an arm at two
        weights or more. The arm ``none`` has weight 0.

    Raises
    ------
    ValueError
        If a model and task with a sweep lacks the arm ``none``, where every sweep begins.
    """
    table = runs.filter([*RUN, "centred_1", "raw_1", "metric", "value", "graded"])
    table.loc[table.arm == "none", "weight"] = 0.0
    kept = []
    for (model, task), rows in table.drop_duplicates(RUN).groupby(TASK_OF_MODEL, sort=False):
        if (rows[rows.arm != "none"].groupby("arm").weight.nunique() > 1).any():
            if "none" not in set(rows.arm):
                raise ValueError(
                    f"runs: {model} on {task} has a sweep of weights and no arm 'none'; add it "
                    "to the profile's grid"
                )
            kept.append(rows)
    return pd.concat(kept, ignore_index=True) if kept else table.iloc[:0]


def interpolate_frontier(scores: ArrayLike, score: float) -> _FrontierPoint:
    """Where an arm's sweep, by weight from 0 up, passes a score.

    On the first pair of neighbouring weights that have the score between them, linear in the
    score. A sweep without such a pair gives its point nearest to the score.
    """
    scores = np.asarray(scores)
    for i in range(len(scores) - 1):
        low, high = sorted(scores[i : i + 2])
        if low <= score <= high:
            share = (score - scores[i]) / (scores[i + 1] - scores[i]) if low < high else 0.0
            return _FrontierPoint(i, i + 1, float(share), passed=True)
    nearest = int(np.abs(scores - score).argmin())
    return _FrontierPoint(nearest, nearest, 0.0, passed=bool(scores[nearest] == score))


# --- claims of this study: is topology what helps? Prominent bars less another arm ---------------

# At equal weights arms differ in strength, since a nat of entropy and a unit of cosine are no
# common currency; so they are also compared where they are equally strong, at the anisotropy that
# prominent bars reach. All bars at equal weights are rows of STL: ``lowers-centred-of-all``.

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
        yield claim("topology:lowers-more", _less(ours, theirs, "centred_1"), **about)
    if len(theirs):
        yield claim("topology:metric-no-worse", _less(ours, theirs, "graded"), **about)
    swept = rows[rows.arm.isin(["none", other])].sort_values("weight")
    sweep = dict(list(swept.groupby("seed")))
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
            apart = _less(arms[ARM], arms["all"], "centred_1").mean()
            more = _less(arms[ARM], arms["all"], "graded")
            words = {"arm": ARM, "stronger": stronger, "apart": apart}
            yield claim("topology:metric-above-all", more, **words, **about)
