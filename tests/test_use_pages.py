"""The pages of the book on use in one's own work: their code, run as it stands there."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from shrink_utils.geometry import anisotropy, cka, iso_score
from shrink_utils.models import token_states
from shrink_utils.sources import data_dir
from shrink_utils.topology import BarcodeRegularizer, h0_barcode, persistent_entropy

PAGES = Path(__file__).resolve().parents[1] / "docs" / "book" / "use"
SCRIPT = "# several.py\n"


def _code(page: str) -> list[str]:
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def _run(blocks, names):
    for block in blocks:
        exec(compile(block, "page", "exec"), names)
        for parameter in names.get("parameters", []):
            assert parameter.grad is None or parameter.grad.isfinite().all()


def test_the_loop_runs_and_spreads_the_bars(monkeypatch, capsys):
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    names = {}
    _run([block for block in _code("pytorch") if not block.startswith(SCRIPT)], names)
    classes = capsys.readouterr().out
    assert classes.startswith("[0, 1] [")
    assert names["loss"].isfinite() and names["loss"] < names["task_loss"]
    per_text, mask, tokens = names["per_text"], names["mask"], names["tokens"]
    for i, own in enumerate(mask):  # one text after the other
        lengths = h0_barcode(tokens[i, own]).lengths
        assert per_text.n_bars[i] == len(lengths) == own.sum() - 1
        torch.testing.assert_close(
            per_text.entropy[i], persistent_entropy(lengths), check_dtype=False
        )
    assert (tokens.grad[~mask] == 0).all() and (tokens.grad[mask] != 0).any()


@pytest.mark.nightly
def test_two_processes_print_what_one_would(tmp_path):
    (script,) = [block for block in _code("pytorch") if block.startswith(SCRIPT)]
    (tmp_path / "several.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, "several.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    printed = [float(number) for number in re.findall(r"\d+\.\d+", done.stdout)]
    torch.manual_seed(0)
    inputs, model = torch.randn(64, 20), torch.nn.Linear(20, 2)
    labels = (inputs[:, 0] > 0).long()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss = loss + BarcodeRegularizer(weight=0.1)(model(inputs), labels).loss
    loss.backward()
    assert printed == pytest.approx([loss.item(), model.weight.grad.norm().item()], abs=2e-5)


@pytest.mark.filterwarnings("ignore:'pin_memory' argument")  # of a machine without a GPU
def test_the_trainer_adds_the_term_while_training_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHRINK_HOME", str(tmp_path))  # no checkout, as after pip install .
    names = {}
    _run(_code("trainer"), names)
    assert "with the regularizer; the task alone" in capsys.readouterr().out
    trained, task = names["result"].training_loss, names["trainer"].evaluate()["eval_loss"]
    assert trained < task < 1  # the entropy of two classes is some tenths
    entries = [entry for entry in names["trainer"].state.log_history if "reward" in entry]
    assert [entry["step"] for entry in entries] == [2, 4]
    for entry in entries:
        assert entry["loss"] == pytest.approx(entry["task_loss"] + entry["reward"], abs=1e-4)
        assert 0 < -entry["reward"] == pytest.approx(0.1 * entry["entropy"], abs=1e-4)
        assert entry["bars"] == 32 - 2 and 1 / 32 < entry["pc1_share"] < 1


@pytest.mark.filterwarnings("default")  # not pinned: their warnings are their own
@pytest.mark.parametrize("page", ["lightning", "sentence_transformers"])
def test_other_trainers_take_the_term(page, tmp_path, monkeypatch):
    pytest.importorskip(page, reason="not among our packages")
    monkeypatch.chdir(tmp_path)
    _run(_code(page), {})


@pytest.mark.nightly
def test_the_verses_are_those_of_the_last_analysis_and_the_table_comes_out_again(capsys):
    from shrink_utils.study import verse_search

    pairs = verse_search._verse_pairs()
    assert len(pairs) == 30_359 and pairs[0][0].startswith("To Enoch was born Irad.")
    table = verse_search._measure_search().set_index("id")
    path = data_dir() / "reference" / "search" / "verses.csv"
    committed = pd.read_csv(path).set_index("id")
    assert (table.index == committed.index).all()
    uncut = table.index.str.contains("uncut")  # divides by rounding, each machine by its own
    assert (table.estimate - committed.estimate)[~uncut].abs().max() < 0.01
    cut = table.estimate[table.index[uncut].str.replace("uncut", "whitened")]
    assert (table.estimate[uncut].to_numpy() < cut.to_numpy() + 0.01).all()


def test_the_page_of_few_bits_searches_ones_own_texts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my.txt").write_text("\n".join(SENTENCES * 3), encoding="utf-8")
    _run([block.replace('"minilm"', '"tiny-random"') for block in _code("search")], names := {})
    assert re.match(r"0\.\d\d of the five", capsys.readouterr().out)
    assert names["few"].rows.shape == (63, 5) and names["full"].similarity[:, 0].min() > 0.99


SENTENCES = [f"the {noun} is near a {other}" for noun in "abcdef" for other in "ghijklm"]


@pytest.mark.parametrize("page", ["measures", "streaming"])
def test_the_measures_are_those_of_ones_own_sentences(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my.txt").write_text("\n".join(SENTENCES), encoding="utf-8")
    (block,) = _code(page)
    _run([block.replace('"minilm"', '"tiny-random"')], names := {})
    printed = capsys.readouterr().out
    told = re.search(r"```text\n(.*?)```", (PAGES / f"{page}.md").read_text("utf-8"), re.DOTALL)[1]
    number = re.compile(r"-?\d[\d,]*(\.\d{3})?")
    assert number.sub("0", printed) == number.sub("0", told)
    if page == "streaming":
        first, last = token_states(names["encoder"], SENTENCES, layers=[0, -1]).vectors
        assert names["score"].n_rows == len(last)
        for metric, expected in [
            ("shares", anisotropy(last, center=True)),
            ("score", iso_score(last)),
            ("likeness", cka(first, last)),
        ]:
            assert names[metric].compute().numpy() == pytest.approx(np.asarray(expected), rel=1e-8)
