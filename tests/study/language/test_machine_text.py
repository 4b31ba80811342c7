"""What a tiny decoder writes, and whether a planted difference of dimension is found."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from shrink_utils.geometry import effective_rank, intrinsic_dimension
from shrink_utils.models import Encoder, load_encoder, token_states
from shrink_utils.models.encoders import seeded
from shrink_utils.study.claims.language import machine_text_claims
from shrink_utils.study.language import machine_text
from shrink_utils.study.language.machine_text import (
    continuations,
    human_texts,
    measure_machine_text,
)

TEXTS, SHORT = 8, 80  # pieces of a text
OPENINGS = ["One opening.", "Another opening of a text, which is longer than the first one."]


@pytest.fixture(scope="module")
def reader():
    return load_encoder("tiny-random")


@pytest.fixture(scope="module")
def language_model(reader):
    """A tiny Gemma with random weights as transformers has it, with its output matrix."""
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    vocabulary = len(reader.tokenizer)
    with seeded(0):
        config = Gemma3TextConfig(vocab_size=vocabulary, sliding_window=64, **heads, **sizes)
        model = Gemma3ForCausalLM(config).eval()
        for parameter in model.parameters():  # far from even: a wrong distribution is seen
            parameter.data += 0.5 * torch.randn_like(parameter)
    return model


@pytest.fixture(scope="module")
def writer(reader, language_model):
    return Encoder("tiny Gemma", language_model.model, reader.tokenizer)


@pytest.fixture(scope="module")
def table(reader, writer):
    return measure_machine_text(reader, writer, texts=TEXTS, pieces=SHORT)


def verdict(table):
    (row,) = machine_text_claims(table).itertuples()
    return row


def writes(monkeypatch, *texts):
    monkeypatch.setattr(machine_text, "continuations", lambda *given, **options: list(texts))


def test_what_is_written_is_seeded_and_no_matter_of_its_neighbours(writer):
    one, other = continuations(writer, OPENINGS, tokens=12)
    assert continuations(writer, OPENINGS, tokens=12) == [one, other]
    assert continuations(writer, OPENINGS[:1], tokens=12) == [one]  # without padding
    assert continuations(writer, OPENINGS, tokens=12, seed=1)[0] != one
    first, second = continuations(writer, OPENINGS[:1] * 2, tokens=12)
    assert first == one and second != first  # a generator per text


def test_words_are_drawn_by_the_probabilities_of_the_language_model(
    writer, language_model, monkeypatch
):
    """Word by word behind padding, against one pass over the whole text without any."""
    drawn, real = [], torch.multinomial

    def draw(shares, n, *, generator):
        drawn.append((shares, real(shares, n, generator=generator)))
        return drawn[-1][1]

    monkeypatch.setattr(torch, "multinomial", draw)
    continuations(writer, OPENINGS, tokens=5)
    begun = writer.tokenizer(OPENINGS[0], add_special_tokens=False)["input_ids"]
    of_first = drawn[::2]
    ids = torch.tensor([[*begun, *(int(word) for _, word in of_first)]])
    with torch.no_grad():
        logits = language_model(input_ids=ids).logits[0, len(begun) - 1 : -1]
    logits[:, writer.tokenizer.all_special_ids] = -torch.inf
    expected = logits.softmax(-1)
    found = torch.stack([shares for shares, _ in of_first])
    assert torch.allclose(found, expected, rtol=1e-3, atol=1e-8) and expected.max() > 0.01


def test_dimensions_are_those_of_the_readers_last_layer(table, reader):
    _, rests = human_texts(reader, texts=TEXTS, pieces=SHORT)
    x = token_states(reader, rests[3:4]).vectors[-1].double()
    alone = table.set_index(["text", "kind"]).loc[3]
    both = token_states(reader, rests[3:4], max_length=SHORT + 2).vectors[-1].double()
    assert len(both) == SHORT < len(x)
    ph, error = intrinsic_dimension(both, method="ph", return_error=True)
    expected = [ph, error, intrinsic_dimension(both), effective_rank(both)]
    found = alone.loc["human", ["ph", "stderr", "twonn", "rank"]].to_list()
    assert found == pytest.approx(expected, rel=1e-3)
    half = intrinsic_dimension(both[40:], method="ph")
    assert alone.loc["second half", "ph"] == pytest.approx(half, rel=1e-3)


def test_human_text_against_human_text_shows_nothing(table, reader):
    """The halves of a text, and the text against another editorial's."""
    halves = table[table.kind.str.endswith("half")]
    halves = halves.replace({"first half": "human", "second half": "machine"})
    assert verdict(halves).verdict == "inconclusive"
    human = table[table.kind == "human"]
    other = human.assign(kind="machine", text=np.roll(human.text, 1))
    assert verdict(pd.concat([human, other])).verdict == "inconclusive"


@pytest.mark.parametrize(("planted", "found"), [("machine", "agrees"), ("human", "disagrees")])
def test_a_planted_difference_is_found(reader, monkeypatch, planted, found):
    """A dozen words, over and over, have the lower dimension."""
    _, rests = human_texts(reader, texts=TEXTS, pieces=SHORT)
    writes(monkeypatch, *(" ".join(rest.split()[:12] * 10) for rest in rests))
    dull = measure_machine_text(reader, reader, texts=TEXTS, pieces=SHORT)
    if planted == "human":
        dull = dull.replace({"human": "machine", "machine": "human"})
    row = verdict(dull)
    assert row.verdict == found and row.n == TEXTS and row.claim == "lang:dimension-machine"
    assert row.kind == "scaled test" and row.unit == "sentences"
