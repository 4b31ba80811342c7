"""A language made by rule, so that translation can be learned without a bilingual corpus."""

from __future__ import annotations

import re

__all__ = ["translate"]

# Vowels become the next vowel, consonants the next consonant; other characters stay.
LETTERS = str.maketrans("aeioubcdfghjklmnpqrstvwxyz", "eiouacdfghjklmnpqrstvwxyzb")
WORD = re.compile(r"\w+(?:['’]\w+)*")  # don't is one word
CLAUSE = re.compile(rf"{WORD.pattern}(?:\s+{WORD.pattern})*")  # words with only space between


def translate(sentence: str) -> str:
    """A sentence in the rule-made language: other words, in another order.

    Two rules. Every word is replaced by another one, always the same: in lower case, each vowel by
    the next vowel and each consonant by the next consonant (a e i o u a; b c d f … z b). And within
    a clause, which is what stands between two punctuation marks, the words change places two by
    two: the first with the second, the third with the fourth. Punctuation stays where it is.

    Parameters
    ----------
    sentence : str

    Returns
    -------
    str

    Examples
    --------
    >>> translate("The cat sat on it, and I left.")
    'dev vji up tev ov, o epf migv.'
    """

    def clause(match: re.Match) -> str:
        words = [word.lower().translate(LETTERS) for word in WORD.findall(match.group())]
        even = len(words) // 2 * 2  # the last of an odd number stays
        words[0:even:2], words[1:even:2] = words[1:even:2], words[0:even:2]
        return " ".join(words)

    return CLAUSE.sub(clause, sentence)
