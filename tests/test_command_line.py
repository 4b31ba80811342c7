"""The command line as a person in a shell uses it."""

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib import import_module

import nbformat
import pandas as pd
import pytest

from shrink_utils.__main__ import COMMANDS, main
from shrink_utils.sources import data_dir, home
from shrink_utils.text import load_sentences
from tests.conftest import run_make


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    monkeypatch.setenv("SHRINK_PROFILE", "smoke")
    return tmp_path


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("\n".join(load_sentences("editorials", n=60)["text"]), encoding="utf-8")
    return path


def test_diagnose_prints_and_writes_a_row_per_layer(results, text, monkeypatch):
    """Also at a terminal that is not UTF-8."""
    out, terminal = results / "out", io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", terminal)
    assert main(["diagnose", "tiny-random", "--text", str(text), "--out", str(out)]) == 0
    printed = terminal.buffer.getvalue().decode("ascii")
    assert "tiny-random on 60 texts (mine.txt)" in printed
    table = pd.read_csv(out / "diagnose-tiny-random.csv", index_col="layer")
    assert table.notna().all(axis=None) and len(table) >= 3
    assert f"{table['AvgSim'].iloc[-1]:.3f}" in printed
    assert (out / "diagnose-tiny-random.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_is_listed_has_its_function(name):
    """They are named by string: no import fails where one has moved."""
    module = import_module(f"shrink_utils.study.{COMMANDS[name][0]}")
    assert callable(getattr(module, f"_{name}_command"))


def test_a_seed_that_is_too_large_is_named_before_the_work(results, capsys):
    assert main(["--seed", "20260101", "ablate"]) == 1
    error = capsys.readouterr().err
    assert "seed: 20260101" in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "content", "message"),
    [
        ("", None, "text: "),
        ("", "😀 😁!\n" * 40, "😀 😁!"),
        ("", "слово и дело\n" * 40, ""),
        ("", "".join(f"word{i}x{i}\n" for i in range(40)), "--min-count"),
        ("", "a dog\n" * 29, "29 texts"),
        ("--min-count 1", "a dog\n" * 40, "--min-count"),
        ("--min-count 2", "a dog\n" * 40, ""),
        ("--max-length 2", "a dog\n" * 40, "--max-length: 2"),
        ("--column text", "a dog\n" * 40, "--column"),
        ("", '{"text": "a dog", "label": 1}\n' * 40, "40 of 40 lines"),
    ],
)
def test_a_text_is_diagnosed_or_refused_in_one_line(results, capsys, options, content, message):
    path = results / "text.txt"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    given = ["diagnose", "tiny-random", "--text", str(path), "--out", str(results)]
    assert main([*given, *options.split()]) == (1 if message else 0)
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == (1 if message else 0)
    assert bool(list(results.glob("diagnose-*"))) == (not message)


def test_a_folder_that_cannot_be_written_is_named_before_the_work(results, text, capsys):
    taken = results / "a file"
    taken.write_text("mine")
    out = taken / "below"
    assert main(["diagnose", "no-such-model", "--text", str(text), "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert f"out: {out} " in error and error.count("\n") == 1
    assert taken.read_text() == "mine"


def test_a_pipe_is_like_a_file_and_what_is_cut_or_repeated_is_told(results, text, capsys):
    lines = text.read_text(encoding="utf-8").splitlines()
    text.write_text("\n".join([*lines[:50], *lines[:10]]), encoding="utf-8")
    reader, writer = os.pipe()
    os.write(writer, text.read_bytes())
    os.close(writer)
    for path, out in ((f"/dev/fd/{reader}", "piped"), (text, "read")):
        given = ["--text", str(path), "--out", str(results / out), "--max-length", "9"]
        assert main(["diagnose", "tiny-random", *given]) == 0
        told = capsys.readouterr().out
        assert "of 60 texts were cut at 9 tokens" in told and "10 of 60 texts repeat" in told
    piped, read = (results / out / "diagnose-tiny-random.csv" for out in ("piped", "read"))
    assert piped.read_text() == read.read_text()


def test_a_reader_that_has_enough_ends_the_command_quietly(results):
    script = f"{sys.executable} -m shrink_utils record | true; echo ${{PIPESTATUS[0]}}"
    command = ["bash", "-c", script]
    done = subprocess.run(command, cwd=home(), capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.parametrize("after", [0.05, 3.0])
def test_ctrl_c_is_one_line_and_status_130(results, after):
    command = [sys.executable, "-X", "importtime", "-m", "shrink_utils", "ablate"]
    process = subprocess.Popen(
        command,
        cwd=home(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test in the background of a shell ignores Ctrl-C, and so would its child.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for line in process.stderr:  # imports, as they end
        if "shrink_utils.sources" in line:
            break
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    told = process.communicate()[1]
    # Python may end by the signal itself, while it still imports: a shell calls both 130.
    assert process.returncode in (130, -signal.SIGINT), told
    assert "shrink: interrupted\n" in told and "Traceback" not in told


def test_a_notebook_is_executed_with_the_profile_of_the_command(results, monkeypatch):
    monkeypatch.chdir(results)
    monkeypatch.setenv("SHRINK_SEED", "0")
    asks = "import os\nprint(os.environ['SHRINK_PROFILE'], os.environ['SHRINK_SEED'])"
    cell = nbformat.v4.new_code_cell(asks)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), results / "any.ipynb")
    options = ["--profile", "strength", "--seed", "3"]
    assert main([*options, "execute", "any.ipynb", "done.ipynb"]) == 0
    executed = nbformat.read(results / "done.ipynb", as_version=4).cells[0].outputs[0].text
    assert executed.split() == ["strength", "3"]


@pytest.mark.parametrize(
    "words",
    [
        ["PROFILE=quik"],
        ["PROFILE=quick smoke"],
        ["SHRINK_RESULTS_DIR=/a b"],
        ["SEED=07"],
        ["SEED=20260101"],
        ["PYTHON=false"],
    ],
    ids=str,
)
def test_make_names_a_setting_that_is_none_before_it_does_anything(tmp_path, words):
    told = run_make(f"SHRINK_RESULTS_DIR={tmp_path}", *words, "reproduce")
    assert told.returncode == 2 and told.stdout == "" and told.stderr.count("\n") == 1
    assert words[0] in told.stderr and not list(tmp_path.iterdir())


def test_claims_are_printed_after_a_study_and_asked_for_before(results, capsys):
    assert main(["claims"]) == 1
    assert "make reproduce" in capsys.readouterr().err
    tables = results / "smoke" / "tables"
    tables.mkdir(parents=True)
    committed = data_dir() / "reference" / "quick" / "claims.csv"
    shutil.copy(committed, tables / "claims.csv")
    assert main(["claims"]) == 0
    assert pd.read_csv(committed).statement[0] in capsys.readouterr().out


def test_make_clean_removes_results_and_nothing_else(tmp_path):
    folder, kept = tmp_path / "study", {"Makefile", "requirements.lock", "shrink_utils"}
    (folder / "results" / "quick").mkdir(parents=True)
    for name in kept:
        (folder / name).symlink_to(home() / name)
    assert run_make("-C", str(folder), "clean").returncode == 0
    assert {path.name for path in folder.iterdir()} == kept


def test_make_lab_serves_the_notebooks_of_a_folder_whose_name_is_hard_for_a_shell(tmp_path):
    folder = tmp_path / "a b (1) & $x'é"
    folder.mkdir()
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "shrink_utils", "notebooks"):
        (folder / name).symlink_to(home() / name)
    (folder / ".venv").symlink_to(home() / ".venv")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = f"--no-browser --allow-root --port {port} --IdentityProvider.token="
    command = ["make", "-C", str(folder), "-o", ".venv/.complete", "lab", f"LAB={options}"]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, env=kept, stdout=log, stderr=log, start_new_session=True)
    try:
        address = f"http://127.0.0.1:{port}/api/contents/notebooks"
        for _ in range(240):
            assert server.poll() is None, (tmp_path / "log").read_text()
            try:
                with urllib.request.urlopen(address) as answer:
                    listed = json.load(answer)["content"]
                break
            except urllib.error.URLError:
                time.sleep(0.5)
        assert "04_barcodes.ipynb" in [entry["name"] for entry in listed]
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


@pytest.mark.parametrize(("seed", "folder"), [("0", "quick"), ("7", "quick-seed7")])
def test_another_seed_is_another_study_beside_the_committed_one(seed, folder):
    asked = ["--eval", "said:; @echo $(OUT)", "PROFILE=quick", f"SEED={seed}", "said"]
    assert run_make(*asked).stdout.splitlines()[-1].endswith(f"/{folder}")
