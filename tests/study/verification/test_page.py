"""The page that says where results come from."""

from __future__ import annotations

import json
import shutil

import pytest

from shrink_utils.study.profiles import load_profile
from shrink_utils.study.runs.run_or_load import run_id
from shrink_utils.study.verification.inputs import inputs_of
from shrink_utils.study.verification.page import write_provenance
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
    (tmp_path / "tiny" / "runs" / "0123456789abcdef.damaged-1").mkdir()
    return tmp_path / "tiny"


def test_the_page_holds_inputs_runs_tables_and_times(finished, folder):
    write_provenance(finished)
    page = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    assert page["profile"] == {"name": "tiny", "seed": 0, "hash": finished.hash}
    assert set(page["runs"]) == {run_id(config) for config in finished.runs()}
    run = page["runs"][run_id(finished.runs()[0])]
    assert run["what"] == "tiny-random · sentiment_movies · none · 0"
    assert run["seconds"] > 0 and run["threads"] == 1
    manifest = folder / "runs" / run_id(finished.runs()[0]) / "manifest.json"
    assert run["manifest.json"] == sha256_of(manifest)
    assert page["results"] == {"tables/claims.csv": sha256_of(folder / "tables" / "claims.csv")}
    assert page["notebooks"] == {"01_isotropy": 12.3}
    assert page["packages"]["torch"].startswith("2.") and page["commit"]
    weights = page["inputs"]["minilm"]["files"]["model.safetensors"]
    assert weights == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def test_people_read_the_same(finished, folder):
    write_provenance(finished)
    text = (folder / "provenance.md").read_text(encoding="utf-8")
    assert text.startswith("# tiny: a tiny random encoder")
    assert f"| profile | tiny, seed 0, hash {finished.hash} |" in text
    assert "| 01_isotropy | 12 |" in text and "| minilm | model.safetensors | 53aa51172d" in text
    assert f"| {len(finished.runs())} |" in text.split("## Runs")[1].split("## Notebooks")[0]
    assert not (folder / "provenance.json.part").exists()


def test_the_page_names_no_place_of_the_machine(finished, folder):
    write_provenance(finished)
    for name in ("provenance.json", "provenance.md"):
        assert str(folder.parent) not in (folder / name).read_text(encoding="utf-8")


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

    monkeypatch.setattr("shrink_utils.study.verification.inputs.try_to_load_from_cache", cached)
    inputs = inputs_of(load_profile("paper"))
    assert inputs["mrpc"]["files"] == {"train.tsv": sha256_of(tmp_path / "MRPC" / "train.tsv")}
    roberta = inputs["FacebookAI/roberta-base"]
    assert roberta["source"] == "the hub, commit 0123abcd"
    assert roberta["files"] == {"model.safetensors": sha256_of(snapshot / "model.safetensors")}
    assert "google-bert/bert-base-uncased" not in inputs


def test_glue_of_the_hub_is_named_without_files(tmp_path, monkeypatch):
    monkeypatch.delenv("SHRINK_GLUE_DIR", raising=False)
    monkeypatch.setattr("shrink_utils.text.glue.data_dir", lambda: tmp_path)
    assert inputs_of(load_profile("glue"))["cola"] == {
        "source": "nyu-mll/glue, the hub",
        "files": {},
    }
