"""What people see of the claims: a text and a forest plot."""

import sys
import textwrap
from collections.abc import Iterable
from fnmatch import fnmatch

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shrink_utils.study.claims.agreement import agreement
from shrink_utils.study.figures import PALETTE
from shrink_utils.study.profiles import Profile
from shrink_utils.study.tables import read_table

# By the first part of a claim's name, in the order of the table.
PAPERS = {
    "stl": "Shrink the longest (Kudriashov et al. 2025)",
    "v": "Contextuality and training (Vázquez et al. 2021, after Ethayarajh 2019; 2022)",
    "b": "Similarity, stitching, generalization (Brown et al. 2023, and whom the rows name)",
    "rp": "Geometry after fine-tuning (Rajaee & Pilehvar 2021)",
    "mga": "Isotropy against clusters (Mickus, Grönroos & Attieh 2024)",
    "lang": "Topology on language (Kushnareva et al. 2021, Tulchinskii et al. 2023, this study)",
    "topology": "Is topology what helps? (claims of this study)",
}
# What the study is asked first, one row each: of several models and tasks, the first in the table.
HEADLINES = (
    "stl:rises-centred:*:none",
    "stl:lowers-centred-of-none:*:prominent",
    "stl:lowers-centred-of-all:*:prominent",
    "stl:metric-kept:*:prominent",
    "topology:matched:*:random",
    "topology:matched:*:isoscore",
    "mga:conflict:*",
    "rp:not-necessarily-partition:*:none",
    "rp:removal-mean:*:none",
    "rp:treatment-global:*:none",
    "v:avgsim-rises",
    "v:selfsim-falls",
    "v:lca-objective-over-data",
    "b:stitch-asymmetry-net:trained",
    "b:generalization-cka-late-overlap",
)

# A symbol and a colour, so that either is enough; what decides nothing is grey.
VERDICT_STYLE = {
    "replicated": ("*", PALETTE[0]),
    "agrees": ("o", PALETTE[0]),
    "inconclusive": ("s", "0.5"),
    "disagrees": ("X", PALETTE[1]),
    "not replicated": ("P", PALETTE[1]),
    "described": ("d", "0.7"),
}
PAPER_STYLE = {"marker": "|", "color": PALETTE[6], "markersize": 12, "markeredgewidth": 2}
WIDTH = 72  # characters of a label's line
LINE = 1000  # characters of a line that another program reads
# On a terminal; what decides nothing is dim. The words say the same.
TERMINAL_STYLE = {
    "replicated": "bold green",
    "agrees": "green",
    "disagrees": "magenta",
    "not replicated": "bold magenta",
}


def claims_as_text(claims: pd.DataFrame) -> pd.DataFrame:
    """The claims table as people read it: signed numbers, the interval in one column.

    Departures from the paper's protocol stand behind the kind of test. The noise floor and the
    adjusted verdict have a column where any of the claims has one.
    """
    beside = _text(claims.departures)
    table = pd.DataFrame(
        {
            "task": _text(claims.task),
            "arm": _text(claims.arm),
            "claim": claims.statement,
            "source": claims.source,
            "kind of test": claims.kind.where(beside == "", claims.kind + " (" + beside + ")"),
            "paper": ["" if pd.isna(p) else signed(p) for p in claims.published],
            "ours": [signed(e) for e in claims.estimate],
            "95 % interval": [
                f"[{signed(low)}, {signed(high)}]"
                for low, high in zip(claims.low, claims.high, strict=True)
            ],
            "over": claims.n.astype(str) + " " + claims.unit,
            "noise floor": ["" if pd.isna(f) else f"{f:.3f}" for f in claims.floor],
            "p": [p_as_text(p) for p in claims.p],
            "verdict": claims.verdict,
            "adjusted verdict": _text(claims.adjusted),
        }
    )
    empty = [name for name in ("noise floor", "adjusted verdict") if (table[name] == "").all()]
    return table.drop(columns=empty)


def claims_in_brief(claims: pd.DataFrame) -> pd.DataFrame:
    """The claims table for the width of a page, without the columns that would stay empty.

    The verdict stands beside its claim and the interval behind its estimate; the last column says
    what a row is of: task, arm, units, source and kind of test.
    """
    text = claims_as_text(claims)
    of = text[["task", "arm", "over", "source", "kind of test"]].itertuples(index=False)
    brief = pd.DataFrame(
        {
            "claim": text.claim,
            "verdict": text.verdict,
            "adjusted verdict": _text(claims.adjusted),
            "ours [95 % interval]": text.ours
            + " "
            + text["95 % interval"].str.replace(" ", "\N{NO-BREAK SPACE}"),
            "paper": text.paper,
            "noise floor": text.get("noise floor", ""),
            "p": text.p,
            "of": ["; ".join(filter(None, row)) for row in of],
        }
    )
    return brief.loc[:, (brief != "").any()]


def _text(column: pd.Series) -> pd.Series:
    """Without the NaN that an empty cell of a CSV file becomes."""
    return column.astype(object).where(column.notna(), "")


def signed(value: float, decimals: int = 3) -> str:
    """With its sign, and one digit where these decimals would say zero: no -0.000."""
    text = f"{value + 0.0:+.{decimals}f}"
    return text if float(text) or not value else f"{value:+.1g}"


def p_as_text(p: float) -> str:
    """Three decimals, without the zero before the point; nothing where there is no p."""
    return "" if pd.isna(p) else "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def headlines(claims: pd.DataFrame) -> pd.DataFrame:
    """The answer in one table: the rows of `HEADLINES` that a study has, as text.

    Columns claim (with whose it is, and its task), verdict, adjusted verdict, ours, 95 % interval,
    paper and kind of test.
    """
    found = [claims.index[[fnmatch(name, row) for name in claims.claim]] for row in HEADLINES]
    rows = claims.loc[[places[0] for places in found if len(places)]]
    text = claims_as_text(rows).assign(**{"kind of test": rows.kind})
    task = text.task.where(text.task == "", " (" + text.task + ")")
    wanted = ["claim", "verdict", "adjusted verdict", "ours", "95 % interval", "paper"]
    whose = rows.claim.str.split(":").str[0].str.upper().replace("TOPOLOGY", "ours")
    text = text.assign(
        claim=whose + ": " + text.claim + task, **{"adjusted verdict": _text(rows.adjusted)}
    )
    return text[[*wanted, "kind of test"]]


def of_paper(claims: pd.DataFrame, paper: str) -> pd.DataFrame:
    """The claims of one of `PAPERS`, which begin with its short name."""
    return claims[claims.claim.str.startswith(f"{paper}:")]


def print_claims(profile: Profile) -> None:
    """Print the claims table of a finished study, the summary first.

    On a terminal it is as wide as the terminal, and in colours where there are any (rich: NO_COLOR
    is heeded); for other programs each claim is one line.
    """
    claims = read_table("claims", profile=profile)
    person = sys.stdout.isatty()
    console = Console(width=None if person else LINE, highlight=False, markup=False)
    console.print(f"\nClaims, profile {profile.name} ({profile.description})")
    papers = {title: of_paper(claims, paper) for paper, title in PAPERS.items()}
    papers = {title: rows for title, rows in papers.items() if len(rows)}
    for title, rows in papers.items():
        console.print(f"  {title}: {_counts(rows)}")
    console.print(f"  In all: {_counts(claims)}")
    console.print(agreement(claims, profile), end="")
    console.print(
        "Estimates are mean paired differences over n units, with a 95 % t interval; correlations "
        "are averaged, and their interval taken, as Fisher's z. Only a paper's own test "
        "replicates; every other kind agrees or disagrees, and a described row decides nothing. "
        "The counts take each row alone; a verdict that changes when the length of the whole table "
        "is accounted for (Benjamini and Hochberg) has the other one behind 'adjusted'. STL, V, B "
        "and RP are the papers of the first four headings."
    )
    for title, rows in papers.items():
        console.print(f"\n{title}", style="bold")
        console.print(_table(rows, narrow=person))


def print_hypotheses(answer: pd.DataFrame) -> None:
    """Print the decided hypotheses (`FullLength.answer`): verdict, difference and its interval.

    On a terminal they are as wide as the terminal; for other programs each is one line.
    """
    console = Console(width=None if sys.stdout.isatty() else LINE, highlight=False, markup=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("hypothesis", ratio=1)
    for name in ("verdict", "difference [interval]", "seeds", "p (Holm)"):
        table.add_column(name)
    for row in answer.to_dict("records"):
        note = row["note"] and f" ({row['note']})"
        ours = f"{row['difference']} {row['simultaneous interval']}"
        claim = Text.assemble(row["hypothesis"], (note, "dim"))
        table.add_row(claim, row["verdict"], ours, row["seeds"], row["p (Holm)"])
    console.print(table)
    console.print(
        "Differences are means over seeds, paired by seed; the intervals hold for all rows at "
        "once. H12 is in steps. At matched score, the other reward reaches the centred score that "
        "prominent bars have. p is adjusted by Holm's method. docs/preregistration.md defines the "
        "hypotheses, the margins and the verdicts."
    )


def _table(claims: pd.DataFrame, *, narrow: bool) -> Table:
    """Claim and what it is of, verdict, ours, the paper's number and p: cells wrap to the width."""
    table = Table(box=None, pad_edge=False)
    table.add_column("claim", ratio=1)
    table.add_column("verdict", max_width=14 if narrow else None)
    for name in ("ours [95 % interval]", "paper", "p"):
        table.add_column(name)
    for row in claims_in_brief(claims).fillna("").to_dict("records"):
        floor = row.get("noise floor") and f"; noise floor {row['noise floor']}"
        adjusted = row.get("adjusted verdict", row["verdict"])
        verdict = row["verdict"] + (f", adjusted {adjusted}" if adjusted != row["verdict"] else "")
        table.add_row(
            Text.assemble(row["claim"], (f" ({row['of']}{floor or ''})", "dim")),
            Text(verdict, style=TERMINAL_STYLE.get(adjusted, "dim")),
            row["ours [95 % interval]"].replace("\N{NO-BREAK SPACE}", " "),
            row.get("paper", ""),
            row.get("p", ""),
        )
    return table


def print_brief(profile: Profile, *, runs: int) -> None:
    """Print what was computed and how the claims came out, and where to read on."""
    claims = read_table("claims", profile=profile)
    notebooks = profile.folder / "notebooks"
    chapters = len(list(notebooks.glob("[0-9]*_[!.]*.ipynb")))
    print(f"\nStudy {profile.name} is complete: {runs} runs, {chapters} chapters")
    print(f"Claims: {_counts(claims)}")
    print(f"  each of them: python -m shrink_utils --profile {profile.name} claims")
    print(f"  read first:   {notebooks / '11_claims.ipynb'}")


def _counts(claims: pd.DataFrame) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in claims.verdict.value_counts().items())


def forest(claims: pd.DataFrame, *, xlabel: str) -> Figure:
    """Draw every claim as its estimate on its 95 % interval, beside the paper's number.

    Claims of one statement stand together below it, named by task and arm; a task or an arm that
    all of them share is the title.

    Raises
    ------
    ValueError
        No claims.
    """
    if claims.empty:
        raise ValueError("claims: empty, there is nothing to draw")
    names = [name for name in ("task", "arm") if claims[name].nunique() > 1]
    lines = _labelled(claims, names)
    heights = np.array([label.count("\n") + 1.5 for label, _ in lines])  # in lines of text
    places = heights.sum() - heights.cumsum() + heights / 2
    fig, ax = plt.subplots(figsize=(10, 0.2 * heights.sum() + 1.4))
    ax.set(yticks=places, yticklabels=[label for label, _ in lines], ylim=(0, heights.sum()))
    ax.tick_params(axis="y", labelsize="small", length=0)
    for y, (_, row), label in zip(places, lines, ax.get_yticklabels(), strict=True):
        if row is None:
            label.set_weight("bold")
        else:
            _draw_claim(ax, y, row)
    ax.axvline(0, color="0.6", lw=1)
    ax.set_title(_label(claims[["task", "arm"]].drop(columns=names).iloc[0]))
    ax.set_xlabel(xlabel, loc="right")  # it may be wider than the axis
    _explain(fig, ax, claims)
    return fig


def _labelled(claims: pd.DataFrame, names: list[str]) -> list[tuple[str, pd.Series | None]]:
    """From the top: what a line says, and its claim, or None above several of one statement."""
    lines = []
    for statement, rows in claims.groupby("statement", sort=False):
        above = [statement]
        if len(rows) > 1:
            lines.append((_label(above), None))
            above = []
        lines += [(_label([*above, *row[names]]), row) for _, row in rows.iterrows()]
    return lines


def _label(names: Iterable[str]) -> str:
    """In as few lines as `WIDTH` allows, all about equally long."""
    text = " · ".join(filter(None, names))
    n = len(textwrap.wrap(text, WIDTH))
    width = next(w for w in range(8, WIDTH + 1) if len(textwrap.wrap(text, w)) <= n)
    return textwrap.fill(text, width)


def _draw_claim(ax: Axes, y: float, row: pd.Series) -> None:
    marker, color = VERDICT_STYLE[row.verdict]
    ax.plot([row.low, row.high], [y, y], color=color, lw=1.5, gid="95 % interval")
    ax.plot(row.estimate, y, marker, color=color)
    if not pd.isna(row.published):
        ax.plot(row.published, y, **PAPER_STYLE)


def _explain(fig: Figure, ax: Axes, claims: pd.DataFrame) -> None:
    """A legend of the symbols that these claims have."""
    for verdict, (marker, color) in VERDICT_STYLE.items():
        if verdict in set(claims.verdict):
            ax.plot([], [], marker, color=color, label=verdict)
    if claims.published.notna().any():
        ax.plot([], [], linestyle="none", label="the paper, or its mean", **PAPER_STYLE)
    fig.legend(loc="outside lower center", ncols=5, fontsize="small")
