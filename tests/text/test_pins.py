"""What is read from the hub is read at a commit that is written down."""

from __future__ import annotations

import re
import tomllib

from transformers import AutoConfig, AutoModel, AutoTokenizer

from shrink_utils.models import random_encoder
from shrink_utils.paths import home
from shrink_utils.study import load_profile
from shrink_utils.text import fetch, hub_revision, hub_revisions, source_hashes


def test_each_pin_is_a_commit():
    pins = tomllib.loads((home() / "data" / "hub.toml").read_text(encoding="utf-8"))
    assert pins and all(re.fullmatch("[0-9a-f]{40}", commit) for commit in pins.values())


def test_the_ablations_of_the_paper_read_pinned_models_and_data():
    pinned = [*load_profile("paper").models, "nyu-mll/glue"]
    assert len(pinned) == 3 and all(hub_revision(name) for name in pinned)


def test_the_pairs_of_the_paper_name_their_commit():
    assert re.search("@[0-9a-f]{40}$", load_profile("paper").pretraining.source)


def test_what_is_not_of_the_hub_has_no_commit(tmp_path, monkeypatch):
    assert hub_revision("minilm") is None
    monkeypatch.setenv("SHRINK_HOME", str(tmp_path))  # no checkout
    assert hub_revision("google-bert/bert-base-uncased") is None
    assert hub_revisions() == source_hashes() == {}


def test_the_hashes_of_archives_are_those_of_the_table():
    table = tomllib.loads((home() / "data" / "sources.toml").read_text(encoding="utf-8"))
    assert source_hashes() == {name: entry["sha256"] for name, entry in table.items()}


def test_an_encoder_is_asked_for_at_its_commit(monkeypatch):
    """Configuration, weights and tokenizer: the hub serves each by itself."""
    name, local, asked = "FacebookAI/roberta-base", fetch("minilm"), {}

    def watched(kind):
        read = kind.from_pretrained

        def from_pretrained(pretrained_model_name_or_path, revision=None, **options):
            if pretrained_model_name_or_path == name:
                asked[kind.__name__] = revision
            return read(local, **options)

        return from_pretrained

    kinds = (AutoConfig, AutoModel, AutoTokenizer)
    for kind in kinds:
        monkeypatch.setattr(kind, "from_pretrained", watched(kind))
    random_encoder(name)  # reads the configuration, after the trained encoder
    assert asked == {kind.__name__: hub_revision(name) for kind in kinds}
