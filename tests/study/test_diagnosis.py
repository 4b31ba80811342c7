"""The diagnosis of one encoder: what it is called with, and its figure."""

import pandas as pd
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizer

from shrink_utils.__main__ import main
from shrink_utils.models import load_encoder, save_classifier
from shrink_utils.study.diagnosis import compare, diagnose
from shrink_utils.text import load_sentences


def test_texts_that_are_cut_are_counted_and_words_may_be_rarer():
    texts = ["a dog sees the house and " + f"more {'words ' * i}" for i in range(12)]
    found = diagnose("tiny-random", texts, max_length=12)
    assert found.attrs["cut"] == 8 and found.attrs["max_length"] == 12
    assert set(found.attrs["null"]) == set(found.columns)
    with pytest.raises(ValueError, match="stands in 20 different sentences or more"):
        diagnose("tiny-random", texts, min_count=20)
    with pytest.raises(ValueError, match=r"text: no whole word .* max_length leaves 3 tokens"):
        diagnose("tiny-random", ["antidisestablishmentarianism"] * 30, max_length=3)


SENTENCES = [f"the dog {i} sees a house" for i in range(40)]


def test_of_many_texts_a_sample_is_read_the_same_each_time(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TQDM_DISABLE", "0")
    table = diagnose("tiny-random", SENTENCES, max_texts=35)
    assert table.attrs["texts"] == 35 and diagnose("tiny-random", SENTENCES).attrs["texts"] == 40
    assert table.equals(diagnose("tiny-random", SENTENCES, max_texts=35))
    with pytest.raises(ValueError, match="max_texts: 0"):
        diagnose("tiny-random", SENTENCES, max_texts=0)
    (path := tmp_path / "a.txt").write_text("\n".join(SENTENCES))
    given = ["diagnose", "tiny-random", "--text", str(path), "--out", str(tmp_path)]
    assert main([*given, "--max-texts", "35"]) == 0
    printed = capsys.readouterr()
    assert "tiny-random on 35 of 40 texts" in printed.out and "--max-texts" in printed.out
    assert "35/35" in printed.err  # the bar


def test_two_encoders_stand_side_by_side_and_noise_is_told_from_change(tmp_path, capsys):
    texts = load_sentences("editorials", n=60)["text"][:]
    encoder = load_encoder("tiny-random")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        table = encoder.model.embeddings.word_embeddings.weight
        # Rounding in one half; in the other every word gets a vector in common.
        table += 1e-7 * torch.randn(table.shape, generator=generator)
        save_classifier(encoder.model, encoder.tokenizer, tmp_path / "same")
        table[:, 0] += 3
        save_classifier(encoder.model, encoder.tokenizer, tmp_path / "moved")
    same = compare("tiny-random", str(tmp_path / "same"), texts)
    assert same.difference.abs().max() < 1e-3
    moved = compare("tiny-random", str(tmp_path / "moved"), texts)
    first = moved.loc[0].loc["AvgSim"]
    assert not first.noise and first.difference > 0.1 > 0 < first.stderr
    for column, model in (("before", "tiny-random"), ("after", str(tmp_path / "moved"))):
        alone = diagnose(model, texts).stack()
        assert moved[column].to_numpy() == pytest.approx(alone.to_numpy(), rel=1e-6)
    (path := tmp_path / "a.txt").write_text("\n".join(texts), encoding="utf-8")
    given = ["tiny-random", str(tmp_path / "moved"), "--text", str(path), "--out", str(tmp_path)]
    assert main(["diagnose", *given]) == 0
    assert f"{first.difference:.3f}" in capsys.readouterr().out
    (written,) = tmp_path.glob("diagnose-tiny-random-to-*moved.csv")
    assert pd.read_csv(written).noise.dtype == bool and written.with_suffix(".png").is_file()


def test_three_encoders_and_encoders_of_other_depths_are_refused(tmp_path, capsys):
    small = BertConfig(vocab_size=30522, hidden_size=32, num_hidden_layers=1, num_attention_heads=2)
    tokenizer = load_encoder("tiny-random").tokenizer
    save_classifier(BertModel(small), tokenizer, tmp_path / "flat")
    with pytest.raises(ValueError, match=r"after: .*flat have 3 and 2 layers"):
        compare("tiny-random", str(tmp_path / "flat"), SENTENCES)
    assert main(["diagnose", *["tiny-random"] * 3]) == 1
    assert "model: 3 models" in capsys.readouterr().err


def test_encoders_that_cut_texts_elsewhere_are_compared_by_the_words_that_both_read(tmp_path):
    encoder = load_encoder("tiny-random")
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + x for x in letters)]
    by_letters = BertTokenizer(dict(zip(pieces, range(len(pieces)), strict=True)))
    save_classifier(encoder.model, by_letters, tmp_path)
    begun = [f"the {what} runs" for what in ("dog", "cat", "cow") for _ in range(10)]
    texts = [f"{text} far beyond its own old house {i}" for i, text in enumerate(begun)]
    table = compare("tiny-random", str(tmp_path), texts, max_length=12)
    assert table.attrs["cut"] == 30  # by letters alone
    # Embeddings, the layer 0, know nothing of the words that follow.
    assert table.before[0].to_numpy() == pytest.approx(diagnose("tiny-random", begun).loc[0], 1e-5)


def test_an_encoder_that_is_not_there_is_named_by_its_argument(tmp_path, capsys):
    (path := tmp_path / "a.txt").write_text("\n".join(SENTENCES))
    for models in (["./nope"], ["tiny-random", "./nope"]):
        assert main(["diagnose", *models, "--text", str(path), "--out", str(tmp_path)]) == 1
        told = capsys.readouterr().err.splitlines()[-1]
        assert "model: " in told and "'./nope'" in told and "name: " not in told
