"""What a study of somebody's own task found, and what a fixed rule says of it.

Conditions are compared with plain fine-tuning by seed and by row; docs/book/use/own.md states the
rule, and `OwnAnswer` applies it. Every measure is a mean of one value per validation row, so
that seeds and rows both count: those that are no means (macro-F1, Spearman's correlation, PC1
share) by their influence function, whose values have the measure as their mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy import stats
from torch import Tensor

from shrink_utils.geometry import principal_axes, search, whitening
from shrink_utils.study.figures import ARM_STYLE, CONDITIONS, PALETTE, legend_below
from shrink_utils.study.statistics import _mean_of, _two_way_variance

PLAIN = "plain"
CONTROLS = (
    "plain, stopped early",
    "plain, whitened",
    "plain, all but the top",
    "frozen encoder, new head",
    "the commonest class",
)
EARLY, WHITENED, TOPLESS, FROZEN, COMMONEST = CONTROLS
NEAREST = 10
MOST_SEARCHED = 1000  # rows of a half
TOP = 3  # directions that all-but-the-top removes
LEVEL, POWER = 0.05, 0.8
ROUNDING = 1e-12  # a difference that is none
MOST_SEEDS = 1000
OF_VECTORS = ("pc1", "same_class", "one_bit", "eight_bits")
Values = dict[str, np.ndarray]  # by measure, one value per validation row, NaN where there is none
Found = Mapping[str, Sequence[Values]]  # by condition, one per seed


class _Measure(NamedTuple):
    """How a measure is named, which way is better, and what difference matters."""

    name: str
    sign: int
    margin: float  # of a loss, a share of plain's


JUDGED = {
    "accuracy": _Measure("accuracy", 1, 0.01),
    "macro_f1": _Measure("macro-F1", 1, 0.01),
    "spearman": _Measure("Spearman's correlation", 1, 0.01),
    "loss": _Measure("the validation loss", -1, 0.02),
    "pc1": _Measure("the PC1 share", -1, 0.02),
    "same_class": _Measure("the share of neighbours of the same class", 1, 0.02),
    "one_bit": _Measure("the share of neighbours that one bit keeps", 1, 0.02),
    "eight_bits": _Measure("the share of neighbours that eight bits keep", 1, 0.02),
}
USES = ("one_bit", "same_class")  # that the rule speaks of, beside the metric


class _Seen(NamedTuple):
    """One model on the validation rows: its outputs (n, labels) and vectors (n, d)."""

    outputs: Tensor
    vectors: Tensor


# --- one value per row -----------------------------------------------------------------------


def _row_values(seen: _Seen, labels: np.ndarray, second: np.ndarray, metric: str) -> Values:
    """Every measure of one model, a value per row, whose mean is the measure.

    In a search, rows of the second half look among those of the first, and these among them.
    """
    values = _of_outputs(seen.outputs.double(), labels, metric)
    return values | {"pc1": _pc1_rows(seen.vectors)} | _searched(seen.vectors, labels, second)


def _of_outputs(outputs: Tensor, labels: np.ndarray, metric: str) -> Values:
    y = torch.as_tensor(labels)
    if metric == "spearman":
        given = outputs.squeeze(-1)
        rho = _spearman_rows(given.numpy(), labels)
        return {"spearman": rho, "loss": (given - y).square().numpy()}
    predicted = outputs.argmax(dim=1).numpy()
    loss = torch.nn.functional.cross_entropy(outputs, y, reduction="none").numpy()
    right, f1 = (predicted == labels).astype(float), _macro_f1_rows(predicted, labels)
    return {"accuracy": right, "macro_f1": f1, "loss": loss}


def _macro_f1_rows(predicted: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,): the macro-F1 plus each row's influence on it."""
    total, classes = np.zeros(len(labels)), np.union1d(predicted, labels)
    for one in classes:
        named, true = predicted == one, labels == one
        both, sides = 2.0 * (named & true), named.astype(float) + true
        f1 = both.sum() / sides.sum()
        total += f1 + (both - f1 * sides) / sides.mean()
    return total / len(classes)


def _spearman_rows(given: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,): Spearman's correlation plus each row's influence on it, by the ranks that it moves."""
    a, b = ((stats.rankdata(x) - 0.5) / len(x) - 0.5 for x in (given, labels))
    if a.std() * b.std() == 0:
        return np.zeros(len(a))
    influence = 12 * (a * b + _mean_above(given, b) + _mean_above(labels, a))
    return float(stats.spearmanr(given, labels).statistic) + influence - influence.mean()


def _mean_above(x: np.ndarray, other: np.ndarray) -> np.ndarray:
    """For each row i, the mean over all rows of `other` where x is at least x_i, else 0."""
    order = np.argsort(x, kind="stable")
    rest = np.append(np.cumsum(other[order][::-1])[::-1], 0.0)
    return rest[np.searchsorted(x[order], x)] / len(x)


def _pc1_rows(vectors: Tensor) -> np.ndarray:
    """(n,): the variance explained by PC1 plus each row's influence on it."""
    x = vectors.double() - vectors.double().mean(dim=0)
    squares = x.square().sum(dim=1)
    top = (x @ torch.linalg.svd(x, full_matrices=False).Vh[0]).square()
    share = top.sum() / squares.sum()
    return (share + (top - share * squares) / squares.mean()).numpy()


def _searched(
    vectors: Tensor, labels: np.ndarray, second: np.ndarray, treat: Callable | None = None
) -> Values:
    """Per row, how many of its nearest have its class, and how many are found again by few bits.

    A treatment is fitted on the half that is searched, and applied to both.
    """
    x, is_class = vectors.double(), labels.dtype.kind in "iu"
    values = {name: np.full(len(x), np.nan) for name in ("same_class", "one_bit", "eight_bits")}
    for half in (second, ~second):
        asked, among = (np.flatnonzero(rows)[:MOST_SEARCHED] for rows in (half, ~half))
        apply = treat(x[among]) if treat else lambda rows: rows
        queries, corpus, k = apply(x[asked]), apply(x[among]), min(NEAREST, len(among) // 3)
        nearest = search(queries, corpus, k=k)
        if is_class:
            alike = labels[asked][:, None] == labels[among]
            values["same_class"][asked] = nearest.precision(alike).numpy()
        for name, bits in (("one_bit", 1), ("eight_bits", 8)):
            again = search(queries, corpus, k=k, bits=bits).shares * nearest.shares
            values[name][asked] = again.sum(dim=1).numpy() / k
    return values if is_class else {name: values[name] for name in ("one_bit", "eight_bits")}


def _whiten(fit: Tensor) -> Callable[[Tensor], Tensor]:
    """Whitening of the first principal components: of few rows, half as many as there are rows."""
    axes = principal_axes(fit).directions[0][: max(1, len(fit) // 2 - 1)]
    fitted = whitening(fit @ axes.T)
    return lambda rows: fitted(rows @ axes.T)


def _topless(fit: Tensor) -> Callable[[Tensor], Tensor]:
    axes = principal_axes(fit)
    return axes.treatment(remove=max(0, min(TOP, len(axes.directions[0]) - 1)))


# --- conditions ------------------------------------------------------------------------------


def _cross_chosen(
    candidates: Sequence[Sequence[Values]], second: np.ndarray, by: str
) -> list[Values]:
    """Of settings, each with values per seed, the best by one half of the rows judges the other.

    The choice is by the mean of the measure `by` over seeds and over rows that do not judge: every
    row is judged by a setting that it had no part in choosing.
    """
    judged = [{name: np.full(len(second), np.nan) for name in of} for of in candidates[0]]
    for half in (second, ~second):
        scores = [JUDGED[by].sign * np.mean([v[by][~half] for v in of]) for of in candidates]
        for found, of in zip(judged, candidates[int(np.argmax(scores))], strict=True):
            for name, values in of.items():
                found[name][half] = values[half]
    return judged


def _conditions(
    courses: Mapping[tuple[str, float], Sequence[Sequence[_Seen]]],
    frozen: Sequence[_Seen],
    labels: np.ndarray,
    second: np.ndarray,
    metric: str,
) -> dict[str, list[Values]]:
    """Values per row of plain fine-tuning, of every condition and of every control, by seed.

    ``courses`` has, by arm and weight, per seed what was seen of the validation rows before the
    training and after every epoch; arm ``"none"`` is plain.
    """

    def values(seen: _Seen) -> Values:
        return _row_values(seen, labels, second, metric)

    ends: dict[str, dict[float, list[Values]]] = {}
    for (arm, weight), seeds in courses.items():
        ends.setdefault(arm, {})[weight] = [values(course[-1]) for course in seeds]
    plain = next(seeds for (arm, _), seeds in courses.items() if arm == "none")
    found = {PLAIN: next(iter(ends.pop("none").values()))}
    for arm, of in ends.items():
        name = f"{CONDITIONS.get(arm, arm)} × {' or '.join(f'{weight:g}' for weight in of)}"
        found[name] = _cross_chosen([*of.values()], second, metric)
    epochs = [[[values(seen)] for seen in course[1:]] for course in plain]
    found[EARLY] = [_cross_chosen(of, second, "loss")[0] for of in epochs]
    for name, treat in ((WHITENED, _whiten), (TOPLESS, _topless)):
        found[name] = [_searched(course[-1].vectors, labels, second, treat) for course in plain]
    found[FROZEN] = [values(seen) for seen in frozen]
    guess = torch.zeros(plain[0][-1].outputs.shape, dtype=torch.float64)
    guess[:, np.bincount(labels.astype(int)).argmax() if guess.shape[1] > 1 else 0] = 1.0
    found[COMMONEST] = [{metric: _of_outputs(guess, labels, metric)[metric]}] * len(plain)
    return found


# --- the rule --------------------------------------------------------------------------------


def _by_groups(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(seeds, groups) of values (seeds, rows), with the same mean; rows that are NaN are left out.

    Rows of one group, such as copies of a text, depend on each other: the group is the unit.
    """
    kept = ~np.isnan(values).any(axis=0)
    units, index = np.unique(groups[kept], return_inverse=True)
    sums = np.stack([np.bincount(index, row, len(units)) for row in values[:, kept]])
    return sums * (len(units) / kept.sum())


def _verdict_on(differences: np.ndarray, sign: int, margin: float, n_compared: int) -> dict:
    """The verdict on differences (seeds, units) of one condition from another.

    *better* or *worse*: the interval leaves 0 out; *no difference*: it lies within ± `margin`;
    *the same*: in every row and seed; else *not decided*, with the seeds that would decide it if
    estimate and variances stay. The interval is that of 1 − .05/`n_compared`, so that all of them
    hold at once. ``found`` is the smallest difference that would be found about four times in five.
    """
    confidence, n = 1 - LEVEL / n_compared, min(differences.shape)  # few customers, many seeds
    mean = _mean_of(differences)._replace(n=n)
    low, high = mean.interval(confidence)[1:3]
    verdict, needed = "not decided", math.nan
    if mean.error < ROUNDING:  # equal differences do not show how far they spread
        verdict = "the same" if abs(mean.estimate) < ROUNDING else verdict
    elif low > 0 or high < 0:
        verdict = "better" if sign * mean.estimate > 0 else "worse"
    elif -margin < low and high < margin:
        verdict = "no difference"
    else:
        needed = _seeds_needed(differences, mean.estimate, margin, confidence)
    found = _smallest_difference(mean.error, n, n_compared)
    interval = {"difference": mean.estimate, "low": low, "high": high}
    return {**interval, "verdict": verdict, "seeds_needed": needed, "found": found}


def _smallest_difference(error: float, n: int, n_compared: int) -> float:
    """(t₁₋α/₂ + t.₈) × standard error, α = .05/`n_compared`: found with a chance near .8."""
    quantiles = stats.t.ppf([1 - LEVEL / n_compared / 2, POWER], df=n - 1)
    return float(quantiles.sum() * error)


def _seeds_needed(
    differences: np.ndarray, estimate: float, margin: float, confidence: float
) -> float:
    """The least number of seeds whose interval would decide; infinity where only rows can."""
    both, seeds, _ = _two_way_variance(differences)
    n, rows = len(differences), max(0.0, both - seeds)
    half, more = max(margin - abs(estimate), abs(estimate)), np.arange(n + 1, MOST_SEEDS + 1)
    errors = np.sqrt(rows + seeds * n / more)
    degrees = np.minimum(more, differences.shape[1]) - 1
    decided = stats.t.ppf((1 + confidence) / 2, df=degrees) * errors < half
    return float(more[decided.argmax()]) if decided.any() else math.inf


# --- the answer ------------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnAnswer:
    """What the runs of a study say."""

    head: str
    metric: str
    before: float  # PC1 share of the untrained encoder
    found: Found
    groups: np.ndarray  # of the validation rows: units that depend on each other

    @property
    def _conditions(self) -> list[str]:
        """Those with a regularization term."""
        return [name for name in self.found if name not in (PLAIN, *CONTROLS)]

    def _against(self, name: str, measure: str, other: str = PLAIN) -> dict:
        """The verdict on a condition's difference from another, by seed and unit."""
        ours, theirs = (np.stack([v[measure] for v in self.found[of]]) for of in (name, other))
        differences, (_, sign, margin) = _by_groups(ours - theirs, self.groups), JUDGED[measure]
        margin *= float(np.nanmean(theirs)) if measure == "loss" else 1
        return _verdict_on(differences, sign, margin, len(self._conditions))

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per measure and condition: its value, plain's, the verdict on the difference.

        The frozen encoder's vectors are means over tokens, plain's are not: no verdict on those.
        """
        found, rows = self.found, []
        for measure in (m for m in JUDGED if m in found[PLAIN][0]):
            for name in (name for name, seeds in found.items() if measure in seeds[0]):
                value, plain = (np.nanmean([v[measure] for v in found[of]]) for of in (name, PLAIN))
                row = {"measure": measure, "condition": name, "value": value, "plain": plain}
                without = name == PLAIN or (name == FROZEN and measure in OF_VECTORS)
                rows.append(row | ({} if without else self._against(name, measure)))
        return pd.DataFrame(rows).set_index(["measure", "condition"])

    @cached_property
    def sentences(self) -> list[str]:
        """What the rule says: of the metric, of isotropy, of two uses, and what it recommends."""
        told, advised, guess = [], [], self.table.loc[(self.metric, COMMONEST)]
        if guess.verdict != "worse":
            shift = _shift(guess, self.metric, "beside")
            told.append(
                f"Plain fine-tuning is not shown to beat a guess ({shift}): take more epochs or "
                "rows, or a larger learning rate."
            )
        for measure in (m for m in (self.metric, "pc1", *USES) if m in self.table.index):
            rows = self.table.loc[measure].loc[self._conditions]
            told += _of_measure(rows, measure, self.metric)
            if measure != "pc1":
                gaining = rows.index[rows.verdict == "better"]
                rivals = {name: self._rivals(name, measure) for name in gaining}
                told += _beside_controls(rivals, self.table.loc[measure], measure)
                best = [name for name, free in rivals.items() if not free]
                advised += [f"{' or '.join(best)} for {JUDGED[measure].name}"] * bool(best)
        what = "; ".join(advised) or "no regularization term here"
        return [*told, f"The rule recommends {what}."]

    def _rivals(self, name: str, measure: str) -> dict[str, str]:
        """Controls than which a condition is not shown to be better, with the verdict on it."""
        measured = [c for c in CONTROLS if c in self.found and measure in self.found[c][0]]
        verdicts = {c: self._against(name, measure, c)["verdict"] for c in measured}
        return {control: verdict for control, verdict in verdicts.items() if verdict != "better"}

    def shown(self) -> pd.DataFrame:
        """The table for people: each mean and its verdict, conditions by measures."""
        table = self.table
        cells = table.value.map("{:.3f}".format) + (" " + table.verdict).fillna("")
        wide = cells.unstack("measure").fillna("")
        order = [list(dict.fromkeys(table.index.get_level_values(i))) for i in (1, 0)]
        names = {measure: JUDGED[measure].name.removeprefix("the ") for measure in order[1]}
        return wide.loc[*order].rename(columns=names).rename_axis(columns=None)

    def figure(self) -> Figure:
        """Left, differences from plain; right, the metric against the PC1 share."""
        fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), width_ratios=(5, 4))
        name, _, margin = JUDGED[self.metric]
        rows = self.table.loc[self.metric].drop([PLAIN, COMMONEST])
        left.axvspan(-100 * margin, 100 * margin, color="0.93", lw=0)
        left.axvline(0, color="0.6", lw=1)
        for at, (condition, row) in enumerate(rows.iterrows()):
            half = 100 * np.array([[row.difference - row.low], [row.high - row.difference]])
            look = {"capsize": 3, "linestyle": "none", **_look_of(condition)}
            left.errorbar(100 * row.difference, at, xerr=half, **look)
        left.set_yticks(range(len(rows)), rows.index)
        left.set(ylim=(len(rows) - 0.5, -0.5), xlabel=f"{name} minus plain's (points)")
        for condition, seeds in self.found.items():
            if self.metric in seeds[0] and "pc1" in seeds[0]:
                points = 100 * np.array([[v["pc1"].mean(), v[self.metric].mean()] for v in seeds])
                look = {"linestyle": "none", **_look_of(condition)}
                if condition not in CONTROLS:
                    right.plot(*points.T, alpha=0.35, **look | {"markersize": 4})
                right.plot(*points.mean(axis=0), label=condition, **look)
        read = "variance explained by PC1 (%),\nof the vectors that the head reads"
        right.set(xlabel=read, ylabel=f"{name} (%)")
        before = 100 * self.before
        right.axvline(before, color="0.6", lw=1, ls=":")
        place = {"xy": (before, 0.02), "xycoords": ("data", "axes fraction"), "rotation": 90}
        offset = {"xytext": (3, 0), "textcoords": "offset points", "va": "bottom"}
        right.annotate("[CLS] before training", fontsize="small", color="0.4", **place, **offset)
        legend_below(fig, right, 4)
        return fig


def _of_measure(rows: pd.DataFrame, measure: str, metric: str) -> list[str]:
    """What every condition does to a measure; of the metric also what is not shown."""
    told, (name, sign, margin) = [], JUDGED[measure]
    if not (rows.verdict == "better").any():
        way = "raise" if sign > 0 else "lower"
        first = f"No regularization term is shown to {way} {name}"
        size = f"{100 * rows.found.max():.1f} points would have been found (in some 4 of 5 studies)"
        known = measure == metric and rows.found.max() > ROUNDING
        told.append(f"{first}; a difference of {size}." if known else f"{first}.")
    for arm, row in rows.iterrows():
        interval = f"[{100 * row.low:+.1f}, {100 * row.high:+.1f}]"
        if row.verdict in ("better", "worse"):
            way = "rises" if row.difference > 0 else "falls"
            change = f"{_shift(row, measure)} ({100 * row.difference:+.1f} {interval})"
            told.append(f"With {arm}, {name} {way} from {change}.")
        elif measure == metric and row.verdict == "not decided":
            seeds = f"about {row.seeds_needed:.0f} seeds"
            needs = seeds if row.seeds_needed < math.inf else "more validation rows, not seeds,"
            told.append(f"With {arm} it is not decided {interval}: {needs} would be needed.")
        elif measure == metric and row.verdict == "the same":
            told.append(f"With {arm}, {name} is the same in every row.")
        elif measure == metric:
            told.append(
                f"With {arm}, {name} changes by less than {100 * margin:g} point {interval}."
            )
    return told


def _beside_controls(
    rivals: Mapping[str, Mapping[str, str]], rows: pd.DataFrame, measure: str
) -> list[str]:
    """What is free beside conditions that gain; where none does, the best that is free."""
    told = []
    for name, verdicts in rivals.items():
        more = [control for control, verdict in verdicts.items() if verdict == "worse"]
        does = "does more than" if more else "is not shown to do less than"
        free = "; ".join(more or verdicts)
        beside = f"What is free {does} {name}: {free}."
        told.append(beside if free else f"Nothing free does as much as {name}.")
    free = rows[rows.index.isin(CONTROLS) & (rows.verdict == "better")]
    if not rivals and len(free):
        best = free.loc[free.value.idxmax()]
        name, shift = JUDGED[measure].name, _shift(best, measure)
        told.append(f"For free, {name} rises from {shift}: {best.name}.")
    return told


def _shift(row: pd.Series, measure: str, word: str = "to") -> str:
    """Plain's value and a condition's: shares in percent, a correlation as it is."""
    if measure == "spearman":
        return f"{row.plain:.2f} {word} {row.value:.2f}"
    return f"{100 * row.plain:.0f} {word} {100 * row.value:.0f} %"


def _look_of(condition: str) -> dict:
    """An arm's own colour and marker; controls are grey and hollow."""
    named = condition.partition(" × ")[0]
    for arm, style in ARM_STYLE.items():
        if named == CONDITIONS.get(arm, arm):
            return {name: style[name] for name in ("color", "marker")}
    marker = dict(zip(CONTROLS, "oDvsX", strict=True)).get(condition, "P")
    return {"color": PALETTE[3], "marker": marker, "markerfacecolor": "white"}
