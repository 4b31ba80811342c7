"""Rows of GLUE that no reader should stumble over; tests/text/test_glue.py has the others."""

import time

from shrink_utils.text import load_task


def test_empty_sentences_and_two_megabytes_in_one_line_are_texts_like_any_other(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("SHRINK_GLUE_DIR", str(tmp_path))
    (tmp_path / "MRPC").mkdir()
    long = "very " * 400_000
    text = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    for label, a, b in [(1, "", "He sang."), (0, "", ""), (1, long, "short")]:
        text += f"{label}\t1\t2\t{a}\t{b}\n"
    for split in ("train", "dev"):
        (tmp_path / "MRPC" / f"{split}.tsv").write_text(text, encoding="utf-8")
    started = time.monotonic()
    rows = load_task("mrpc")["train"]
    assert time.monotonic() - started < 10
    assert rows["text"][:] == ["", "", long] and rows["text_pair"][1] == ""
