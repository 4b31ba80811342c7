"""docs/faults.md names tests that exist, and every test of this folder."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.findall(
    r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)",
    (ROOT / "docs" / "faults.md").read_text(encoding="utf-8"),
)


def _tests(path: Path) -> set[str]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


def test_every_test_that_the_table_names_exists():
    assert len(NAMED) > 20
    missing = [(name, path) for name, path in NAMED if name not in _tests(ROOT / path)]
    assert not missing


def test_every_row_of_the_table_names_a_test():
    text = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert all("test_" in row and row.count("|") == 4 for row in rows)


def test_the_readme_leads_to_the_table():
    assert "(docs/faults.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
