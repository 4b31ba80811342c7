"""Small models of the three kinds that can be stitched, and batches with padding for them."""

import pytest
import torch
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertLMHeadModel,
    GPT2Config,
    GPT2Model,
    PreTrainedTokenizerFast,
)

from shrink_utils.models import Encoder, load_encoder, save_classifier
from shrink_utils.models.encoders import quiet, seeded

KINDS = {
    "mlm": (BertForMaskedLM, {}),
    "clm": (BertLMHeadModel, {"is_decoder": True}),
    "classifier": (BertForSequenceClassification, {"num_labels": 3}),
}
VOCABULARY, DEPTH = 40, 3


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """The tiny encoder; nobody changes it."""
    return load_encoder("tiny-random")


@pytest.fixture
def saved(tmp_path, encoder):
    """The folder of the tiny encoder, in Hugging Face's layout."""
    save_classifier(encoder.model, encoder.tokenizer, tmp_path / "tiny")
    return tmp_path / "tiny"


@pytest.fixture
def byte_level():
    """A tokenizer as GPT-2's: no special tokens around a text, no padding, no limit."""
    known = {"<end>": 0, "one": 1, "Ġtwo": 2, "Ġthree": 3}
    tokens = Tokenizer(WordLevel(known, unk_token="<end>"))
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=tokens, eos_token="<end>")


@pytest.fixture
def gpt2(tmp_path, byte_level):
    """The folder of a tiny GPT-2 that reads 16 tokens."""
    sizes = {"vocab_size": 4, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 2}
    with seeded(0):
        GPT2Model(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).save_pretrained(tmp_path)
    byte_level.save_pretrained(tmp_path)
    return str(tmp_path)


@pytest.fixture
def make_model():
    """A function of kind and seed: a model far from its initialization, where stitches cost."""

    def make(kind, seed, *, width=16, depth=DEPTH):
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

    return make


@pytest.fixture
def make_batches():
    """A function of kind: two batches of unequal lengths, padded, with labels."""

    def make(kind, n=2, size=4):
        generator = torch.Generator().manual_seed(7)
        batches = []
        for length in range(7, 7 + n):
            ids = torch.randint(1, VOCABULARY, (size, length), generator=generator)
            mask = torch.ones_like(ids)
            mask[1, length - 3 :] = 0
            ids[mask == 0] = 0
            batch = {"input_ids": ids, "attention_mask": mask}
            if kind == "classifier":
                batch["labels"] = torch.randint(0, 3, (size,), generator=generator)
            elif kind == "clm":
                batch["labels"] = ids.masked_fill(mask == 0, -100)
            else:
                chosen = torch.rand(ids.shape, generator=generator) < 0.4
                batch["labels"] = ids.masked_fill(~chosen | (mask == 0), -100)
            batches.append(batch)
        return batches

    return make


@pytest.fixture
def make_reading(make_model, make_batches):
    """A function of kind and seed: that model on those batches."""
    from shrink_utils.models import read_layers

    def make(kind, seed, *, batches=None, **sizes):
        return read_layers(make_model(kind, seed, **sizes), batches or make_batches(kind))

    return make
