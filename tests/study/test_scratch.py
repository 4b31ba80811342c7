"""One trunk, three objectives; classifiers of pairs and where entailment is."""

import pytest
import torch
from transformers import EncoderDecoderModel

from shrink_utils.study.pretraining import (
    OBJECTIVES,
    Trunk,
    _new_pair_classifier,
    _with_new_head,
    scratch_model,
)

TRUNK = Trunk(width=16, depth=2, heads=2)


def _model(objective, trunk=TRUNK, seed=0):
    return scratch_model(trunk, objective, vocab_size=50, max_length=12, seed=seed)


IDS = torch.randint(5, 50, (3, 7), generator=torch.Generator().manual_seed(1))


def _logits(model, ids=IDS):
    with torch.inference_mode():
        if isinstance(model, EncoderDecoderModel):
            return model(input_ids=ids, decoder_input_ids=ids).logits
        return model(input_ids=ids).logits


def test_only_the_causal_model_is_blind_to_what_follows():
    changed = IDS.clone()
    changed[:, -1] = (IDS[:, -1] - 4) % 45 + 5
    for objective, blind in (("clm", True), ("mlm", False)):
        before, after = (_logits(_model(objective), x)[:, :-1] for x in (IDS, changed))
        assert torch.allclose(before, after, atol=1e-6) == blind


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_trunk_is_the_same_below_every_head(objective):
    model = _model(objective)
    trunk = model.encoder if objective == "mt" else model.bert
    weights, expected = trunk.state_dict(), _model("clm").bert.state_dict()
    assert weights.keys() == expected.keys()
    assert all(torch.equal(x, expected[name]) for name, x in weights.items())


def test_a_new_head_leaves_the_layers_and_the_original_as_they_are():
    pair = Trunk(width=16, depth=2, heads=2, dropout=0.0)
    model = _new_pair_classifier(pair, vocab_size=40, max_length=12, seed=0)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    copy, again = (_with_new_head(model, seed=1) for _ in range(2))
    for name, value in copy.state_dict().items():
        shared = name.startswith(("bert.embeddings", "bert.encoder"))
        kept = shared or name.endswith("bias")  # a bias begins at 0
        assert torch.equal(value, before[name]) == kept, name
        assert torch.equal(value, again.state_dict()[name])
    copy.bert.encoder.layer[0].output.dense.weight.data += 1
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
