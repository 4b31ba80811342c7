"""Nothing that is fetched or sent can run code here."""

import ast
import re
from pathlib import Path

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
