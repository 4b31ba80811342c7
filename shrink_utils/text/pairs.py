"""Pairs of texts made by rule: overlap taken for entailment, sentences and their translations.

The templates are after McCoy, Pavlick & Linzen (2019), *Right for the Wrong Reasons*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import regex

from shrink_utils.names import known_name
from shrink_utils.text.corpora import (
    WORD,
    as_texts,
    check_maximum,
    hash_order,
    load_sentences,
    spelled,
    stable_hash,
    text_key,
)

if TYPE_CHECKING:  # loaded when they are needed: datasets and transformers take seconds
    from datasets import Dataset, DatasetDict
    from transformers import PreTrainedTokenizerFast

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


class Template(NamedTuple):
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
TEMPLATES = [Template(*kind, *row) for kind, rows in PATTERNS.items() for row in rows]

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
    known_name("split", "split", split, SPLITS)
    known_name("lexicon", "lexicon", salt[-1], LEXICONS)
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


# Vowels become the next vowel, consonants the next consonant; other characters stay.
LETTERS = str.maketrans("aeioubcdfghjklmnpqrstvwxyz", "eiouacdfghjklmnpqrstvwxyzb")
CLAUSE = regex.compile(rf"{WORD.pattern}(?:\s+{WORD.pattern})*")  # words with only space between


def translate(sentence: str) -> str:
    """A sentence in a language made by rule: other words, in another order.

    Every word is replaced by another one, always the same: in lower case, each vowel by the next
    vowel and each consonant by the next consonant (a e i o u a; b c d f … z b). Within a clause,
    which is what stands between two punctuation marks, the words change places two by two.
    Translation can thus be learned without a bilingual corpus.

    Examples
    --------
    >>> translate("The cat sat on it, and I left.")
    'dev vji up tev ov, o epf migv.'
    """

    def clause(match: regex.Match) -> str:
        words = [spelled(word).translate(LETTERS) for word in WORD.findall(match.group())]
        even = len(words) // 2 * 2  # the last of an odd number stays
        words[0:even:2], words[1:even:2] = words[1:even:2], words[0:even:2]
        return " ".join(words)

    return CLAUSE.sub(clause, sentence)


HELD_OUT_PART = 10  # every tenth text, by its hash
MAX_HELD_OUT = 2048


@lru_cache(maxsize=4)
def load_pairs(source: str, *, n: int | None = None) -> DatasetDict:
    """Sentences and their translations, to train on and to judge by.

    Parameters
    ----------
    source
        A corpus of `load_sentences` (``"all"``, ``"movies"``, …), translated by `translate`.
    n
        At most so many sentences to train on; all of them when None.

    Returns
    -------
    datasets.DatasetDict
        Splits ``train`` and ``held_out`` with columns ``text`` and ``translation``.

    Raises
    ------
    ValueError
        Unknown ``source``, or ``n`` below 1.

    Notes
    -----
    A tenth of the texts, by the hash of each, is held out whatever ``n`` is, so that models that
    saw more or less are judged by the same sentences, at most 2,048 of them. Of equal texts (but
    for case and white space) all or none are. The order is hashed, and the first of it are taken:
    a smaller ``n`` gives a part of what a larger one does. Calls share one result: leave it as is.
    """
    from datasets import Dataset, DatasetDict

    check_maximum("n", n, "sentences")
    texts = load_sentences(source)["text"][:]
    sides: dict[str, list[str]] = {"train": [], "held_out": []}
    for i in hash_order(len(texts), "pairs", source):
        held_out = stable_hash("held_out", text_key(texts[i])) % HELD_OUT_PART == 0
        sides["held_out" if held_out else "train"].append(texts[i])
    chosen = {"train": sides["train"][:n], "held_out": sides["held_out"][:MAX_HELD_OUT]}
    columns = {k: {"text": v, "translation": [*map(translate, v)]} for k, v in chosen.items()}
    return DatasetDict({side: Dataset.from_dict(rows) for side, rows in columns.items()})


SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # their ids are 0 to 4


def train_tokenizer(texts: Iterable[str], *, vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a lower-case WordPiece tokenizer, in BERT's manner; equal texts give an equal one.

    Parameters
    ----------
    texts : iterable of str
    vocab_size : int
        Word-pieces at most, the five special tokens included. (More only where the characters
        alone are more.)

    Returns
    -------
    PreTrainedTokenizerFast
        Puts [CLS] before a text and [SEP] after it, and pads on the right.

    Raises
    ------
    ValueError
        No texts, or a vocabulary that only the special tokens would fill.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    texts = as_texts(texts)
    if vocab_size <= len(SPECIAL_TOKENS):
        raise ValueError(
            f"vocab_size: {vocab_size}, expected more than the {len(SPECIAL_TOKENS)} special tokens"
        )
    pad, unknown, start, end, mask = SPECIAL_TOKENS

    def word_pieces(vocabulary: dict[str, int] | None = None) -> Tokenizer:
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer

    # The trainer numbers the letters that go on a word as it meets them, in an order that differs
    # from process to process, and breaks ties between merges by those numbers. Naming these letters
    # beforehand settles both.
    trained = word_pieces()
    normal = trained.normalizer.normalize_str("\n".join(texts))
    once = " ".join(sorted(set(normal.split())))
    words = {word for word, _ in trained.pre_tokenizer.pre_tokenize_str(once)}
    inner = sorted({f"##{letter}" for word in words for letter in word[1:]})
    named = {"special_tokens": [*SPECIAL_TOKENS, *inner], "show_progress": False}
    trained.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=vocab_size, **named))
    tokenizer = word_pieces(trained.get_vocab())  # where these letters are pieces like any other
    tokenizer.post_processor = TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {end} $B {end}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (start, end)],
    )
    names = dict(pad_token=pad, unk_token=unknown, cls_token=start, sep_token=end, mask_token=mask)
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, padding_side="right", model_input_names=inputs, **names
    )
