"""Two groups of tiny models: what is in the table is what their definitions say."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from shrink_utils.geometry import cka
from shrink_utils.models import read_layers, save_classifier
from shrink_utils.models.encoders import load_tokenizer, quiet
from shrink_utils.study import load_profile
from shrink_utils.study.generalization import experiment
from shrink_utils.study.generalization.experiment import (
    COMPARED,
    GROUPS,
    Member,
    _judged,
    load_groups,
    measure_generalization,
    pairs_by_name,
)
from shrink_utils.text import HANS_FILE
from shrink_utils.training import pair_batches

PAIR = ["group", "number", "other", "other_number", "data", "layer"]


@pytest.fixture(scope="module")
def profile():
    return load_profile("smoke")


@pytest.fixture(scope="module")
def groups(profile):
    return load_groups(profile)


@pytest.fixture(scope="module")
def table(profile, groups, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHRINK_RESULTS_DIR", str(tmp_path_factory.mktemp("results")))
        patch.setattr(experiment, "load_groups", lambda profile: groups)
        return measure_generalization(profile)


@torch.no_grad()
def _logits(groups, profile, member, data):
    loaders, tokenizer = groups
    model = loaders[member]()
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


def test_every_model_is_stitched_to_every_other_at_every_layer(table, profile):
    members = [(group, n) for n in range(profile.heuristics.models) for group in GROUPS]
    layers = range(profile.pretraining.depth + 1)
    expected = {
        (*front, *back, data, layer)
        for front, back in permutations(members, 2)
        for data in COMPARED
        for layer in layers
    }
    for quantity in ("penalty", "stitched"):
        rows = table[table.quantity == quantity][PAIR]
        assert len(rows) == len(expected)
        assert {*rows.itertuples(index=False, name=None)} == expected
    assert (table.quantity == "cka").sum() == len(expected) / 2


def test_a_stitch_at_the_last_layer_is_one_model_under_the_others_head(table, groups, profile):
    loaders, tokenizer = groups
    front, back = (loaders[Member(group, 0)]() for group in GROUPS)
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
    loaders, tokenizer = groups
    means = []
    for member in (Member("heuristic", 0), Member("generalizing", 2)):
        parts = []
        for row in pairs_by_name(profile)["dev"]:  # one at a time: no padding
            tokens = tokenizer(row["text"], row["text_pair"], return_tensors="pt")
            with torch.no_grad():
                states = loaders[member]().bert(**tokens, output_hidden_states=True).hidden_states
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
    loaders, _ = load_groups(replace(profile, base_seed=2))
    shares = [options["counter_examples"] for options in asked]
    assert shares == [0.0, profile.heuristics.counter_examples] * profile.heuristics.models
    assert [options["seed"] for options in asked] == [2000 + i for i in range(len(asked))]
    assert {options["data_seed"] for options in asked} == {2000}
    assert list(loaders) == [(g, n) for n in range(profile.heuristics.models) for g in GROUPS]


@pytest.fixture
def hub(tmp_path, monkeypatch, profile):
    """Six folders as of a hub, HANS and MNLI in tiny; nothing of it names its outputs."""
    names = [str(tmp_path / f"model-{seed}") for seed in range(6)]
    sizes = {name: 8 for name in ("hidden_size", "intermediate_size")}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 1, "num_labels": 3}
    for seed, name in enumerate(names):
        torch.manual_seed(seed)
        with quiet():
            model = BertForSequenceClassification(BertConfig(vocab_size=30522, **sizes))
        for parameter in model.classifier.parameters():
            parameter.data += torch.randn_like(parameter)
        save_classifier(model, load_tokenizer("minilm"), Path(name))
    lines = ["gold_label\tsentence1\tsentence2\theuristic\tsubcase"] + [
        f"{label}\tThe actor {i} ran .\tThe actor ran .\t{kind}\t{kind[:2]}_{label[:3]}"
        for i in range(3)
        for kind in ("lexical_overlap", "subsequence", "constituent")
        for label in ("entailment", "non-entailment")
    ]
    (tmp_path / HANS_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    lines = ["sentence1\tsentence2\tgold_label"] + [
        f"He ran {i} miles.\tHe ran.\t{label}"
        for i in range(4)
        for label in ("entailment", "neutral", "contradiction")
    ]
    (tmp_path / "MNLI").mkdir()
    for name in ("train", "dev_matched"):
        text = "\n".join(lines) + "\n"
        (tmp_path / "MNLI" / f"{name}.tsv").write_text(text, encoding="utf-8")
    for variable in ("HANS", "GLUE", "RESULTS"):
        monkeypatch.setenv(f"SHRINK_{variable}_DIR", str(tmp_path))
    groups = {"heuristic": tuple(names[:3]), "generalizing": tuple(names[3:])}
    return replace(
        profile, name="tiny-hub", heuristics=replace(profile.heuristics, **groups, test_rows=12)
    )


def test_models_of_a_hub_are_judged_on_mnli_and_hans_by_entailment_or_not(hub):
    table = measure_generalization(hub)
    assert set(table.data) == {"dev", "overlap"} and table.value.notna().all()
    accuracies = table[table.quantity == "accuracy"]
    assert set(accuracies[accuracies.data == "overlap"].label) == {"entailment", "not_entailment"}
    assert accuracies.groupby(["group", "number"]).size().eq(1 + 6).all()
    loaders, tokenizer = load_groups(hub)
    pairs = pairs_by_name(hub)["dev"]
    assert sorted(pairs["label"]) == [0] * 4 + [1] * 8  # neutral and contradiction together
    labels, batches = torch.tensor(pairs["label"]), pair_batches(pairs, tokenizer)
    for member, load in loaders.items():
        model = load()
        reading = read_layers(model, batches)
        loss, right = _judged(reading, model, reading.depth)
        with torch.no_grad():
            probabilities = model(**{k: v for k, v in batches[0].items() if k != "labels"})
        probabilities = probabilities.logits.softmax(dim=1)
        entailed = probabilities[:, 1]  # BERT's own order
        expected = torch.where(labels == 0, entailed, 1 - entailed).log().mean()
        assert loss == pytest.approx(-float(expected), abs=1e-5)
        answers = (probabilities.argmax(dim=1) != 1).long()
        assert torch.equal(right, answers == labels)
        dev = accuracies.query("data == 'dev' and group == @member.group")
        share = dev[dev.number == member.number].value.item()
        assert share == pytest.approx(float(right.float().mean()))
