"""Fresh classifiers of sentence pairs, new heads on old ones, and where their entailment is."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from shrink_utils.models import (
    Trunk,
    entailment_output,
    new_pair_classifier,
    scratch_model,
    with_new_head,
)

TRUNK = Trunk(width=16, depth=2, heads=2, dropout=0.0)
SIZES = {"vocab_size": 40, "max_length": 12}


def _states(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def test_the_trunk_is_that_of_the_scratch_models_but_for_its_spread():
    model = new_pair_classifier(TRUNK, **SIZES, seed=0)
    scratch = scratch_model(TRUNK, "mlm", **SIZES, seed=0)
    shapes = {name: value.shape for name, value in model.bert.encoder.state_dict().items()}
    assert shapes == {n: v.shape for n, v in scratch.bert.encoder.state_dict().items()}
    drawn = torch.cat([p.flatten() for n, p in model.named_parameters() if "query.weight" in n])
    assert float(drawn.detach().std()) == pytest.approx(16**-0.5, rel=0.1)
    assert model.config.num_labels == 2 and not model.training


def test_a_seed_decides_the_weights_and_leaves_the_global_state():
    before = torch.random.get_rng_state()
    first, again, other = (new_pair_classifier(TRUNK, **SIZES, seed=s) for s in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    weights = [model.bert.encoder.layer[0].output.dense.weight for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_a_new_head_leaves_the_layers_and_the_original_as_they_are():
    model = new_pair_classifier(TRUNK, **SIZES, seed=0)
    before = _states(model)
    copy, again = with_new_head(model, seed=1), with_new_head(model, seed=1)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    for name, value in copy.state_dict().items():
        shared = name.startswith(("bert.embeddings", "bert.encoder"))
        if shared or name.endswith("bias"):  # a bias begins at 0
            assert torch.equal(value, before[name]), name
        else:
            assert not torch.equal(value, before[name]), name
        assert torch.equal(value, again.state_dict()[name])
    copy.bert.encoder.layer[0].output.dense.weight.data += 1
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def _classifier(**config):
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=9,
            hidden_size=4,
            num_hidden_layers=1,
            num_attention_heads=1,
            intermediate_size=4,
            **config,
        )
    )


def test_entailment_is_found_by_its_name():
    assert entailment_output(new_pair_classifier(TRUNK, **SIZES, seed=0)) == 0
    names = {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}
    assert entailment_output(_classifier(id2label=names)) == 2


def test_three_outputs_without_names_are_in_berts_own_order():
    assert entailment_output(_classifier(num_labels=3)) == 1


def test_other_outputs_without_names_are_refused():
    with pytest.raises(ValueError, match="expected one named 'entailment'"):
        entailment_output(_classifier(num_labels=2))
