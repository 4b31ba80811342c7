"""Rows of GLUE that no fine-tuning should stumble over; tests/text/test_glue.py has the others."""

import time
from dataclasses import replace

from shrink_utils.study import finetune
from shrink_utils.text import load_task
from tests.study.conftest import CONFIG


def test_empty_sentences_and_two_megabytes_in_one_line_are_texts_like_any_other(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("SHRINK_GLUE_DIR", str(tmp_path))
    (tmp_path / "MRPC").mkdir()
    long, ordinary = "very " * 400_000, [(i % 2, f"a {i}", f"b {i}") for i in range(16)]
    odd = [(1, "", "He sang."), (0, "", ""), (1, long, "short")]
    for split, rows in (("train", [*odd, *ordinary[len(odd) :]]), ("dev", ordinary)):
        text = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
        text += "".join(f"{label}\t1\t2\t{a}\t{b}\n" for label, a, b in rows)
        (tmp_path / "MRPC" / f"{split}.tsv").write_text(text, encoding="utf-8")
    started = time.monotonic()
    rows = load_task("mrpc")["train"]
    assert time.monotonic() - started < 10
    assert rows["text"][:3] == ["", "", long] and rows["text_pair"][1] == ""
    whole = {"task": "mrpc", "train_rows": None, "eval_rows": None}
    short = {"epochs": 1, "max_length": 16, "batch_size": 8}  # the long text is cut
    history = finetune(replace(CONFIG, arm="all", **whole, **short)).history
    assert len(history) == 2 and history.task_loss.notna().all()
