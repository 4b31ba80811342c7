"""Premises and hypotheses in which overlap means entailment, or only seems to.

`heuristic_pairs` is the test, after HANS; `training_pairs` makes training sets in which the
heuristic is planted (overlap always means entailment) or refuted by counter-examples.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import cycle, islice

import numpy as np
from datasets import ClassLabel, Dataset, Features, Value

from shrink_utils.names import unknown_name
from shrink_utils.text.corpora import stable_hash
from shrink_utils.text.heuristic_templates import HELD_OUT, LEXICONS, TEMPLATES, Template

__all__ = ["ENTAILMENT", "PAIR_FEATURES", "heuristic_pairs", "training_pairs"]

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
        *_unrelated(entailed, n // 2 - n_refuting, split, rng),
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
    templates: Sequence[Template], n: int, lexicon: str, split: str, rng: np.random.Generator
) -> Iterator[Row]:
    """The templates in turn, with words of a lexicon."""
    for template in islice(cycle(templates), n):
        while True:
            words = _words(lexicon, rng)
            pair = template.text.format(**words), template.text_pair.format(**words)
            if _split(*pair) == split:
                break
        yield *pair, int(not template.entailed), template.heuristic, template.name


def _unrelated(
    templates: Sequence[Template], n: int, split: str, rng: np.random.Generator
) -> Iterator[Row]:
    """The same, with none of the premise's words of the lexicon in the hypothesis."""
    for template in islice(cycle(templates), n):
        while True:
            words = _words("known", rng)
            others = _words("known", rng, but=set(words.values()))
            pair = template.text.format(**words), template.text_pair.format(**others)
            if _split(*pair) == split:
                break
        yield *pair, 1, "none", template.name


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
