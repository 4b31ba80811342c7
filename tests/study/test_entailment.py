"""A common start and the models that part from it."""

import pytest
import torch

from shrink_utils.study.pretraining import (
    EntailmentTraining,
    Trunk,
    common_start,
    entailment_model,
    pair_batches,
)
from shrink_utils.text import training_pairs

TRUNK = Trunk(width=16, depth=1, heads=2, dropout=0.0)
SHORT = EntailmentTraining(rows=128, steps=3, learning_rate=2e-3)


@pytest.fixture(scope="module")
def start():
    return common_start(TRUNK, SHORT, seed=1)


def _encoder(model):
    return torch.cat([p.detach().flatten() for p in model.bert.encoder.parameters()])


def test_the_start_and_the_models_are_decided_by_their_seeds(start):
    again = common_start(TRUNK, SHORT, seed=1)[0]
    assert torch.equal(_encoder(start[0]), _encoder(again))
    options = {"counter_examples": 0.5, "data_seed": 7}
    models = [entailment_model(*start, SHORT, seed=seed, **options) for seed in (2, 2, 3)]
    assert torch.equal(_encoder(models[0]), _encoder(models[1]))
    assert not torch.equal(_encoder(models[0]), _encoder(models[2]))


def test_training_leaves_the_start_and_the_global_state_as_they_were(start):
    before, random_state = _encoder(start[0]).clone(), torch.random.get_rng_state()
    threads, steps = torch.get_num_threads(), []
    options = {"counter_examples": 0, "seed": 0, "on_step": lambda: steps.append(1)}
    model = entailment_model(*start, SHORT, **options)
    assert len(steps) == SHORT.steps  # every step is told
    assert torch.equal(_encoder(start[0]), before)
    assert not torch.equal(_encoder(model), before) and not model.training
    assert torch.equal(torch.random.get_rng_state(), random_state)
    assert torch.get_num_threads() == threads


def test_a_start_learns_which_texts_belong_together():
    """Some hundred steps teach it all; 120 of a smaller model, a part of it."""
    trunk = Trunk(width=32, depth=1, heads=1, dropout=0.0)
    losses = []
    for steps in (1, 120):
        training = EntailmentTraining(rows=512, steps=steps, learning_rate=5e-3)
        model, tokenizer = common_start(trunk, training, seed=0)
        rows = training_pairs(512, counter_examples=0.5, seed=0)
        apart = [int(heuristic == "none") for heuristic in rows["heuristic"]]
        rows = rows.remove_columns("label").add_column("label", apart)
        batches = pair_batches(rows, tokenizer)  # of equal sizes
        with torch.no_grad():
            losses.append(sum(float(model(**batch).loss) for batch in batches) / len(batches))
    assert losses[1] < losses[0] - 0.05
