"""Word vectors of many architectures and hard texts, against each text read alone."""

from unicodedata import normalize

import pandas as pd
import pytest
import torch

from shrink_utils.models import load_encoder, split_words, word_batches, word_states
from shrink_utils.models.states import WORD, WordBatch, shared_words

WIDE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
BERT = {**WIDE, "intermediate_size": 48}
HEAD = {"head_dim": 16, "num_key_value_heads": 2}
ARCHITECTURES = {
    "bert": ("pieces", BERT),
    "distilbert": ("pieces", {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48}),
    "electra": ("pieces", {**BERT, "embedding_size": 32}),
    "albert": ("unigram", {**BERT, "embedding_size": 32}),
    "mpnet": ("pieces", BERT),
    "roberta": ("bytes", BERT),
    "xlm-roberta": ("unigram", BERT),
    "longformer": ("bytes", {**BERT, "attention_window": 16}),
    "deberta-v2": ("unigram", BERT),
    "esm": ("pieces", {**BERT, "mask_token_id": 4}),
    "xlm": ("pieces", {"emb_dim": 32, "n_layers": 2, "n_heads": 2}),
    "modernbert": ("bytes", {**BERT, "cls_token_id": 2, "sep_token_id": 3}),
    "xlnet": ("unigram", {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 48}),
    "gpt2": ("bytes", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
    "llama": ("unigram", {**BERT, "num_key_value_heads": 2}),
    "qwen3": ("bytes", {**BERT, **HEAD}),
    "bloom": ("bytes", {"hidden_size": 32, "n_layer": 2, "n_head": 2}),
    "mamba": ("bytes", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}),
    "ibert": ("pieces", BERT),
    "gemma3_text": ("unigram", {**BERT, **HEAD}),
}
TEXTS = [
    *("The small dog sees a quiet house.", "don't they, O’Neil? rock'n'roll", "naïve café ﬁne"),
    *(normalize("NFD", "naïve café"), "हिन्दी भाषा अच्छी है", "كلب صغير جدا", "собака и дом"),
    *("a dog \U0001f600 house \u2764\ufe0f", "co\u00adoperate now", "tab\there\n and there  twice"),
    *("dog\x10 house\u200b zero", "10\u202f000 m²", "[MASK] dog <s> house </s>", "...", ""),
    *("ÉTUDE étude", "a", "ไทย dog", "a 北京 dog and a small house", "zebu zebu", "כלב קטן"),
]


def _alone(encoder, text):
    """Words and mean vectors, (layers, words, d), of one text, piece by piece."""
    batch = encoder.tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    tokens, places = batch.tokens(), batch.pop("offset_mapping")[0].tolist()
    if not tokens:
        return [], torch.empty(len(encoder.layers), 0, 32)
    with torch.no_grad():
        states = torch.cat(encoder.model(**batch, output_hidden_states=True).hidden_states)
    words, vectors = [], []
    spans = [match.span() for match in WORD.finditer(text)]
    for start, end in spans:
        own = []
        for t, (first, last) in enumerate(places):
            first += len(text[first:last]) - len(text[first:last].lstrip())
            over = [span for span in spans if span[0] < last and first < span[1]]
            if first < last and tokens[t] not in ("▁", "Ġ") and over == [(start, end)]:
                own.append(t)
        if own:
            words.append(split_words(text[start:end])[0])
            vectors.append(states[:, own].mean(dim=1))
    return words, torch.stack(vectors, dim=1) if vectors else states[:, :0]


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_words_are_those_of_each_text_alone(kind, save_tiny):
    tokenizer, config = ARCHITECTURES[kind]
    encoder = load_encoder(save_tiny(kind, tokenizer, **config))
    found = word_states(encoder, TEXTS, batch_size=8, max_length=70)
    alone = [_alone(encoder, text) for text in TEXTS]
    assert found.word == [word for words, _ in alone for word in words]
    counts = [len(words) for words, _ in alone]
    assert found.sentence.tolist() == [i for i, n in enumerate(counts) for _ in range(n)]
    expected = torch.cat([vectors for _, vectors in alone], dim=1)
    assert found.vectors.shape == (len(encoder.layers), len(found.word), 32)
    torch.testing.assert_close(found.vectors, expected, rtol=1e-4, atol=1e-5)
    position = [split_words(TEXTS[0]).index(word) for word in found.word[:5]]
    assert found.position[:5].tolist() == position and found.n_texts == len(TEXTS)


def test_batches_hold_all_words_once_and_the_shortest_texts_first(encoder):
    texts = ["one longer text of words", "two words", "...", "and now three"]
    batches = list(word_batches(encoder, iter(texts), batch_size=1))
    assert [batch.sentence.unique().tolist() for batch in batches] == [[1], [], [3], [0]]
    everything = word_states(encoder, pd.Series(texts, index=[3, 3, 0, 1]))
    assert everything.word == [word for text in texts for word in split_words(text)]
    chosen = word_states(encoder, texts, layers=[-1, 0]).vectors
    assert torch.equal(chosen, everything.vectors[[2, 0]])


def test_words_that_are_cut_are_left_out(encoder):
    """[CLS] + 8 pieces + [SEP]: un ##re ##gul ##ari ##zed em ##bed ##ding | ##s …"""
    text = ["Unregularized embeddings, don't they shrink?"]
    assert word_states(encoder, text, max_length=10).word == ["unregularized"]
    assert word_states(encoder, text, max_length=11).word == ["unregularized", "embeddings"]


def test_words_that_are_cut_on_the_left_are_left_out():
    """un ##re ##gul ##ari ##zed em ##bed ##ding ##s , don ' t they shrink ?"""
    encoder = load_encoder("tiny-random")
    encoder.tokenizer.truncation_side = "left"
    text = ["Unregularized embeddings, don't they shrink?"]
    kept = {11: ["don't", "they", "shrink"], 12: ["embeddings", "don't", "they", "shrink"]}
    for n_pieces, words in {8: kept[11], 10: kept[11], 11: kept[12], 14: kept[12]}.items():
        found = word_states(encoder, text, max_length=n_pieces + 2)
        assert found.word == words
        assert found.position.tolist() == [split_words(text[0]).index(word) for word in words]


def _states(places):
    """A vector that tells its sentence and position, in two layers."""
    sentence, position = torch.tensor(places).T
    vectors = torch.stack([sentence, position], dim=1).float()
    words = [f"word {place}" for place in places]
    return WordBatch(torch.stack([vectors, vectors + 100]), sentence, position, words, n_texts=3)


def test_the_words_that_all_have_read_are_told_by_sentence_and_position():
    first = _states([(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)])
    second = _states([(0, 0), (0, 2), (1, 0), (2, 1)])
    x, y = shared_words(first, second)
    assert x.vectors[0].tolist() == [[0, 0], [0, 2], [2, 1]]
    assert torch.equal(x.vectors, y.vectors) and x.word == y.word
    assert x.sentence.tolist() == y.sentence.tolist() == [0, 0, 2]


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
    assert split_words(normalize(form, text)) == expected


def test_no_word_goes_across_a_full_stop_a_colon_or_a_quotation_mark_at_its_ends():
    text = "the end.Next a:b e．g ‘quoted’ “so” բարև՜ 10,000 a·"
    assert split_words(text) == [
        *"the end next a b e g quoted so".split(),
        "բարև",
        "10",
        "000",
        "a",
    ]


def test_joints_that_are_not_seen_are_no_letters_and_marks_alone_no_words():
    found = split_words("co\u00adoperate ❤\ufe0f \u0903\u0301 \u200b a\u200bb …! 9 x_1 👩\u200d👧")
    assert found == ["cooperate", "a", "b", "9", "x_1"]


@pytest.mark.parametrize(
    "text",
    [
        *("我喜欢狗。", "私は犬が好きです", "ฉันรักภาษาไทย", "ខ្ញុំស្រឡាញ់ភាសាខ្មែរ"),
        *("မြန်မာဘာသာစကား", "ຂ້ອຍຮັກພາສາລາວ", "བོད་ཡིག་སྐད་ཡིག"),
    ],
)
def test_a_script_without_spaces_is_refused_in_one_line(text):
    with pytest.raises(ValueError, match=r"of a script without spaces between words, such as '.*'"):
        split_words("\n".join([text, "three wor"]))
    split_words("\n".join([text, "a name in a long text of another script " * 9]))
