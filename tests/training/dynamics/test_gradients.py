"""The loss that is allocated counts predicted tokens as the model does."""

import pytest
import torch
from transformers import BertConfig, BertLMHeadModel, GPT2Config, GPT2LMHeadModel

from shrink_utils.training.dynamics import FixedSetLoss
from shrink_utils.training.dynamics.gradients import loss_and_gradients

SIZES = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.mark.parametrize(
    "make",
    [
        lambda: BertLMHeadModel(BertConfig(**SIZES, is_decoder=True)),
        # Its configuration does not say that it is a decoder: its class does.
        lambda: GPT2LMHeadModel(
            GPT2Config(vocab_size=20, n_positions=32, n_embd=16, n_layer=1, n_head=1)
        ),
    ],
    ids=["BERT", "GPT-2"],
)
def test_a_causal_model_predicts_every_label_but_the_first(make):
    model = make().eval()
    sets = [torch.randint(0, 20, shape) for shape in [(8, 3), (2, 30)]]
    point = loss_and_gradients(model, FixedSetLoss([{"input_ids": x, "labels": x} for x in sets]))
    logits = torch.cat([model(x).logits[:, :-1].flatten(0, 1) for x in sets])
    labels = torch.cat([x[:, 1:].flatten() for x in sets])
    expected = torch.nn.functional.cross_entropy(logits, labels)
    assert point.loss == pytest.approx(expected.item(), rel=1e-6)
