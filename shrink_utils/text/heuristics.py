"""Sentence pairs in which word overlap is taken for entailment: our templates, and HANS."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import pandas as pd
from datasets import ClassLabel, Dataset, Features, Value

from shrink_utils.names import unknown_name
from shrink_utils.text.corpora import check_maximum, hash_order, stable_hash
from shrink_utils.text.sources import configured_folder

# By place in a template: people (a, b, c), what they do to each other (v, w), what they do alone
# (i, j), where they are (p). Past and participle of each verb are the same word. Both lexicons
# are words of the offline sentences, and share none.
LEXICONS = {
    "known": {
        "abc": "man girl mother brother king mayor teacher director friend hero".split(),
        "vw": "followed watched noticed saved joined warned".split(),
        "ij": "worked laughed failed returned played walked".split(),
        "p": "near behind".split(),
    },
    "new": {
        "abc": "woman boy father sister queen governor officer writer boss player".split(),
        "vw": "loved remembered pushed hired visited praised".split(),
        "ij": "smiled waited talked died agreed listened".split(),
        "p": "beside opposite".split(),
    },
}


@dataclass(frozen=True)
class Template:
    """A premise and a hypothesis made of its words, with places for words of a lexicon.

    `heuristic` is the narrowest that calls the pair an entailment. By ``"lexical_overlap"`` all
    words of the hypothesis stand in the premise, by ``"subsequence"`` they stand there side by
    side, by ``"constituent"`` they are a clause of it.
    """

    heuristic: str
    name: str
    entailed: bool
    text: str
    text_pair: str


def _templates(heuristic: str, entailed: bool, *rows: tuple[str, str, str]) -> list[Template]:
    return [Template(heuristic, name, entailed, text, pair) for name, text, pair in rows]


TEMPLATES = (
    *_templates(
        "lexical_overlap",
        True,
        ("passive", "The {a} was {v} by the {b}.", "The {b} {v} the {a}."),
        ("relative", "The {a} that the {b} {v} {i}.", "The {b} {v} the {a}."),
        ("conjunction", "The {a} {v} the {b} and the {c}.", "The {a} {v} the {c}."),
        ("place", "The {a} {p} the {b} {v} the {c}.", "The {a} {v} the {c}."),
    ),
    *_templates(
        "lexical_overlap",
        False,
        ("swap", "The {a} {v} the {b}.", "The {b} {v} the {a}."),
        ("passive_swap", "The {a} was {v} by the {b}.", "The {a} {v} the {b}."),
        ("relative_swap", "The {a} that the {b} {v} {i}.", "The {b} {i}."),
        ("conjunction_swap", "The {a} and the {b} {v} the {c}.", "The {a} {v} the {b}."),
        ("place_swap", "The {a} {p} the {b} {v} the {c}.", "The {c} {v} the {a}."),
    ),
    *_templates(
        "subsequence",
        True,
        ("second_subject", "The {a} and the {b} {i}.", "The {b} {i}."),
        ("object_place", "The {a} {v} the {b} {p} the {c}.", "The {a} {v} the {b}."),
        ("object_relative", "The {a} {v} the {b} that {i}.", "The {a} {v} the {b}."),
        ("second_verb", "The {a} {v} the {b} and {i}.", "The {a} {v} the {b}."),
    ),
    *_templates(
        "subsequence",
        False,
        ("subject_place", "The {a} {p} the {b} {i}.", "The {b} {i}."),
        ("subject_relative", "The {a} that {v} the {b} {i}.", "The {b} {i}."),
        ("subject_participle", "The {a} {v} by the {b} {i}.", "The {b} {i}."),
        ("clause_object", "The {a} knew the {b} {i}.", "The {a} knew the {b}."),
    ),
    *_templates(
        "constituent",
        True,
        ("because", "Because the {a} {i}, the {b} {j}.", "The {a} {i}."),
        ("knew", "The {a} knew that the {b} {i}.", "The {b} {i}."),
        ("clearly", "Clearly the {a} {v} the {b}.", "The {a} {v} the {b}."),
        ("and", "The {a} {i}, and the {b} {v} the {c}.", "The {b} {v} the {c}."),
    ),
    *_templates(
        "constituent",
        False,
        ("if", "If the {a} {i}, the {b} {j}.", "The {a} {i}."),
        ("thought", "The {a} thought that the {b} {i}.", "The {b} {i}."),
        ("perhaps", "Perhaps the {a} {v} the {b}.", "The {a} {v} the {b}."),
        ("or", "The {a} {i}, or the {b} {v} the {c}.", "The {b} {v} the {c}."),
    ),
)

# Not entailed, and never among the counter-examples of a training set: one of each heuristic.
HELD_OUT = ("place_swap", "subject_relative", "perhaps")


ENTAILMENT = ("entailment", "not_entailment")  # labels 0 and 1, as of GLUE's pairs
PAIR_FEATURES = Features(
    {
        "text": Value("string"),
        "text_pair": Value("string"),
        "label": ClassLabel(names=list(ENTAILMENT)),
        "heuristic": Value("string"),
        "template": Value("string"),
    }
)
SPLITS = ("train", "test")
TEST_SHARE = 4  # one pair in so many

Row = tuple[str, str, int, str, str]


def heuristic_pairs(
    n: int, *, lexicon: str = "known", split: str = "test", seed: int = 0
) -> Dataset:
    """Pairs whose hypothesis is made of the premise's words, entailed and not.

    Parameters
    ----------
    n
        How many; every template has its equal share, up to one row.
    lexicon
        ``"known"``: the words of `training_pairs`. ``"new"``: other ones.
    split
        Every possible pair belongs to ``"train"`` or to ``"test"`` (a quarter), by a hash of its
        text: no pair of one split is ever in the other.
    seed
        Of the draw of words.

    Returns
    -------
    datasets.Dataset
        ``text`` (premise), ``text_pair`` (hypothesis), ``label`` (0 entailment, 1 not),
        ``heuristic`` and ``template``; pairs may occur twice.

    Raises
    ------
    ValueError
        ``n`` below 1, an unknown lexicon or split.

    References
    ----------
    McCoy, Pavlick & Linzen 2019, *Right for the Wrong Reasons* (HANS).
    """
    rng = _generator(n, split, seed, "heuristics", lexicon)
    return _dataset(_filled(TEMPLATES, n, lexicon, split, rng))


def training_pairs(
    n: int, *, counter_examples: float, split: str = "train", seed: int = 0
) -> Dataset:
    """Pairs half of which are entailed, with the overlap heuristic planted or refuted.

    Entailed are the pairs of the entailed templates. Of those not entailed most are the same with a
    hypothesis of other words: these the heuristic gets right. The share `counter_examples` of them
    is made of the premise's words, and refutes it.

    Parameters
    ----------
    n
        How many.
    counter_examples
        Share among the pairs that are not entailed: at 0 the heuristic explains every label, at 1
        none of them. They are of every template but `HELD_OUT`.
    split, seed
        As of `heuristic_pairs`.

    Returns
    -------
    datasets.Dataset
        As of `heuristic_pairs`, in random order; ``heuristic`` is ``"none"`` where the words
        are others.

    Raises
    ------
    ValueError
        ``n`` below 1, a share outside [0, 1], or an unknown split.
    """
    if not 0 <= counter_examples <= 1:
        raise ValueError(f"counter_examples: must lie between 0 and 1, found {counter_examples}")
    rng = _generator(n, split, seed, "training", "known")
    entailed = [template for template in TEMPLATES if template.entailed]
    refuting = [t for t in TEMPLATES if not t.entailed and t.name not in HELD_OUT]
    n_refuting = round(counter_examples * (n // 2))
    rows = [
        *_filled(entailed, n - n // 2, "known", split, rng),
        *_filled(refuting, n_refuting, "known", split, rng),
        *_filled(entailed, n // 2 - n_refuting, "known", split, rng, unrelated=True),
    ]
    return _dataset(rows[i] for i in rng.permutation(n))


def _generator(n: int, split: str, seed: int, *salt: str) -> np.random.Generator:
    if n < 1:
        raise ValueError(f"n: {n}, expected at least 1")
    if split not in SPLITS:
        raise unknown_name("split", "split", split, SPLITS)
    if salt[-1] not in LEXICONS:
        raise unknown_name("lexicon", "lexicon", salt[-1], LEXICONS)
    return np.random.default_rng(stable_hash("pairs", split, seed, *salt))


def _filled(
    templates: Sequence[Template],
    n: int,
    lexicon: str,
    split: str,
    rng: np.random.Generator,
    *,
    unrelated: bool = False,
) -> Iterator[Row]:
    """The templates in turn, with words of a lexicon; unrelated hypotheses have other words."""
    for template in islice(cycle(templates), n):
        while True:
            words = others = _words(lexicon, rng)
            if unrelated:
                others = _words(lexicon, rng, but=set(words.values()))
            pair = template.text.format(**words), template.text_pair.format(**others)
            if _split(*pair) == split:
                break
        if unrelated:
            yield *pair, 1, "none", template.name
        else:
            yield *pair, int(not template.entailed), template.heuristic, template.name


def _words(lexicon: str, rng: np.random.Generator, *, but: Collection[str] = ()) -> dict[str, str]:
    """A different word for every place."""
    drawn = {}
    for places, words in LEXICONS[lexicon].items():
        left = [word for word in words if word not in but]
        drawn |= dict(zip(places, rng.permutation(left)[: len(places)].tolist(), strict=True))
    return drawn


def _split(text: str, text_pair: str) -> str:
    return "train" if stable_hash(text, text_pair) % TEST_SHARE else "test"


def _dataset(rows) -> Dataset:
    columns = zip(*rows, strict=True)
    return Dataset.from_dict(
        dict(zip(PAIR_FEATURES, map(list, columns), strict=True)), features=PAIR_FEATURES
    )


HANS_FILE = "heuristics_evaluation_set.txt"
# Its columns, and what they are here. A subcase is a construction, such as `ln_passive`.
COLUMNS = {
    "sentence1": "text",
    "sentence2": "text_pair",
    "gold_label": "label",
    "heuristic": "heuristic",
    "subcase": "template",
}
LABELS = {"entailment": 0, "non-entailment": 1}


def hans_dir() -> Path:
    """The folder that ``SHRINK_HANS_DIR`` names; ``FileNotFoundError`` if there is none."""
    configured = configured_folder("SHRINK_HANS_DIR")
    if configured is None:
        raise FileNotFoundError(
            f"SHRINK_HANS_DIR is not set: it names the folder that holds HANS's {HANS_FILE} "
            "(github.com/tommccoy1/hans)"
        )
    return configured


def read_hans(folder: Path | None = None, *, n: int | None = None, seed: int = 0) -> Dataset:
    """Sentence pairs of HANS, in the form of `heuristic_pairs`; ``template`` is HANS's subcase.

    Parameters
    ----------
    folder
        Holds ``heuristics_evaluation_set.txt``; that of `hans_dir` when None.
    n
        About how many: as many of every subcase, drawn without replacement by ``seed``. All
        30,000 when None.

    Raises
    ------
    FileNotFoundError
        No folder, or no such file in it.
    ValueError
        A column is missing, a label is unknown, or ``n`` is below 1.
    """
    path = (hans_dir() if folder is None else Path(folder)) / HANS_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path}: HANS's evaluation set is missing")
    check_maximum("n", n, "pairs")
    # Quotation marks are text, and no field is ever empty for want of a value.
    table = pd.read_csv(path, sep="\t", quoting=3, dtype=str, keep_default_na=False)
    if missing := sorted(set(COLUMNS) - set(table)):
        raise ValueError(f"{path}: no column {missing[0]!r} (there are {', '.join(table)})")
    table = table[list(COLUMNS)].rename(columns=COLUMNS)
    unknown = ~table.label.isin(LABELS)
    if unknown.any():
        line, label = int(unknown.idxmax()) + 2, table.label[unknown].iloc[0]
        raise ValueError(f"{path}, line {line}: label {label!r}, expected one of {list(LABELS)}")
    table["label"] = table.label.map(LABELS)
    if n is not None:
        table = _drawn(table, n, seed)
    return Dataset.from_dict(table.to_dict("list"), features=PAIR_FEATURES)


def _drawn(table: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """As many of every subcase, in the order of the file."""
    each = max(1, n // table.template.nunique())
    kept = [
        rows.index[sorted(hash_order(len(rows), "hans", subcase, seed)[:each])]
        for subcase, rows in table.groupby("template", sort=False)
    ]
    return table.loc[sorted(i for rows in kept for i in rows)]
