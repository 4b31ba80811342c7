"""Small models of the kinds that are read or stitched, tokenizers, and batches with padding."""

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModel,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertLMHeadModel,
    PreTrainedTokenizerFast,
)

from shrink_utils.models import Encoder, load_encoder, read_layers, save_classifier
from shrink_utils.models.encoders import quiet, seeded

KINDS = {
    "mlm": (BertForMaskedLM, {}),
    "clm": (BertLMHeadModel, {"is_decoder": True}),
    "classifier": (BertForSequenceClassification, {"num_labels": 3}),
}
VOCABULARY, DEPTH = 40, 3
PIECES = 120  # of the tokenizers below
SPECIAL = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
LINES = ["the small dog sees a quiet house", "don't they shrink?", "हिन्दी भाषा अच्छी है", "a café"]


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """The tiny encoder; nobody changes it."""
    return load_encoder("tiny-random")


@pytest.fixture
def saved(tmp_path, encoder):
    """The folder of the tiny encoder, in Hugging Face's layout."""
    save_classifier(encoder.model, encoder.tokenizer, tmp_path / "tiny")
    return tmp_path / "tiny"


def tokenizer_of(kind: str, **options) -> PreTrainedTokenizerFast:
    """A tokenizer trained on a few lines: "pieces" as BERT's, "bytes" as GPT-2's, "unigram"."""
    names, size, more = list(SPECIAL.values()), PIECES, {}
    if kind == "pieces":
        tokens, trainer = Tokenizer(models.WordPiece(unk_token="<unk>")), trainers.WordPieceTrainer
        tokens.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokens.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    elif kind == "bytes":
        tokens, trainer = Tokenizer(models.BPE()), trainers.BpeTrainer
        tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        size, more = PIECES + 256, {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet()}
    else:
        tokens, trainer = Tokenizer(models.Unigram()), trainers.UnigramTrainer
        tokens.pre_tokenizer, more = pre_tokenizers.Metaspace(), {"unk_token": "<unk>"}
    trained = trainer(vocab_size=size, special_tokens=names, show_progress=False, **more)
    tokens.train_from_iterator(LINES * 9, trained)
    if kind != "bytes":  # like BERT, T5; and GPT-2 puts nothing around a text
        ends = [(name, names.index(name)) for name in ("<s>", "</s>")]
        tokens.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=ends
        )
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokens, model_input_names=inputs, **(SPECIAL | options)
    )


@pytest.fixture
def save_tiny(tmp_path):
    """A function that saves a model of a kind with random weights, and its tokenizer."""

    def save(kind, tokenizer="pieces", *, name="tiny", model=None, maximum=512, **config):
        tokenizer = tokenizer_of(tokenizer, model_max_length=maximum)
        ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "vocab_size": PIECES + 256}
        with quiet(), seeded(0):
            if model is None:
                model = AutoModel.from_config(AutoConfig.for_model(kind, **(ids | config)))
            save_classifier(model, tokenizer, tmp_path / name)
        return tmp_path / name

    return save


@pytest.fixture
def gpt2(save_tiny):
    """The folder of a tiny GPT-2 that reads 16 tokens and puts none around a text."""
    sizes = {"n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 2}
    return str(save_tiny("gpt2", "bytes", name="gpt2", **sizes))


def make_model(kind, seed, *, width=16, depth=DEPTH):
    """A model far from its initialization, where stitches cost."""
    cls, options = KINDS[kind]
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=depth,
        num_attention_heads=2,
        intermediate_size=2 * width,
        max_position_embeddings=16,
        pad_token_id=0,
        use_cache=False,
        **options,
    )
    with quiet(), seeded(seed):
        model = cls(config).eval()
        for parameter in model.parameters():
            parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def make_batches(kind, n=2, size=4):
    """Batches of unequal lengths, padded, with labels."""
    generator, batches = torch.Generator().manual_seed(7), []
    for length in range(7, 7 + n):
        ids = torch.randint(1, VOCABULARY, (size, length), generator=generator)
        mask = torch.ones_like(ids)
        mask[1, length - 3 :] = 0
        ids[mask == 0] = 0
        labels = ids.masked_fill(mask == 0, -100)
        if kind == "classifier":
            labels = torch.randint(0, 3, (size,), generator=generator)
        elif kind == "mlm":
            labels[torch.rand(ids.shape, generator=generator) >= 0.4] = -100
        batches.append({"input_ids": ids, "attention_mask": mask, "labels": labels})
    return batches


def make_reading(kind, seed, *, batches=None, **sizes):
    """That model on those batches."""
    return read_layers(make_model(kind, seed, **sizes), batches or make_batches(kind))
