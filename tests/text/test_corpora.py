"""Corpora: their snippets, sentences drawn from them, and the lines of a file."""

import csv
import html

import pytest
from transformers import AutoTokenizer

from shrink_utils.sources import lines_of, source_path
from shrink_utils.text import CORPORA, corpora, load_sentences, read_snippets
from shrink_utils.text.corpora import split_sentences, train_tokenizer

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


def test_a_planted_corpus_is_read_and_changes_no_other_number(tmp_path, monkeypatch):
    before = {name: load_sentences(name, n=50)["text"][:] for name in ("all", *COUNTS)}
    (tmp_path / "own.txt").write_text("1_1\t0.5\tgood\n1_2\t-1\tbad\n")
    fetched = source_path("vader_sentiment")
    for file in CORPORA.values():
        (tmp_path / file).symlink_to(fetched / file)
    monkeypatch.setitem(CORPORA, "own", "own.txt")
    monkeypatch.setattr(corpora, "fetch", lambda name: tmp_path)
    assert load_sentences("own")["text"][:] == ["good", "bad"]
    assert {name: load_sentences(name, n=50)["text"][:] for name in before} == before


def test_a_draw_of_sentences_is_by_seed_without_replacement_and_in_the_order_of_the_file():
    sentences = load_sentences("all")
    assert sentences["source"][:] == [name for name, n in COUNTS.items() for _ in range(n)]
    assert sentences.column_names == ["text", "document", "source"]
    draws = [load_sentences("editorials", n=300, seed=seed)["text"][:] for seed in (4, 4, 5)]
    assert draws[0] == draws[1] != draws[2] and len(draws[0]) == 300
    remaining = iter(load_sentences("editorials", n=10**6)["text"])
    assert all(text in remaining for text in draws[0])  # a subsequence


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (lambda n: load_sentences("movies", n=n), 0, "n: 0"),
        (split_sentences, "movie", "'movie', did you mean 'movies'"),
        (lambda text: train_tokenizer(text, vocab_size=100), "a text", "texts: a string"),
        (lambda n: train_tokenizer(["a"], vocab_size=n), 5, "vocab_size: 5"),
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


def test_no_text_is_on_both_sides_and_about_a_tenth_is_held_out():
    rows = split_sentences("editorials")
    sides = [{" ".join(t.casefold().split()) for t in rows[side]["text"]} for side in rows]
    n = len(load_sentences("editorials"))
    assert not sides[0] & sides[1] and len(rows["train"]) + len(rows["held_out"]) == n
    assert 0.08 * n < len(rows["held_out"]) < 0.12 * n
    few = split_sentences("editorials", n=20)
    assert few["train"]["text"][:] == rows["train"]["text"][:20]
    assert few["held_out"]["text"][:] == rows["held_out"]["text"][:]


def test_a_trained_tokenizer_spells_its_texts_and_survives_a_folder(tmp_path):
    texts = load_sentences("all", n=300)["text"][:]
    tokenizer = train_tokenizer(texts, vocab_size=400)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokenizer.convert_tokens_to_ids(names) == [0, 1, 2, 3, 4] and len(tokenizer) == 400
    assert all(ids[0] == 2 and ids[-1] == 3 and 1 not in ids for ids in tokenizer(texts).input_ids)
    batch = tokenizer(["a", "a longer text"], padding=True)
    assert batch.attention_mask[0] == sorted(batch.attention_mask[0], reverse=True)
    assert set(batch) == {"input_ids", "attention_mask"}
    inner = [token for token in tokenizer.get_vocab() if len(token) == 3 and token[:2] == "##"]
    by_id = tokenizer.convert_ids_to_tokens(range(5, 5 + len(inner)))
    assert by_id == sorted(inner)  # named before the training, which numbers them by chance
    tokenizer.save_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path)(texts).input_ids == tokenizer(texts).input_ids
