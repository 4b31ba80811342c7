"""Corpora, the definition of a word, and the door through which texts come in."""

import csv
import html
from unicodedata import normalize

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset

from shrink_utils.text import CORPORA, corpora, load_sentences, read_snippets, source_path
from shrink_utils.text.corpora import WORD, as_texts, refuse_unspaced, spelled
from shrink_utils.text.sources import lines_of

COUNTS = {"movies": 10_605, "products": 3_708, "editorials": 5_190, "tweets": 4_200}


@pytest.mark.parametrize("source", CORPORA)
def test_snippets_are_the_fields_of_the_file(source):
    snippets = read_snippets(source)  # fetches the file, too
    path = source_path("vader_sentiment") / CORPORA[source]
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(snippets) == COUNTS[source]
    numbered = source in ("products", "editorials")
    found = [
        (f"{s.document}_{s.position}" if numbered else s.document, s.rating, s.text)
        for s in snippets
    ]
    assert found == [(f"{source}/{i}", float(r), html.unescape(t).strip()) for i, r, t in rows]
    assert all(-4 <= s.rating <= 4 for s in snippets)


def test_a_draw_of_sentences_is_by_seed_without_replacement_and_in_the_order_of_the_file():
    sentences = load_sentences("all")
    assert sentences["source"][:] == [name for name, n in COUNTS.items() for _ in range(n)]
    assert sentences.column_names == ["text", "document", "source"]
    draws = [load_sentences("editorials", n=300, seed=seed)["text"][:] for seed in (4, 4, 5)]
    assert draws[0] == draws[1] != draws[2] and len(draws[0]) == 300
    remaining = iter(load_sentences("editorials", n=10**6)["text"])
    assert all(text in remaining for text in draws[0])  # a subsequence


WORDS = {
    "vowel signs are marks": ["हिन्दी भाषा", "தமிழ் மொழி", "বাংলা ভাষা", "العَرَبِيَّة لغة", "עִבְרִית שפה"],
    "joined inside a word": ["می‌خواهم بروم", 'צה״ל צה"ל', "col·lecció l'home", "rock'n'roll don’t"],
    "a quotation mark that is a letter": ["o‘zbekiston g‘alaba", "ka‘ba hawai‘i"],
    "marks that Unicode has as letters": ["ինչո՞ւ այո", "ab‧cd ef", "a＿b c"],
    "composed or not": ["tiếng Việt", "naïve café", "한국어 문장", "слово дело"],
    "words that stand apart": ["コンピューター ゲーム", "我 喜欢 狗", "ฉัน รัก ภาษา"],
}


@pytest.mark.parametrize("text", [text for texts in WORDS.values() for text in texts])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_word_keeps_its_letters_and_marks_composed_or_not(text, form):
    expected = [normalize("NFC", part.lower()) for part in text.split()]
    assert [spelled(word) for word in WORD.findall(normalize(form, text))] == expected
    refuse_unspaced([text])


def test_no_word_goes_across_a_full_stop_a_colon_or_a_quotation_mark_at_its_ends():
    text = "the end.Next a:b e．g ‘quoted’ “so” բարև՜ 10,000 a·"
    found = [spelled(word) for word in WORD.findall(text)]
    assert found == [*"the end next a b e g quoted so".split(), "բարև", "10", "000", "a"]


def test_joints_that_are_not_seen_are_no_letters_and_marks_alone_no_words():
    found = WORD.findall("co\u00adoperate ❤\ufe0f \u0903\u0301 \u200b a\u200bb …! 9 x_1 👩\u200d👧")
    assert [spelled(word) for word in found] == ["cooperate", "a", "b", "9", "x_1"]


@pytest.mark.parametrize(
    "text",
    [
        *("我喜欢狗。", "私は犬が好きです", "ฉันรักภาษาไทย", "ខ្ញុំស្រឡាញ់ភាសាខ្មែរ"),
        *("မြန်မာဘာသာစကား", "ຂ້ອຍຮັກພາສາລາວ", "བོད་ཡིག་སྐད་ཡིག"),
    ],
)
def test_a_script_without_spaces_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match=r"of a script without spaces between words, such as '.*'"):
        refuse_unspaced([text, "three words apart"[:9]])
    refuse_unspaced([text, "a name in a long text of another script " * 9])


@pytest.mark.parametrize(
    "make",
    [
        *(list, tuple, iter, np.array, pa.array, lambda x: np.array(x, dtype=object)),
        *(lambda x: pd.Series(x, index=[5, 0, 5]), lambda x: dict.fromkeys(x).keys()),
        *(lambda x: (t for t in x), lambda x: pd.Series(x, dtype="category"), pd.Index),
        *(lambda x: Dataset.from_dict({"t": x})["t"], lambda x: pa.chunked_array([x[:1], x[1:]])),
    ],
)
def test_texts_are_read_by_position_from_whatever_holds_them(make):
    texts = ["b", "a dog", ""]
    found = as_texts(make(texts))
    assert found == texts and {type(text) for text in found} == {str}


NO_TEXTS = (b"a", {"a": 1}, {"a"}, 3, None, np.array("a"), pd.DataFrame({"text": ["a"]}))


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (as_texts, "one text", "texts: a string, expected a list of texts"),
        *((as_texts, x, "texts: a .*, expected a list") for x in NO_TEXTS),
        (as_texts, [], "texts: empty"),
        *((as_texts, ["a", x], "texts: item 1 is .*, expected a str") for x in (3, None, b"a")),
        (as_texts, ["a", "dog \ud83d"], "texts: item 1, .*, holds half a surrogate pair"),
        (load_sentences, "editorial", "no corpus 'editorial', did you mean 'editorials'"),
        (lambda n: load_sentences("movies", n=n), 0, "n: 0"),
        (read_snippets, "tweets", r"tweets_GroundTruth\.txt, line 2: 2 fields"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, monkeypatch, call, given, message):
    (tmp_path / CORPORA["tweets"]).write_bytes(b"1\t0.5\tgood\r\n2\t-1\r\n")
    monkeypatch.setattr(corpora, "fetch", lambda name: tmp_path)
    with pytest.raises(ValueError, match=message):
        call(given)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_only_line_ends_end_a_line(end, mark):
    lines = [f"a{x}b" for x in "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"]
    assert lines_of((mark + end.join([*lines, "c"]) + end).encode()) == [*lines, "c"]
    assert lines_of(b"a\rb\nc") == ["a\rb", "c"]
