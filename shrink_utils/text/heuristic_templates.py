"""Sentence pairs that invite a reader to look no further than at the words: our own templates.

They follow the three heuristics that McCoy et al. diagnose, in which *overlap* is taken for
entailment. None of their sentences and none of their words for people is used.

References
----------
McCoy, Pavlick & Linzen 2019, *Right for the Wrong Reasons: Diagnosing Syntactic Heuristics in
Natural Language Inference* (ACL), section 2 and appendix B.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HELD_OUT", "HEURISTICS", "LEXICONS", "TEMPLATES", "Template"]

HEURISTICS = ("lexical_overlap", "subsequence", "constituent")

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

    `heuristic` is the narrowest of `HEURISTICS` that calls the pair an entailment: all words of the
    hypothesis stand in the premise, or stand there side by side, or are a clause of it.
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
