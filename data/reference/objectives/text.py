"""The texts of profile objectives: verses in English and Greek, and a program's messages.

Both are fetched when first needed. Every function that leaves something out counts it.
"""

from __future__ import annotations

import gettext
import html
import json
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pandas as pd

from shrink_utils.text import fetch
from shrink_utils.text.corpora import WORD, hash_order, spelled, stable_hash, text_key

# Books of the held-out side by number. Books that tell the same story word for word are never
# parted: Matthew, Mark and Luke; Samuel, Kings and Chronicles.
HELD_OUT_NEW = ("43", "59")  # John, James
HELD_OUT_OLD = ("01",)  # Genesis
SHARED = 8  # words in a row that a held-out text may not share with training
FIELD = "□"  # what a program fills in; one symbol, which no message contains
LANGUAGES = ("german", "finnish")
HELD_OUT_PART = 10  # one message in so many
LEAST_WORDS = 3
COLUMNS = ["id", "source_verse", "text", "skip_space_after", "exclude"]
FIELDS = re.compile(r"%(?:\([^()]*\))?[-+#0]*\d*(?:\.\d+)?[a-zA-Z]|%\([^()]*\)|\{[^{}]*\}")
TAGS = re.compile(r"</?[A-Za-z][^<>]*>")
MNEMONIC = re.compile(r"(?<![^\W_])_(?=[^\W_])|(?<=[^\W_])_(?=[^\W_])")


@dataclass(frozen=True)
class Verse:
    """One verse, words in order; `greek` is empty where there is none."""

    id: str  # book (2), chapter (3), verse (3)
    english: tuple[str, ...]
    greek: tuple[str, ...] = ()


def read_words(path: Path, *, greek: bool = False) -> dict[str, list[str]]:
    """Words of a table by verse, in the order of the table.

    What is marked ``exclude = y`` is punctuation, which the Greek side does not have: it is left
    out of the English side too, so that both languages and all objectives read words alone.

    Raises
    ------
    ValueError
        The table lacks a column, or an id is not a verse's.
    """
    # Read as strings: 01001001 has a leading zero, and "None" or "NA" may be words.
    table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False, quoting=3)
    wanted = COLUMNS[:1] + COLUMNS[2:3] if greek else COLUMNS
    if missing := set(wanted) - set(table):
        raise ValueError(f"{path}: no column {sorted(missing)}, found {list(table)}")
    if greek:  # n40001001001: a prefix, then the verse
        verses, kept = table.id.str.slice(1, 9), table.id.str.startswith("n")
        if not kept.all():
            raise ValueError(f"{path}: id {table.id[~kept].iloc[0]!r}, expected one that begins n")
    else:
        verses, kept = table.source_verse, table.exclude != "y"
    if strange := verses[~verses.str.fullmatch(r"\d{8}")].tolist():
        raise ValueError(f"{path}: verse {strange[0]!r}, expected eight digits")
    found: dict[str, list[str]] = {}
    for verse, word, keep in zip(verses, table.text, kept, strict=True):
        if keep and word.strip():
            found.setdefault(verse, []).append(word.strip())
    return found


def testament(folder: Path | None = None) -> tuple[list[Verse], Counter]:
    """Verses of the New Testament that both languages have, and counts of what was left out.

    Joined on the English table's ``source_verse``; a verse of one side only is left out.
    """
    folder = folder or fetch("bible")
    english = read_words(folder / "nt_BSB.tsv")
    greek = read_words(folder / "SBLGNT.tsv", greek=True)
    both = sorted(english.keys() & greek.keys())
    counts = Counter(
        verses=len(both),
        english_only=len(english.keys() - greek.keys()),
        greek_only=len(greek.keys() - english.keys()),
    )
    made = [Verse(v, tuple(english[v]), tuple(greek[v])) for v in both]
    counts["english_words"] = sum(len(verse.english) for verse in made)
    counts["greek_words"] = sum(len(verse.greek) for verse in made)
    return made, counts


def older_verses(folder: Path | None = None) -> list[Verse]:
    """The Old Testament, in English alone."""
    words = read_words((folder or fetch("bible")) / "ot_BSB.tsv")
    return [Verse(v, tuple(words[v])) for v in sorted(words)]


def parted(
    verses: Iterable[Verse], held_out: Collection[str]
) -> tuple[list[Verse], list[Verse], int]:
    """Training and held-out verses by book, and how many held-out ones were dropped.

    Dropped is a verse that shares eight English words in a row with training.
    """
    train, rest = [], []
    for verse in verses:
        (rest if verse.id[:2] in held_out else train).append(verse)
    known = {part for verse in train for part in _runs(verse.english)}
    kept = [verse for verse in rest if known.isdisjoint(_runs(verse.english))]
    return train, kept, len(rest) - len(kept)


def _runs(words: Sequence[str]) -> set[tuple[str, ...]]:
    small = [word.casefold() for word in words]
    return {tuple(small[i : i + SHARED]) for i in range(len(small) - SHARED + 1)}


def cleaned(message: str) -> str:
    """A message without context, tags, entities and mnemonics; every field is one symbol."""
    message = message.partition("\x04")[2] or message
    parts = html.unescape(TAGS.sub(" ", message)).split("%%")  # two are one, and no field
    return " ".join(MNEMONIC.sub("", "%".join(FIELDS.sub(f" {FIELD} ", p) for p in parts)).split())


def messages(language: str, folder: Path | None = None) -> tuple[list[tuple[str, str]], Counter]:
    """Messages of Gramps in English and another language, and counts of what was left out.

    Singular messages of three English words or more, without equal and repeated pairs, in an order
    that is hashed from the English text.

    Raises
    ------
    ValueError
        An unknown language, or a catalogue that gettext cannot read.
    """
    if language not in LANGUAGES:
        raise ValueError(f"language: {language!r}, expected one of {', '.join(LANGUAGES)}")
    path = (folder or fetch(f"gramps_{language}")) / "gramps.mo"
    try:
        with open(path, "rb") as file:  # its plural forms are never asked for
            catalogue = gettext.GNUTranslations(file)._catalog
    except (OSError, ValueError, struct.error) as error:
        raise ValueError(f"{path}: no catalogue that gettext reads ({error})") from error
    counts, pairs = Counter(), {}
    for message, translation in catalogue.items():
        if not isinstance(message, str) or not message:  # plural forms, and the header
            counts["plural_or_header"] += 1
            continue
        english, other = cleaned(message), cleaned(translation)
        if len(WORD.findall(english)) < LEAST_WORDS or not other:
            counts["short_or_untranslated"] += 1
        elif text_key(english) == text_key(other):
            counts["equal"] += 1
        elif text_key(english) in pairs:
            counts["repeated"] += 1
        else:
            pairs[text_key(english)] = (english, other)
    counts["pairs"] = len(pairs)
    ordered = sorted(pairs, key=lambda key: stable_hash("gramps", key))
    return [pairs[key] for key in ordered], counts


def message_parts(pairs: Iterable[tuple[str, str]]) -> tuple[list, list, int]:
    """Training and held-out messages by a hash of the English one, and how many were dropped."""
    train, rest = [], []
    for pair in pairs:
        held_out = stable_hash("held_out", text_key(pair[0])) % HELD_OUT_PART == 0
        (rest if held_out else train).append(pair)
    known = {part for english, _ in train for part in _runs(words_of(english))}
    kept = [pair for pair in rest if known.isdisjoint(_runs(words_of(pair[0])))]
    return train, kept, len(rest) - len(kept)


def words_of(text: str) -> list[str]:
    """Words in lower case."""
    return [spelled(word) for word in WORD.findall(text)]


@dataclass(frozen=True)
class Texts:
    """What a training reads: texts and, for translation, what they become; words are joined."""

    train: list[tuple[str, str]]
    held_out: list[tuple[str, str]]


def joined(verses: Iterable[Verse]) -> list[tuple[str, str]]:
    """English and Greek texts of verses."""
    return [(" ".join(v.english), " ".join(v.greek)) for v in verses]


@cache
def texts(source: str) -> Texts:
    """The texts of one training.

    ``testament`` (English to Greek); ``bible`` (all English verses); ``half`` (half of the
    Testament's training verses, drawn by hash); ``german`` and ``finnish`` (Gramps, in that
    language alone); ``gramps`` (Gramps in English).
    """
    if source in ("testament", "half", "bible"):
        train, held_out, _ = parted(testament()[0], HELD_OUT_NEW)
        if source == "half":
            train = [train[i] for i in hash_order(len(train), "half")[: len(train) // 2]]
        if source == "bible":  # shared words are looked for in both Testaments
            verses = [*train, *held_out, *older_verses()]
            train, held_out, _ = parted(verses, HELD_OUT_NEW + HELD_OUT_OLD)
            train, held_out = ([replace(v, greek=()) for v in part] for part in (train, held_out))
        return Texts(joined(train), joined(held_out))
    if source not in (*LANGUAGES, "gramps"):
        raise ValueError(f"source: {source!r}, expected testament, half, bible, gramps or language")
    train, held_out, _ = message_parts(messages("german" if source == "gramps" else source)[0])
    side = 0 if source == "gramps" else 1
    return Texts(*([(pair[side], "") for pair in part] for part in (train, held_out)))


def counts() -> dict[str, dict[str, int]]:
    """All counts of the page."""
    new, of_new = testament()
    found: dict[str, dict[str, int]] = {"testament": dict(of_new)}
    for name, verses, books in (
        ("testament", new, HELD_OUT_NEW),
        ("bible", [*new, *older_verses()], HELD_OUT_NEW + HELD_OUT_OLD),
    ):
        train, held_out, dropped = parted(verses, books)
        found[name] = found.get(name, {}) | {
            "train": len(train), "held_out": len(held_out), "dropped": dropped,
        }  # fmt: skip
    for language in LANGUAGES:
        pairs, of_pairs = messages(language)
        train, held_out, dropped = message_parts(pairs)
        split = {"train": len(train), "held_out": len(held_out), "dropped": dropped}
        found[language] = dict(of_pairs) | split
    return found


if __name__ == "__main__":
    print(json.dumps(counts(), indent=1))
