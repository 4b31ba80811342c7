"""Pairs of texts made by rule: overlap taken for entailment.

The templates are after McCoy, Pavlick & Linzen (2019), *Right for the Wrong Reasons*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shrink_utils.names import known_name
from shrink_utils.text.corpora import stable_hash

if TYPE_CHECKING:  # loaded when it is needed: datasets takes seconds
    from datasets import Dataset

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


class _Template(NamedTuple):
    """A premise and a hypothesis made of its words, with places for words of a lexicon.

    `heuristic` is the narrowest that calls the pair an entailment. By ``"lexical_overlap"`` all
    words of the hypothesis stand in the premise, by ``"subsequence"`` they stand there side by
    side, by ``"constituent"`` they are a clause of it.
    """

    heuristic: str
    entailed: bool
    name: str
    text: str
    text_pair: str


PATTERNS = {
    ("lexical_overlap", True): [
        ("passive", "The {a} was {v} by the {b}.", "The {b} {v} the {a}."),
        ("relative", "The {a} that the {b} {v} {i}.", "The {b} {v} the {a}."),
        ("conjunction", "The {a} {v} the {b} and the {c}.", "The {a} {v} the {c}."),
        ("place", "The {a} {p} the {b} {v} the {c}.", "The {a} {v} the {c}."),
    ],
    ("lexical_overlap", False): [
        ("swap", "The {a} {v} the {b}.", "The {b} {v} the {a}."),
        ("passive_swap", "The {a} was {v} by the {b}.", "The {a} {v} the {b}."),
        ("relative_swap", "The {a} that the {b} {v} {i}.", "The {b} {i}."),
        ("conjunction_swap", "The {a} and the {b} {v} the {c}.", "The {a} {v} the {b}."),
        ("place_swap", "The {a} {p} the {b} {v} the {c}.", "The {c} {v} the {a}."),
    ],
    ("subsequence", True): [
        ("second_subject", "The {a} and the {b} {i}.", "The {b} {i}."),
        ("object_place", "The {a} {v} the {b} {p} the {c}.", "The {a} {v} the {b}."),
        ("object_relative", "The {a} {v} the {b} that {i}.", "The {a} {v} the {b}."),
        ("second_verb", "The {a} {v} the {b} and {i}.", "The {a} {v} the {b}."),
    ],
    ("subsequence", False): [
        ("subject_place", "The {a} {p} the {b} {i}.", "The {b} {i}."),
        ("subject_relative", "The {a} that {v} the {b} {i}.", "The {b} {i}."),
        ("subject_participle", "The {a} {v} by the {b} {i}.", "The {b} {i}."),
        ("clause_object", "The {a} knew the {b} {i}.", "The {a} knew the {b}."),
    ],
    ("constituent", True): [
        ("because", "Because the {a} {i}, the {b} {j}.", "The {a} {i}."),
        ("knew", "The {a} knew that the {b} {i}.", "The {b} {i}."),
        ("clearly", "Clearly the {a} {v} the {b}.", "The {a} {v} the {b}."),
        ("and", "The {a} {i}, and the {b} {v} the {c}.", "The {b} {v} the {c}."),
    ],
    ("constituent", False): [
        ("if", "If the {a} {i}, the {b} {j}.", "The {a} {i}."),
        ("thought", "The {a} thought that the {b} {i}.", "The {b} {i}."),
        ("perhaps", "Perhaps the {a} {v} the {b}.", "The {a} {v} the {b}."),
        ("or", "The {a} {i}, or the {b} {v} the {c}.", "The {b} {v} the {c}."),
    ],
}
TEMPLATES = [_Template(*kind, *row) for kind, rows in PATTERNS.items() for row in rows]

# Not entailed, and never among the counter-examples of a training set: one of each heuristic.
HELD_OUT = ("place_swap", "subject_relative", "perhaps")
ENTAILMENT = ["entailment", "not_entailment"]  # labels 0 and 1, as of GLUE's pairs
SPLITS = ("train", "test")
TEST_SHARE = 4  # one pair in so many

PAIR_COLUMNS = ("text", "text_pair", "label", "heuristic", "template")
Row = tuple[str, str, int, str, str]  # one of each


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

    Examples
    --------
    >>> heuristic_pairs(3, lexicon="known", split="train").num_rows
    3
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

    Examples
    --------
    >>> training_pairs(4, counter_examples=0.5, seed=0).num_rows
    4
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
    known_name("split", "split", split, SPLITS)
    known_name("lexicon", "lexicon", salt[-1], LEXICONS)
    return np.random.default_rng(stable_hash("pairs", split, seed, *salt))


def _filled(
    templates: Sequence[_Template],
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
            if (split == "train") == bool(stable_hash(*pair) % TEST_SHARE):
                break
        heuristic = "none" if unrelated else template.heuristic
        yield *pair, int(unrelated or not template.entailed), heuristic, template.name


def _words(lexicon: str, rng: np.random.Generator, *, but: Collection[str] = ()) -> dict[str, str]:
    """A different word for every place."""
    drawn = {}
    for places, words in LEXICONS[lexicon].items():
        left = [word for word in words if word not in but]
        drawn |= dict(zip(places, rng.permutation(left)[: len(places)].tolist(), strict=True))
    return drawn


def _dataset(rows: Iterable[Row]) -> Dataset:
    from datasets import ClassLabel, Dataset, Features, Value

    kinds = dict.fromkeys(PAIR_COLUMNS, Value("string")) | {"label": ClassLabel(names=ENTAILMENT)}
    columns = dict(zip(PAIR_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    return Dataset.from_dict(columns, features=Features(kinds))
