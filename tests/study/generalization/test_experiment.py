"""Two groups of tiny models: what is in the table is what their definitions say."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from shrink_utils.geometry import cka
from shrink_utils.study import load_profile
from shrink_utils.study.generalization import experiment
from shrink_utils.study.generalization.experiment import (
    GROUPS,
    Member,
    _trained,
    measure_generalization,
    pairs_by_name,
)
from shrink_utils.training import pair_batches

PAIR = ["group", "number", "other", "other_number", "data", "layer"]


@pytest.fixture(scope="module")
def profile():
    return load_profile("smoke")


@pytest.fixture(scope="module")
def groups(profile):
    return _trained(profile)


@pytest.fixture(scope="module")
def table(profile, groups, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHRINK_RESULTS_DIR", str(tmp_path_factory.mktemp("results")))
        patch.setattr(experiment, "_trained", lambda profile: groups)
        return measure_generalization(profile)


@torch.no_grad()
def _logits(groups, profile, member, data):
    models, tokenizer = groups
    model = models[member]
    batches = pair_batches(pairs_by_name(profile)[data], tokenizer)
    inputs = [{k: v for k, v in batch.items() if k != "labels"} for batch in batches]
    return torch.cat([model(**batch).logits for batch in inputs])


def test_accuracies_are_those_of_the_models(table, groups, profile):
    member = Member("generalizing", 1)
    for data in ("dev", "overlap", "new words"):
        rows = table[(table.quantity == "accuracy") & (table.data == data)]
        rows = rows[(rows.group == member.group) & (rows.number == member.number)]
        pairs = pairs_by_name(profile)[data].to_pandas()
        right = _logits(groups, profile, member, data).argmax(dim=1).numpy() == pairs.label
        if data == "dev":
            assert rows.value.item() == pytest.approx(right.mean())
        else:
            for name, expected in right.groupby(pairs.template).mean().items():
                assert rows[rows.template == name].value.item() == pytest.approx(expected)


def test_a_stitch_at_the_last_layer_is_one_model_under_the_others_head(table, groups, profile):
    models, tokenizer = groups
    front, back = (models[Member(group, 0)] for group in GROUPS)
    losses = {}
    for batch in pair_batches(pairs_by_name(profile)["overlap"], tokenizer):
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        with torch.no_grad():
            for name, body in (("stitched", front), ("alone", back)):
                states = body.bert(**inputs).last_hidden_state
                logits = back.classifier(back.bert.pooler(states))
                losses[name] = torch.nn.functional.cross_entropy(logits, batch["labels"]).item()
                refuted = batch["labels"] == 1
                losses[f"{name} right"] = (logits.argmax(1)[refuted] == 1).float().mean().item()
    depth = profile.pretraining.depth
    key = (GROUPS[0], 0, GROUPS[1], 0, "overlap", depth)
    found = table[table.quantity.isin(["penalty", "stitched"])].set_index([*PAIR, "quantity"]).value
    expected = losses["stitched"] - losses["alone"]
    assert found[(*key, "penalty")] == pytest.approx(expected, abs=1e-5)
    assert found[(*key, "stitched")] == pytest.approx(losses["stitched right"])


def test_similarity_is_of_the_means_over_tokens(table, groups, profile):
    models, tokenizer = groups
    means = []
    for member in (Member("heuristic", 0), Member("generalizing", 2)):
        parts = []
        for row in pairs_by_name(profile)["dev"]:  # one at a time: no padding
            tokens = tokenizer(row["text"], row["text_pair"], return_tensors="pt")
            with torch.no_grad():
                states = models[member].bert(**tokens, output_hidden_states=True).hidden_states
            parts.append(states[1][0].mean(dim=0))
        means.append(torch.stack(parts))
    rows = table[(table.quantity == "cka") & (table.data == "dev") & (table.layer == 1)]
    rows = rows[(rows.group == "heuristic") & (rows.number == 0)]
    rows = rows[(rows.other == "generalizing") & (rows.other_number == 2)]
    assert rows.value.item() == pytest.approx(cka(*means, debiased=True), abs=1e-5)


def test_groups_differ_in_what_they_read_and_members_in_their_seed(monkeypatch, profile):
    asked = []

    def model_of(start, tokenizer, training, **options):
        asked.append(options)
        return start

    monkeypatch.setattr(experiment, "entailment_model", model_of)
    models, _ = _trained(replace(profile, base_seed=2))
    shares = [options["counter_examples"] for options in asked]
    assert shares == [0.0, profile.heuristics.counter_examples] * profile.heuristics.models
    assert [options["seed"] for options in asked] == [2000 + i for i in range(len(asked))]
    assert {options["data_seed"] for options in asked} == {2000}
    assert list(models) == [(g, n) for n in range(profile.heuristics.models) for g in GROUPS]
