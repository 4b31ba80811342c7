"""What people see of the claims: a text and tables."""

import math
import sys

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shrink_utils.names import known_name
from shrink_utils.sources import data_dir
from shrink_utils.study.claims.claim import _families, _sentences
from shrink_utils.study.profiles import Profile, profile_names
from shrink_utils.study.tables import read_table

# By the first part of a claim's name, in the order of the table.
PAPERS = {
    "stl": "Shrink the longest (Kudriashov et al. 2025)",
    "v": "Contextuality and training (Vázquez et al. 2021, after Ethayarajh 2019; 2022)",
    "b": "Similarity, stitching, generalization (Brown et al. 2023, and others named in the rows)",
    "rp": "Geometry after fine-tuning (Rajaee & Pilehvar 2021)",
    "mga": "Isotropy against clusters (Mickus, Grönroos & Attieh 2024)",
    "lang": "Topology on language (Kushnareva et al. 2021, Tulchinskii et al. 2023, this study)",
    "topology": "Is topology what helps? (claims of this study)",
}
# The preregistered analyses, by the folders of their records.
ANALYSES = {
    "cohort": "The twelve hypotheses (profile cohort)",
    "strength": "Eight hypotheses at equal strength (profile strength)",
    "heldout": "Fourteen hypotheses: held-out rows, and uses (profile heldout)",
    "objectives": "Twelve hypotheses: three objectives, sizes, stitching (models trained from "
    "nothing)",
    "last": "Seven hypotheses: matched isotropy with sixteen seeds, and search beside whitening",
    "base": "Four hypotheses: a base-sized encoder over ten epochs",
    "papers": "Fifteen hypotheses: the twelve on three objectives once more, with eight seeds",
}
ABOUT_CLAIMS = """\
Estimates are mean paired differences over n units, with a 95 % t interval. Only a paper's own test
replicates; every other kind agrees or disagrees, and a described row decides nothing. The counts
take each row alone; the adjusted verdict accounts for all rows that answer the same sentence of a
paper (Benjamini and Hochberg). STL, V, B and RP are the papers of the first four headings."""
ABOUT_HYPOTHESES = """\
Differences are means over seeds, paired by seed; the intervals hold for all rows at once. H12 is in
steps. At matched score, the other reward reaches the centred score that prominent bars have. p is
adjusted by Holm's method. docs/preregistration.md, or docs/preregistration_strength.md and
docs/preregistration_heldout.md for the profiles strength and heldout, defines the hypotheses, the
margins and the verdicts."""
IN_BRIEF = ["claim", "verdict", "adjusted verdict", "ours [95 % interval]", "paper"]
IN_BRIEF += ["noise floor", "p", "of"]
SENTENCE = ["paper", "sentence", "row", "kind of test", "adjusted verdicts", "note"]
LINE = 1000  # characters of a line that another program reads
# What the hypotheses of STL subtract: mostly the plain condition or all bars, but where all bars
# get a larger weight, selected bars are taken from them.
SUBTRACTED = {
    "selected − plain": "H1 H2 H3 H4 H11 H12 U1 U3 U5 U7 W1 W2 W4 M1 M3",
    "selected − all": "H5 H6 S1 S2 S3 S4 S5 S7 E2 E3 E4 N2 N3 M2 M4",
    "all at 4 − selected at 1": "S6 S8 E5 E6",
    "all at 8 − selected at 1": "E1",
    "all at 32 − selected at 1": "N1",
    "selected − random": "H7",
    "selected − IsoScore★": "H8",
    "selected − spectral": "H9",
    "selected − cosine": "H10",
    "IsoScore★ − plain": "U2 U4 U6 U8 W3",
}
# Registered statements, in the words of the chapters.
REWORDED = {
    r"another ((?:validation |PC1 )?\w+(?: of verses)?) than": r"a different \1 from",
    r"another (accuracy|score|silhouette|(?:late )?loss)": r"a different \1",
    r"matched score": "matched isotropy",
    r"centred score": "PC1 share",
    r"(validation )?\bscore\b(?! within)": r"\1PC1 share",
    r"prominent bars": "selected bars",
    r"isoscore (\S+) is": r"IsoScore★ at \1 is",
    r"IsoScore\*": "IsoScore★",
    r"prominent (\S+) is": r"selected bars at \1 are",
    r" \.(\d)": r" 0.\1",
}


def claims_in_brief(claims: pd.DataFrame) -> pd.DataFrame:
    """The claims as people read them, on a page, a terminal and in the book: a table of text.

    The verdict stands beside its claim, and the interval behind its estimate; the last column says
    what a row is of: task, arm, units, source, and kind of test with the departures from the
    paper's protocol. Columns that would stay empty are left out.
    """
    text = claims.astype(object).where(claims.notna(), "")  # an empty cell of a CSV file is NaN
    rows = []
    for row in text.itertuples():
        interval = f"[{signed(row.low)},\N{NO-BREAK SPACE}{signed(row.high)}]"
        kind = f"{row.kind} ({row.departures})" if row.departures else row.kind
        of = filter(None, [row.task, row.arm, f"{row.n} {row.unit}", row.source, kind])
        published = "" if row.published == "" else signed(row.published)
        floor = "" if row.floor == "" else f"{row.floor:.3f}"
        ours = (f"{signed(row.estimate)} {interval}", published, floor, _p_as_text(row.p))
        rows.append((row.statement, row.verdict, row.adjusted, *ours, "; ".join(of)))
    brief = pd.DataFrame(rows, claims.index, IN_BRIEF)
    return brief.loc[:, (brief != "").any()]


def signed(value: float, decimals: int = 3) -> str:
    """With its sign; what these decimals cannot tell from zero has none: no -0.000, no -7e-05."""
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]


def _p_as_text(p: float) -> str:
    """Three decimals, without the zero before the point; nothing where there is no p."""
    return "" if pd.isna(p) or p == "" else "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _sentence_table(claims: pd.DataFrame) -> pd.DataFrame:
    """What each paper claims, sentence by sentence, and the rows that answer it, as text.

    Columns paper (with the section), sentence (with the quote), row (names without their task, arm
    and model, or "no row, because …"), kind of test, adjusted verdicts and note. A row such as
    ``papers:P1`` is a hypothesis that was fixed before its runs, with its own verdict.
    """
    family, rows = _families(claims), []
    fixed = pd.read_csv(data_dir() / "reference" / "papers" / "hypotheses.csv")
    fixed = fixed.set_index("papers:" + fixed.id).verdict.replace("not decided", "open")
    for i, sentence in enumerate(_sentences().itertuples()):
        found = claims[(family == i).to_numpy()]
        decided = fixed[[row for row in sentence.rows.split() if row in fixed]]
        names = found.claim.str.split(":").str[:2].str.join(":").unique()
        kinds = [*found.kind.str.removesuffix(", exploratory").unique()]
        kinds += ["fixed before its runs"] * bool(len(decided))
        none = f"no row, because {sentence.why}" if sentence.why else "no row in this study"
        row = ", ".join([*decided.index, *names]) or none
        note = sentence.why if row != none else ""
        verdicts = counted(pd.concat([decided, found.adjusted]))
        about = (", ".join(kinds), verdicts, note)
        place = ", ".join(filter(None, (sentence.paper, sentence.section)))
        quote = f" \N{LEFT DOUBLE QUOTATION MARK}{sentence.quote}\N{RIGHT DOUBLE QUOTATION MARK}"
        said = sentence.sentence + (quote if sentence.quote else "")
        rows.append((place, said, row, *about))
    return pd.DataFrame(rows, columns=SENTENCE)


def _by_paper(claims: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The claims of each of `PAPERS` that has some, which begin with its short name, by title."""
    short = claims.claim.str.partition(":")[0]
    return {title: claims[short == paper] for paper, title in PAPERS.items() if paper in set(short)}


def _claims_command(profile: Profile) -> None:
    _print_claims(read_table("claims", profile=profile), profile)


def _print_claims(claims: pd.DataFrame, profile: Profile) -> None:
    """Print the claims table of a finished study, the summary first."""
    print(f"\nClaims, profile {profile.name} ({profile.description})")
    papers = _by_paper(claims)
    for title, rows in papers.items():
        print(f"  {title}: {counted(rows.verdict)}")
    print(f"  In all: {counted(claims.verdict)}")
    print(ABOUT_CLAIMS)
    for title, rows in papers.items():
        print(f"\n{title}")
        text = claims_in_brief(rows)
        floor = "; noise floor " + text.get("noise floor", pd.Series("", text.index))
        of = text["of"] + floor.where(rows.floor.notna(), "")
        _print_table(text.drop(columns=["of", "noise floor"], errors="ignore"), of)


def _print_table(text: pd.DataFrame, beside: pd.Series) -> None:
    """As wide as the terminal; for other programs each row is one line, what it is of behind it."""
    width = None if sys.stdout.isatty() else LINE
    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(text):
        table.add_column(name, ratio=None if i else 1)
    for row, of in zip(text.itertuples(index=False), beside, strict=True):
        first, *rest = (cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row)
        table.add_row(Text.assemble(first, (f" ({of})" if of else "", "dim")), *rest)
    Console(width=width, highlight=False, markup=False).print(table)


def _read_hypotheses(profile: str) -> pd.DataFrame:
    """The decided hypotheses of a profile's records as text; later ones keep numbers alone."""
    path = data_dir() / "reference" / profile / "hypotheses.csv"
    if "hypothesis" in (text := pd.read_csv(path, dtype=str, keep_default_na=False)):
        return text
    rows = []
    for row in pd.read_csv(path).itertuples():
        found = {"hypothesis": f"{row.id} · {row.statement}", "paper": ""}
        if hasattr(row, "repeats"):  # the fourth analysis' S is called T
            found["hypothesis"] += f" ({row.repeats.replace('S', 'T')})"
        found |= {"difference": "", "simultaneous interval": "", "seeds": str(row.n)}
        if pd.notna(row.estimate):  # too few seeds have none
            # Analyses with intervals of both kinds name the simultaneous one.
            low, high = getattr(row, "all_low", row.low), getattr(row, "all_high", row.high)
            found["difference"] = signed(row.estimate)
            found["simultaneous interval"] = f"[{signed(low)}, {signed(high)}]"
        verdict = row.verdict.replace("not decided", "open")
        found |= {"p (Holm)": _p_as_text(row.holm), "verdict": verdict, "note": ""}
        if pd.notna(getattr(row, "beyond", math.nan)):  # a use: its hardest control
            low, high = signed(row.beyond_low), signed(row.beyond_high)
            found["note"] = f"beyond the free control {signed(row.beyond)} [{low}, {high}]"
        kind = "scaled test" if hasattr(row, "expected") else "our control"
        rows.append(found | {"kind of test": kind})
    return pd.DataFrame(rows)


def reworded_hypotheses(profile: str) -> pd.DataFrame:
    """The hypotheses of `_read_hypotheses` as chapters show them, one row each, all cells text.

    The first column, ``hypothesis``, is the id and the statement as it was registered, in the words
    of the chapters: matched isotropy for matched score, PC1 share for score, 0.20 for .20 (p, too).
    It also labels the rows of a figure. ``difference of`` says which condition is taken from which
    (no such column for objectives, whose S1 to S3 are others, and papers). Then ``difference``,
    ``simultaneous interval``, ``seeds``, ``p (Holm)``, ``verdict`` and, where a paper printed a
    number, ``paper``. Rows that are *not tested* have a dash for difference, interval and p: the
    isotropy at which they compare was not reached.

    Rows keep the order of the record, so that a slice such as ``[:3]`` is S1 to S3 of strength.
    A folder of a record, ``strength/one_device``, is read as well.
    """
    table = _read_hypotheses(profile)
    for registered, ours in REWORDED.items():
        table["hypothesis"] = table.hypothesis.str.replace(registered, ours, regex=True)
    table["p (Holm)"] = table["p (Holm)"].str.replace(r"^(< )?\.", r"\g<1>0.", regex=True)
    terms = {key: of for of, keys in SUBTRACTED.items() for key in keys.split()}
    table["difference of"] = table.hypothesis.str.partition(" ")[0].map(terms)
    if profile in ("objectives", "papers"):
        table["difference of"] = ""
    untested = ["difference", "simultaneous interval", "p (Holm)"]
    table.loc[table.verdict == "not tested", untested] = "\N{EN DASH}"
    shown = ["hypothesis", "difference of", *untested[:2], "seeds", "p (Holm)", "verdict", "paper"]
    return table[shown].loc[:, (table[shown] != "").any()]


def _hypotheses_command(profile: Profile) -> None:
    folders = (data_dir() / "reference").glob("*/hypotheses.csv")
    decided = sorted({path.parent.name for path in folders} & {*profile_names()})
    name = known_name("--profile", "profile with hypotheses", profile.name, decided)
    answer = _read_hypotheses(name)
    ours = answer.difference + " " + answer["simultaneous interval"]
    text = answer[["hypothesis", "verdict"]].assign(difference=ours)
    _print_table(text.join(answer[["seeds", "p (Holm)"]]), answer.note)
    print(ABOUT_HYPOTHESES)


def counted(verdicts: pd.Series) -> str:
    """How often each verdict is there, such as "3 supported, 1 open"."""
    return ", ".join(f"{n} {verdict}" for verdict, n in verdicts.value_counts().items())
