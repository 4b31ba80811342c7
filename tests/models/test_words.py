"""Word vectors against the pieces of each sentence alone, counted by hand."""

import json
from dataclasses import replace

import pytest
import sentencepiece
import torch
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import (
    BartConfig,
    BartModel,
    MarianConfig,
    MarianModel,
    MarianTokenizer,
    PreTrainedTokenizerFast,
)

from shrink_utils.models import load_encoder, split_words, word_batches, word_states

TEXTS = [
    "Unregularized embeddings, don't they shrink?",
    "A short one.",
    "...",
    "Unregularized again: the longest bar shrinks.",
]
# How BERT's tokenizer cuts them: (word, number of pieces), punctuation as (None, 1).
MARK = (None, 1)
PIECES = {
    0: [("unregularized", 5), ("embeddings", 4), MARK, ("don't", 3), ("they", 1), ("shrink", 1)],
    1: [("a", 1), ("short", 1), ("one", 1), MARK],
    3: [
        *[("unregularized", 5), ("again", 1), MARK, ("the", 1), ("longest", 1), ("bar", 1)],
        *[("shrinks", 2), MARK],
    ],
}


SIZES = {  # of a tiny encoder–decoder
    "d_model": 16,
    "encoder_layers": 3,
    "decoder_layers": 1,
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 32),
    "max_position_embeddings": 64,
}


def _by_hand(encoder, row):
    """Words and mean vectors, (layers, words, d), of one sentence alone through the bare model."""
    batch = encoder.tokenizer(TEXTS[row], return_tensors="pt")
    with torch.no_grad():
        states = torch.cat(encoder.model(**batch, output_hidden_states=True).hidden_states)
    words, vectors, at = [], [], 1  # after [CLS]
    for word, n_pieces in PIECES[row]:
        if word is not None:
            words.append(word)
            vectors.append(states[:, at : at + n_pieces].mean(dim=1))
        at += n_pieces
    return words, torch.stack(vectors, dim=1)


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_a_words_vector_is_the_mean_of_its_pieces(encoder, batch_size):
    found = word_states(encoder, TEXTS, batch_size=batch_size)
    words, vectors = zip(*(_by_hand(encoder, row) for row in PIECES), strict=True)
    assert found.word == [word for of_text in words for word in of_text]
    torch.testing.assert_close(found.vectors, torch.cat(vectors, dim=1), rtol=1e-5, atol=1e-6)
    assert found.sentence.tolist() == [0] * 5 + [1] * 3 + [3] * 6
    assert found.position.tolist() == [*range(5), *range(3), *range(6)]
    assert found.n_texts == 4


def test_batches_hold_all_words_once_and_the_shortest_texts_first(encoder):
    batches = list(word_batches(encoder, TEXTS, batch_size=1))
    assert [batch.n_texts for batch in batches] == [1, 1, 1, 1]
    assert [batch.sentence.unique().tolist() for batch in batches] == [[], [1], [3], [0]]
    assert sum(batch.vectors.shape[1] for batch in batches) == 14


def test_words_that_are_cut_are_left_out(encoder):
    """[CLS] + 8 pieces + [SEP]: un ##re ##gul ##ari ##zed em ##bed ##ding | ##s …"""
    found = word_states(encoder, TEXTS[:1], max_length=10)
    assert found.word == ["unregularized"]
    assert word_states(encoder, TEXTS[:1], max_length=11).word == ["unregularized", "embeddings"]


def test_chosen_layers_are_those_of_all_layers(encoder):
    everything = word_states(encoder, TEXTS).vectors
    assert torch.equal(word_states(encoder, TEXTS, layers=[-1, 0]).vectors, everything[[2, 0]])
    with pytest.raises(ValueError, match=r"layers: \[5\]"):
        word_states(encoder, TEXTS, layers=[5])


def test_words_are_runs_of_letters_and_digits_with_inner_apostrophes():
    assert split_words("Don't stop—it’s 9 o'clock, 'tis well-known!") == [
        *("don't", "stop", "it’s", "9", "o'clock", "tis", "well", "known")
    ]
    assert split_words("rock'n'roll ?!") == ["rock'n'roll"]
    assert split_words("?!") == []


def test_texts_without_a_word_give_no_rows(encoder):
    found = word_states(encoder, ["...", "?"])
    assert found.vectors.shape == (3, 0, 32)
    assert found.word == []


def test_words_of_characters_that_the_tokenizer_drops_are_left_out(encoder):
    """A lone combining accent is a word to the regular expression and nothing to BERT."""
    assert word_states(encoder, ["bar \u0903\u0301 bar"]).word[0] == "bar"


@pytest.mark.parametrize("text", ["co\u00adoperate now", "nai\u0308ve now"])
def test_a_piece_of_two_words_belongs_to_neither(encoder, text):
    """BERT drops the soft hyphen and the accent between them, and makes one piece of both."""
    assert len(split_words(text)) == 3 and len(encoder.tokenizer.tokenize(text)) == 2
    found = word_states(encoder, ["one two", text])
    assert found.word == ["one", "two", "now"]
    assert found.position.tolist() == [0, 1, 2]


def test_a_batch_of_one_word_behind_a_mark_gives_that_word(encoder):
    assert word_states(encoder, ["! one", "?"]).word == ["one"]


def test_a_piece_with_the_space_before_it_belongs_to_the_word_behind_the_space(encoder):
    """As byte-level tokenizers (GPT-2, RoBERTa) cut: the places of " two" begin at the space."""
    known = ["<s>", "</s>", "<pad>", "one", "Ġtwo", ",", "Ġ", "Ġthree", "Ġ-"]
    tokens = Tokenizer(WordLevel({token: i for i, token in enumerate(known)}, unk_token="<pad>"))
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), trim_offsets=False, add_prefix_space=False
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokens, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    found = word_states(replace(encoder, tokenizer=tokenizer), ["one two, - three", "one"])
    assert found.word == ["one", "two", "three", "one"]
    ids = torch.tensor([[0, 3, 4, 5, 8, 7, 1]])  # <s> one Ġtwo , Ġ- Ġthree </s>
    with torch.no_grad():
        states = torch.cat(encoder.model(ids, output_hidden_states=True).hidden_states)
    torch.testing.assert_close(found.vectors[:, :3], states[:, [1, 2, 5]], rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    """A tiny translation model with a sentencepiece tokenizer, saved like those on the hub."""
    folder = tmp_path_factory.mktemp("marian")
    lines = folder / "lines.txt"
    lines.write_text("\n".join(f"{text} {i}" for i in range(40) for text in TEXTS))
    sentencepiece.SentencePieceTrainer.train(
        input=str(lines), model_prefix=str(folder / "source"), vocab_size=48, minloglevel=2
    )
    spm = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.model"))
    pieces = ["</s>", "<unk>", *(spm.id_to_piece(i) for i in range(3, len(spm))), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes((folder / "source.model").read_bytes())
    tokenizer = MarianTokenizer(
        *(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")),
        source_lang="en",
        target_lang="de",
    )
    torch.manual_seed(1)
    model = MarianModel(
        MarianConfig(
            vocab_size=len(pieces),
            **SIZES,
            pad_token_id=len(pieces) - 1,
            eos_token_id=0,
            decoder_start_token_id=len(pieces) - 1,
        )
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_a_translation_models_encoder_is_read_word_by_word(marian):
    """Its tokenizer cannot tell where pieces stand: words are matched by counting pieces."""
    encoder = load_encoder(marian)
    assert encoder.layers == (0, 1, 2, 3)
    assert not encoder.tokenizer.is_fast
    found = word_states(encoder, TEXTS, max_length=64)
    assert found.word == [word for text in TEXTS for word in split_words(text)]
    # By hand: the third word of the second text, after "A" and "short".
    counts = [len(encoder.tokenizer.tokenize(word)) for word in ("A", "short", "one", ".")]
    ids = [i for word in ("A", "short", "one", ".") for i in encoder.tokenizer(word).input_ids[:-1]]
    with torch.no_grad():
        inputs = torch.tensor([[*ids, encoder.tokenizer.eos_token_id]])
        states = encoder.model(inputs, output_hidden_states=True).hidden_states
    start = sum(counts[:2])
    expected = torch.cat(states)[:, start : start + counts[2]].mean(dim=1)
    row = ((found.sentence == 1) & (found.position == 2)).nonzero().item()
    torch.testing.assert_close(found.vectors[:, row], expected, rtol=1e-5, atol=1e-6)


def test_word_by_word_reading_leaves_cut_words_out(marian):
    encoder = load_encoder(marian)
    whole = word_states(encoder, TEXTS[3:], max_length=64)
    counts = [len(encoder.tokenizer.tokenize(word)) for word in ("Unregularized", "again")]
    assert word_states(encoder, TEXTS[3:], max_length=sum(counts) + 1).word == whole.word[:2]
    assert word_states(encoder, TEXTS[3:], max_length=sum(counts)).word == whole.word[:1]


def test_the_encoder_half_of_an_encoder_decoder_is_taken(tmp_path, encoder):
    BartModel(BartConfig(vocab_size=30522, **SIZES)).save_pretrained(tmp_path)
    encoder.tokenizer.save_pretrained(tmp_path)
    loaded = load_encoder(str(tmp_path))
    assert loaded.layers == (0, 1, 2, 3)
    assert loaded.max_length == 64
    assert not any("decoder" in name for name, _ in loaded.model.named_parameters())
