"""Numbers of the pages, written from the records: ``make tables`` fills in what pages name.

A page says ``<!--n late.products p1-->…<!--/n-->``: a name of docs/numbers.toml and a form. What
stands between the two marks is filled in; a browser shows it, and not the marks.
"""

import re
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.multitest import multipletests

from shrink_utils.sources import data_dir, home
from shrink_utils.study.claims.report import ANALYSES, _p_as_text, _read_hypotheses, counted, signed
from shrink_utils.study.claims.stl import interpolate_frontier
from shrink_utils.study.claims.verdicts import _recorded_claims
from shrink_utils.study.profiles import Profile, load_profile
from shrink_utils.study.results import atomic_write
from shrink_utils.study.statistics import Interval, paired_interval, pseudo_values
from shrink_utils.study.tables import _read_records

_MARK = re.compile(r"(<!--n ([\w.]+) ?([^>]*?)-->).*?(<!--/n-->)", re.DOTALL)
_INNER = re.compile(r"\{([\w.]+) ([^}]+)\}")  # of a text of numbers.toml
_FORM = re.compile(r"([-+]?)([%pdn])(\d)([ei]?)")
_PAGES = ("README.md", "CITATION.cff", "docs/*.md", "docs/book/**/*.md", "notebooks/*.ipynb")
_TASKS = {"products": "sentiment_products", "movies": "sentiment_movies"}
_LEVEL = 0.05
WITH_CLAIMS = ("cohort", "glue", "models")  # profiles whose claims follow from their records
_MARGINS = dict.fromkeys("S1 S2 S3 S7 E2 E3 U3 U4 U5 U6 U7 U8".split(), 0.02)
_MARGINS |= dict.fromkeys("S4 S6 S8 E1 E5 E6".split(), 0.044)
_MARGINS |= {"S5": 0.03, "E4": 0.04, "U1": 0.05, "U2": 0.05}


def _tables_command(profile: Profile) -> None:
    for name in WITH_CLAIMS:
        with atomic_write(data_dir() / "reference" / name / "claims.csv") as part:
            _recorded_claims(load_profile(name)).to_csv(part, index=False, float_format="%.6f")
    _write_pages()


def _write_pages() -> None:
    """Fill every page that names a number. Raises ValueError for a name or form that is unknown."""
    for path, text in _rendered_pages().items():
        if text != path.read_text(encoding="utf-8"):
            with atomic_write(path) as part:
                part.write_text(text, encoding="utf-8")


def _rendered_pages() -> dict[Path, str]:
    """Pages that name a number, as they should be; registered pages stay as they are."""
    found = [path for pattern in _PAGES for path in sorted(home().glob(pattern))]
    living = [path for path in found if not path.name.startswith("preregistration")]
    texts = {path: path.read_text(encoding="utf-8") for path in living}
    return {path: _fill_page(text) for path, text in texts.items() if "<!--n " in text}


def _fill_page(text: str) -> str:
    """The text with every number that it names.

    A form is ``%`` (per cent), ``p`` (points of a hundred), ``d`` (decimals without a leading zero)
    or ``n`` (with one), then the decimals. A sign before it turns (-) or shows (+) that of the
    number; an ``e`` behind it leaves the interval away, an ``i`` the estimate.
    """
    return _MARK.sub(lambda mark: f"{mark[1]}{_written(mark[2], mark[3])}{mark[4]}", text)


def _written(name: str, form: str) -> str:
    value = _value(name)
    if isinstance(value, str):
        return value
    if not (found := _FORM.fullmatch(form)):
        raise ValueError(f"the form of {name} is {form!r}, expected such as %0, p1 or -d3e")
    sign, kind, digits, part = found.groups()
    estimate, low, high = value[:3]
    if sign == "-":
        estimate, low, high = -estimate, -high, -low
    scale = 100 if kind in "%p" else 1

    def shown(x: float) -> str:
        text = signed(scale * x, int(digits)).replace("-", "\N{MINUS SIGN}").lstrip("+")
        return re.sub(r"(?<!\d)0\.", ".", text) if kind == "d" else text

    first = ("+" if sign == "+" and estimate > 0 else "") + shown(estimate)
    interval = f"[{shown(low)}, {shown(high)}]"
    if part == "e" or (not part and np.isnan(low)):
        return f"{first} %" if kind == "%" else first
    return interval if part == "i" else f"{first} {interval}"


@cache
def _queries() -> dict[str, Any]:
    return tomllib.loads((home() / "docs" / "numbers.toml").read_text(encoding="utf-8"))


def _query(name: str) -> dict[str, Any]:
    """What docs/numbers.toml says of a name; `like` another, with what differs."""
    found: Any = _queries()
    for part in name.split("."):
        if part not in found:
            raise ValueError(f"{name} is not in docs/numbers.toml")
        found = found[part]
    return _query(found["like"]) | found if "like" in found else found


@cache
def _value(name: str) -> Interval | str:
    kind, _, of = name.partition(".")
    if kind == "verdicts":
        return _verdict_table(of)
    if kind == "counts":  # of the families of these letters
        return counted(_all_rows()[_all_rows().hypothesis.str[0].isin([*of])].verdict)
    if kind == "verdict":  # of one row
        rows = _all_rows().set_index("hypothesis")
        return str(rows.filter(regex=f"^{of} ", axis=0).verdict.item())
    if kind == "survivors":  # of Holm's method over all rows
        left = _all_rows().query(f"`of all` < {_LEVEL}").hypothesis.str.partition(" ")[0]
        return f"{len(left)}: {', '.join(left)}"
    query = _query(name)
    if "text" in query:
        return _INNER.sub(lambda inner: _written(inner[1], inner[2]), query["text"])
    for kind, read in _KINDS.items():
        if kind in query:
            return read(query)
    raise ValueError(f"{name} has none of {', '.join(_KINDS)} in docs/numbers.toml")


@cache
def _recorded_table(name: str) -> pd.DataFrame:
    """A table on record, its conditions named as "all 4" or "none"."""
    path = data_dir() / "reference" / name
    if path.suffix == ".csv":
        return pd.read_csv(path)
    table = _read_records(path.with_suffix(".parquet"))
    if "arm" in table:
        weight = table.weight.round(6)
        weighted = table.arm + " " + weight.map({w: f"{w:g}" for w in weight.unique()})
        table["condition"] = weighted.where(table.arm != "none", "none")
        if "epochs" not in table:
            table["epochs"] = 10  # of heldout, last and base
        if "task" not in table:
            table["task"] = _TASKS["products"]  # of last and base
    return table


def _rows(query: dict[str, Any], condition: str) -> pd.DataFrame:
    """What a query names of a condition: (seeds, rows), or one column where rows have no values."""
    names, parts = query["table"], []
    for name in names if isinstance(names, list) else [names]:
        table = _recorded_table(name)
        task = _TASKS.get(query.get("task"), query.get("task"))
        table = table[(table.condition == condition) & ((table.task == task) | (task is None))]
        if "epoch" in table and query.get("at") == "least loss":
            table = table[table.epoch > 0]
            table = table.loc[table.groupby("seed").loss.idxmin()]
        parts.append(table.query(query["where"]) if "where" in query else table)
    table = pd.concat(parts, ignore_index=True)
    if table.empty:
        raise ValueError(f"no row of {names} is of {condition}: {query}")
    table = table.assign(value=table.eval(query["of"]))
    return table.pivot_table(
        index="seed", columns="row" if "row" in table else None, values="value", aggfunc="mean"
    )


def _paired(query: dict[str, Any]) -> pd.DataFrame:
    """Differences of two conditions by seed; of one that has no seeds, from every seed."""
    ours = _rows(query | query.get("first", {}), query["condition"])
    return ours - _rows(query | query.get("second", {}), query["minus"])


def _mean_by_seed(query: dict[str, Any]) -> Interval:
    """Of a condition, or of its difference from another one."""
    table = _paired(query) if "minus" in query else _rows(query, query["condition"])
    values = table.dropna().to_numpy(dtype=float)
    return paired_interval(values[:, 0] if values.shape[1] == 1 else values)


def _read_off(query: dict[str, Any]) -> Interval:
    """Difference of two sweeps where the mean of one quantity passes a target: jackknife.

    Without one of the seeds a sweep may miss the target; its nearest point then stands for it.
    """
    sweeps = [query["sweep"], query["minus_sweep"]]
    known = {c: [_rows(query[of], c) for of in ("by", "value")] for c in {*sweeps[0], *sweeps[1]}}
    seeds = sorted(set.intersection(*({*rows.index} for pair in known.values() for rows in pair)))

    def statistic(chosen) -> np.ndarray:
        found = []
        for sweep in sweeps:
            by, of = ([known[c][i].loc[[*chosen]].to_numpy() for c in sweep] for i in (0, 1))
            place = interpolate_frontier([rows.mean() for rows in by], query["read_off"])
            if not place.passed and len(chosen) == len(seeds):
                raise ValueError(f"{sweep} does not pass {query['read_off']}")
            found.append(np.asarray(place.of([rows.mean(axis=0) for rows in of])))
        return found[0] - found[1]

    return paired_interval(np.array(pseudo_values(statistic, seeds)).squeeze())


def _cell(query: dict[str, Any]) -> Interval:
    """A row of a committed table; where it has both intervals, the simultaneous one."""
    table = _recorded_table(query["cell"] + ".csv")
    key = next(name for name in ("id", "comparison", "claim") if name in table)
    table = table[table[key] == query["row"]]
    if "task" in query:
        table = table[table.task == _TASKS.get(query["task"], query["task"])]
    if len(table) != 1:
        raise ValueError(f"{query['cell']}.csv has {len(table)} rows {query['row']!r}, expected 1")
    row, of = table.iloc[0], query.get("of", "")
    ends = ("all_low", "all_high") if "all_low" in row else (f"{of}_low", f"{of}_high")
    return Interval(row[of or "estimate"], *(row[end.lstrip("_")] for end in ends), row.get("n", 0))


def _share(query: dict[str, Any]) -> Interval:
    """Sum of one column over that of another, where both are known."""
    rows = _recorded_table(query["table"]).query(query["where"]).dropna(subset=query["per"])
    estimate = rows[query["share_of"]].sum() / rows[query["per"]].sum()
    return Interval(float(estimate), np.nan, np.nan, len(rows))


def _series(query: dict[str, Any]) -> str:
    """Means by another column, such as the epoch, in its order: decimals without a zero."""
    table = _recorded_table(query["table"])
    table = table[table.condition == query["condition"]].query(query["where"])
    means = table.groupby(query["series"])[query["of"]].mean()
    return ", ".join(f"{x:.{query['digits']}f}".removeprefix("0") for x in means)


_KINDS: dict[str, Callable[[dict[str, Any]], Interval | str]] = {
    "cell": _cell, "read_off": _read_off, "series": _series, "share_of": _share,
    "condition": _mean_by_seed,
}  # fmt: skip


@cache
def _all_rows() -> pd.DataFrame:
    """The rows of all registered analyses, as `_read_hypotheses` has them, and p over all of them.

    Letters are one per family: the fourth analysis' S, which its page registered, is called T.
    """
    rows = []
    for name in ANALYSES:
        file = "decided" if name in ("cohort", "strength") else "hypotheses"
        numbers, text = _recorded_table(f"{name}/{file}.csv"), _read_hypotheses(name)
        text = text.assign(analysis=name, p=numbers.p.to_numpy(), holm=numbers.holm.to_numpy())
        text["edge"] = _edges(numbers)
        rows.append(text)
    every = pd.concat(rows, ignore_index=True)
    fourth = (every.analysis == "objectives") & every.hypothesis.str.startswith("S")
    every["hypothesis"] = every.hypothesis.where(~fourth, "T" + every.hypothesis.str[1:])
    adjusted = multipletests(every.p.fillna(1.0), method="holm")[1]
    every["of all"] = pd.Series(adjusted, every.index).where(every.p.notna())
    return every


def levels_at_an_edge() -> dict[str, str]:
    """Of rows to which half or twice the level of .05 would give another verdict: which of both."""
    every = _all_rows()
    edge = every[every.edge != ""]
    return dict(zip(edge.hypothesis.str.partition(" ")[0], edge.edge, strict=True))


def _edges(numbers: pd.DataFrame) -> list[str]:
    """Of each row, which levels, half or twice .05, would give it another verdict.

    The level is that of the adjusted p and of the simultaneous interval.
    """
    margin = numbers.get("margin", numbers.id.map(_MARGINS))
    low, high = (numbers.get(f"all_{end}", numbers[end]) for end in ("low", "high"))
    family = numbers.id.str[0].where(numbers.id.str[0].isin([*"HSEUNWMP"]), "fourth")
    size = family.map(family.value_counts()) if "expected" not in numbers else len(numbers)
    words = []
    for level in (_LEVEL / 2, _LEVEL, 2 * _LEVEL):
        quantiles = [stats.t.isf(of / 2 / size, numbers.n - 1) for of in (level, _LEVEL)]
        half = (high - low) / 2 * quantiles[0] / quantiles[1]
        inside = (numbers.estimate - half > -margin) & (numbers.estimate + half < margin)
        worse = numbers.id.str.startswith("U") & (numbers.estimate + half < 0)
        worse |= numbers.id.isin(["H5", "H6"]) & (numbers.estimate - half > 0)  # claimed: below 0
        words.append(np.select([numbers.holm < level, worse, inside], [1, 2, 3], 0))
    tested, levels = numbers.verdict != "not tested", {".025": words[0], ".10": words[2]}
    other = {level: tested & (word != words[1]) for level, word in levels.items()}
    return [" and ".join(of for of in levels if other[of][row]) for row in numbers.index]


def _verdict_table(name: str) -> str:
    """Of an analysis, as Markdown; a row that was not tested has no numbers."""
    every = _all_rows()
    rows = every[every.analysis == name]
    shown = "difference", "simultaneous interval", "seeds", "p (Holm)"
    lines = [" | ".join(["hypothesis", "verdict", *shown, "p, all"]), " | ".join(["---"] * 7)]
    for row in rows.to_dict("records"):
        cells = [*(row[name] for name in shown), _p_as_text(row["of all"])]
        if row["verdict"] == "not tested":
            cells = ["\N{EN DASH}" if cell != row["seeds"] else cell for cell in cells]
        verdict = row["verdict"] + (", at an edge" if row["edge"] else "")
        lines.append(" | ".join([row["hypothesis"], verdict, *cells]))
    return "\n\n" + "\n".join(f"| {line} |" for line in lines) + "\n\n"
