"""Nothing that is fetched or sent can run code here."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from shrink_utils.models import load_classifier, load_encoder
from shrink_utils.text.sources import sources

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "shrink_utils").rglob("*.py"))


def test_models_are_read_from_safetensors_and_their_code_is_refused():
    """Ruff's rules S and TID251 find what unpickles and executes; these are options of calls."""
    calls = [node for path in MODULES for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    calls = [node for node in calls if isinstance(node, ast.Call)]
    loads = 0
    for call in calls:
        called = ast.unparse(call.func)
        options = {option.arg: ast.unparse(option.value) for option in call.keywords}
        off = {"trust_remote_code", "allow_pickle"} & options.keys()
        assert {options[name] for name in off} <= {"False"}, called
        if called.endswith(".from_pretrained"):
            loads += 1
            # Without the option, transformers asks at the terminal: `echo y |` would run the code.
            assert "trust_remote_code" in off, called
            weightless = re.search("Tokenizer|Config", called)
            assert weightless or options.get("use_safetensors") == "True", called
    assert loads > 3


@pytest.fixture
def with_code(tmp_path):
    """A model's folder whose configuration asks for code beside it, which leaves a mark."""
    encoder = load_encoder("tiny-random")
    encoder.model.save_pretrained(tmp_path)
    encoder.tokenizer.save_pretrained(tmp_path)
    mark = tmp_path / "was_run"
    (tmp_path / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Evil: pass\n")
    config = tmp_path / "config.json"
    ask = '"auto_map": {"AutoModel": "evil.Evil", "AutoConfig": "evil.Evil"},'
    config.write_text(config.read_text().replace("{", "{" + ask, 1))
    return tmp_path


@pytest.mark.parametrize(
    "load", [load_encoder, lambda name: load_classifier(name, n_labels=2, seed=0)]
)
def test_code_that_comes_with_a_model_is_not_run(with_code, load, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("somebody was asked"))
    load(str(with_code))  # by BERT's own code
    assert not (with_code / "was_run").exists()


def test_everything_fetched_is_pinned_by_hash_and_has_its_licence():
    for source in sources().values():
        assert re.fullmatch("[0-9a-f]{64}", source.sha256) and source.licence
        assert source.files and all(re.fullmatch("[0-9a-f]{64}", h) for h in source.files.values())
