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
# What reads pickles, or runs what it reads.
UNSAFE_MODULES = {
    "pickle",
    "_pickle",
    "cPickle",
    "cloudpickle",
    "dill",
    "joblib",
    "shelve",
    "marshal",
}
UNSAFE_CALLS = {"exec", "eval", "compile", "__import__", "torch.load", "np.load", "yaml.load"}
UNSAFE_METHODS = {"exec", "read_pickle", "unsafe_load", "full_load"}  # model.eval() is harmless
UNSAFE_OPTIONS = {"trust_remote_code", "allow_pickle", "shell"}


def _unsafe(source: str) -> list[str]:
    """What in a module could run code that it reads: imports, calls and options."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in UNSAFE_MODULES]
        elif (
            isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNSAFE_MODULES
        ):
            found.append(node.module)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in UNSAFE_CALLS or called.split(".")[-1] in UNSAFE_METHODS:
                found.append(called)
            found += [k.arg for k in node.keywords if k.arg in UNSAFE_OPTIONS and _is_on(k.value)]
            if called.endswith("from_pretrained") and _loads_weights(node):
                found += ["from_pretrained without safetensors"]
            if called.endswith("from_pretrained") and not _refuses_code(node):
                found += ["from_pretrained that may ask whether to run code"]
    return found


def _is_on(value: ast.expr) -> bool:
    return not (isinstance(value, ast.Constant) and value.value is False)


def _loads_weights(call: ast.Call) -> bool:
    """Models only: a configuration or a tokenizer has no weights."""
    of = ast.unparse(call.func).removesuffix(".from_pretrained")
    safe = any(k.arg == "use_safetensors" and _is_on(k.value) for k in call.keywords)
    return not safe and not re.search("Tokenizer|Config", of)


def _refuses_code(call: ast.Call) -> bool:
    """Without the option, transformers asks at the terminal: ``echo y |`` would run the code."""
    return any(k.arg == "trust_remote_code" and not _is_on(k.value) for k in call.keywords)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_package_unpickles_nothing_and_runs_no_code_of_a_model(path):
    assert not _unsafe(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from joblib import load",
        "import torch\ntorch.load('x')",
        "exec('1')",
        "import builtins\nbuiltins.exec('1')",
        "pd.read_pickle('x')",
        "np.load('x', allow_pickle=True)",
        "AutoModel.from_pretrained('x', use_safetensors=True, trust_remote_code=True)",
        "AutoModel.from_pretrained('x', use_safetensors=True, trust_remote_code=flag)",
        "AutoModel.from_pretrained('x', trust_remote_code=False)",
        "AutoModel.from_pretrained('x', use_safetensors=True)",
        "AutoTokenizer.from_pretrained('x')",
        "subprocess.run('x', shell=True)",
    ],
)
def test_the_search_finds_what_it_looks_for(source):
    assert _unsafe(source)


@pytest.mark.parametrize(
    "source",
    [
        "model.eval()",
        "re.compile('x')",
        "AutoTokenizer.from_pretrained('x', trust_remote_code=False)",
        "AutoModel.from_pretrained('x', use_safetensors=True, trust_remote_code=False)",
        "json.load(file)",
        "f(trust_remote_code=False)",
    ],
)
def test_the_search_lets_pass_what_is_harmless(source):
    assert not _unsafe(source)


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
