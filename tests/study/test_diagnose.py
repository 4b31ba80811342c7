"""The diagnosis of one encoder: what it is called with, and its figure."""

import pandas as pd
import pytest

from shrink_utils.study import diagnose as module
from shrink_utils.study import load_profile
from shrink_utils.study.diagnose import (
    ANGLES,
    SHARES,
    diagnose,
    record_diagnosis,
    write_diagnosis,
)


@pytest.fixture
def table():
    """Curves that fill their panels: from the lowest to the highest value and back."""
    values = {name: [i / 2, 1 - i / 2, i / 2] for i, name in enumerate([*ANGLES, *SHARES])}
    return pd.DataFrame(values).rename_axis("layer")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("minilmm", "minilm"),
        ("mini-lm", "minilm"),
        ("tiny-randon", "tiny-random"),
        ("mpnt", "mpnet"),
    ],
)
def test_a_near_name_is_named_before_a_hub_is_asked(monkeypatch, typed, meant):
    monkeypatch.setattr(module, "load_encoder", lambda *_, **__: pytest.fail("the hub was asked"))
    with pytest.raises(ValueError, match=f"no local encoder '{typed}', did you mean '{meant}'"):
        diagnose(typed, ["a text"])


def test_the_files_bear_the_name_and_hold_one_row_per_layer(table, tmp_path):
    paths = write_diagnosis(table, tmp_path / "new", name="any", title="any")
    assert [path.name for path in paths] == ["diagnose-any.csv", "diagnose-any.png"]
    assert len(pd.read_csv(paths[0])) == 3
    assert paths[1].stat().st_size > 10_000


def test_a_record_holds_each_model_once_with_its_provenance(table, tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    profile = load_profile("smoke")
    for model, shift in (("a", 0), ("b", 0), ("a", 1)):
        path = record_diagnosis(table + shift, profile, model=model, since=0.0)
    assert path == tmp_path / "reference" / "smoke" / "layers.csv"
    found = pd.read_csv(path)
    assert list(found.model) == ["b"] * 3 + ["a"] * 3 and list(found.layer) == [0, 1, 2] * 2
    assert list(found.AvgSim) == [*table.AvgSim, *(table.AvgSim + 1)]
    assert (found.sentences == 48).all() and found.commit.notna().all()
    assert {"time", "device", "threads", "seconds"} <= set(found.columns)
