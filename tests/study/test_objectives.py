"""The fourth fixed analysis: texts and their traps, blocks whole or not, planted verdicts."""

import runpy
import struct
import sys
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "data" / "reference" / "objectives"
DECIDE = runpy.run_path(str(FOLDER / "decide.py"))
MODULES = ("text", "train", "compare", "run")
SEEDS = (500, 501, 502)


@pytest.fixture
def run(monkeypatch):
    """The module of the runner, which finds its neighbours as a script does."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import run

    yield run
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def text(run):
    return sys.modules["text"]


HEAD = "id\tsource_verse\ttext\tskip_space_after\texclude\tid_range_end\tsource_verse_range_end\n"
ENGLISH = """\
01001001001\t01001001\tNA\t\t\t\t
43001001001\t43001001\tHe\t\t\t\t
43001001002\t43001001\tnull\ty\t\t\t
43001001003\t43001001\t.\t\ty\t\t
43001002001\t43001001\tstill\t\t\t\t
43001003001\t43001003\talone\t\t\t\t
43001004001\t43001004\t"\t\ty\t\t
"""
GREEK = "id\taltId\ttext\nn43001001001\tx\tαὐτός\nn43001004001\tx\tμόνος\n"


@pytest.fixture
def verses(tmp_path):
    (tmp_path / "nt_BSB.tsv").write_text(HEAD + ENGLISH, encoding="utf-8")
    (tmp_path / "SBLGNT.tsv").write_text(GREEK, encoding="utf-8")
    return tmp_path


def test_verses_join_on_their_source_and_one_sided_ones_are_counted(text, verses):
    found, counts = text.testament(verses)
    assert found == [text.Verse("43001001", ("He", "null", "still"), ("αὐτός",))]
    # 43001004 has nothing but punctuation in English, 01001001 and 43001003 no Greek.
    assert (counts["english_only"], counts["greek_only"]) == (2, 1)
    assert counts["english_words"] == 3
    assert "01001001" in text.read_words(verses / "nt_BSB.tsv")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("SBLGNT.tsv", "id\ttext\n43001001001\tαὐτός\n", "begins n"),
        ("SBLGNT.tsv", "id\ttext\nn4300\tαὐτός\n", "eight digits"),
        ("nt_BSB.tsv", "id\ttext\n43001001001\tHe\n", "no column"),
    ],
)
def test_a_table_that_is_another_is_refused_by_name(text, verses, name, content, said):
    (verses / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=f"{name}.*{said}"):
        text.testament(verses)


def test_held_out_verses_that_share_eight_words_with_training_are_dropped(text):
    words = tuple("a b c d e f g h i".split())
    train = text.Verse("40001001", words)
    same, other = text.Verse("43001001", ("x", *words)), text.Verse("43001002", words[:7])
    assert text.parted([train, same, other], ["43"]) == ([train], [other], 1)


def _catalogue(pairs):
    """A .mo file's bytes."""
    keys, n = sorted(pairs), len(pairs)
    ids = [key.encode() + b"\0" for key in keys]
    values = [pairs[key].encode() + b"\0" for key in keys]
    at, rows, body = 28 + 16 * n, [], b""
    for block in (ids, values):
        for content in block:
            rows.append(struct.pack("<2I", len(content) - 1, at + len(body)))
            body += content
    head = struct.pack("<7I", 0x950412DE, 0, n, 28, 28 + 8 * n, 0, 0)
    return head + b"".join(rows) + body


def test_messages_lose_context_fields_tags_and_mnemonics_and_repeats(text, tmp_path):
    pairs = {
        "": "Content-Type: text/plain; charset=UTF-8\n",
        "Menu\x04_Open the <b>%(name)s</b> file": "Die Datei {name} _öffnen",
        "Open the %s file": "Noch einmal %s",
        "Save all changes": "Save  all changes",
        "Two words": "Zwei Wörter",
        "100%% of them&#8217;s done": "Zu 100%% fertig",
        "%d person\0%d people": "%d Person\0%d Leute",
    }
    (tmp_path / "gramps.mo").write_bytes(_catalogue(pairs))
    found, counts = text.messages("german", tmp_path)
    assert dict(found) == {
        "Open the □ file": "Die Datei □ öffnen",
        "100% of them’s done": "Zu 100% fertig",
    }
    assert counts["repeated"] == counts["equal"] == 1
    assert counts["short_or_untranslated"] == 1


@pytest.mark.parametrize("content", [b"", b"no catalogue at all", _catalogue({"a": "b"})[:40]])
def test_bytes_that_are_no_catalogue_are_a_clear_error(text, tmp_path, content):
    (tmp_path / "gramps.mo").write_bytes(content)
    with pytest.raises(ValueError, match=r"gramps\.mo: no catalogue"):
        text.messages("german", tmp_path)


def test_the_pinned_texts_have_the_counts_of_the_page(text):
    if not all((ROOT / "data" / "raw" / name).is_dir() for name in ("bible", "gramps_german")):
        pytest.skip("tests download nothing that nobody has named")
    page = (ROOT / "docs" / "preregistration_objectives.md").read_text(encoding="utf-8")
    counts = text.counts()
    assert (counts["testament"]["verses"], counts["testament"]["greek_words"]) == (7936, 137712)
    for of in counts.values():
        for name in ("train", "held_out", "dropped"):
            assert f"{of[name]:,}" in page
    assert len(text.texts("testament").train) == counts["testament"]["train"]


@pytest.fixture
def tiny(run, text, monkeypatch):
    """Small models of a made-up text, and options of their trainings."""
    rng = np.random.default_rng(0)
    words = ["light", "dark", "sea", "land", "day", "night", "good", "king", "house", "river"]

    def made(n):
        rows = [rng.permutation(words)[: rng.integers(4, 9)] for _ in range(n)]
        return [(" ".join(row), " ".join(w[::-1] for w in row)) for row in rows]

    texts = text.Texts(made(96), made(48))
    monkeypatch.setattr(text, "texts", lambda source: texts)
    run.train.__globals__["tokenizer_of"].cache_clear()
    for name, value in (("TOKENS", 64), ("CKA_ROWS", 16), ("DEALT", 2)):
        monkeypatch.setattr(run.compare, name, value)
    monkeypatch.setattr(run.compare, "MAP_TRAINING", run.compare.MapTraining(steps=2, warmup=1))
    options = {"source": "testament", "seed": 9000, "data_seed": 9000, "vocabulary": 80}
    return options | {"steps": 8, "width": 16, "depth": 2, "heads": 2, "fixed": 8}


def planned(run, tiny):
    of = {
        name: run.Training(objective=name, windows=((1, 3), (6, 8)), **tiny | {"seed": 9000 + i})
        for i, name in enumerate(run.OBJECTIVES)
    }
    found = [run.training_block("objectives", f"{n}-9000", of[n], objective=n) for n in of]
    pair = {name: of[name] for name in ("mlm", "mt")}
    made = partial(run.compared, run.compare.spaces, pair)
    needs = ("mlm-9000", "mt-9000")
    return [run.Block("spaces", "spaces-9000", made, needs, {"seed": 9000}), *found]


def test_blocks_are_made_once_in_the_order_of_their_needs_and_merged(
    run, tiny, tmp_path, monkeypatch
):
    here = run.stamp() | {"commit": "abc"}
    monkeypatch.setattr(run, "stamp", lambda: here)
    blocks, folder = planned(run, tiny), tmp_path / "blocks"
    monkeypatch.setattr(run, "blocks", lambda: blocks)
    (folder / ".mlm-9000.part").mkdir(parents=True)  # of a process that was stopped
    run.make_all(folder)
    assert run.collect(folder, tmp_path) == {"blocks": 4, "of": 4}
    raw = {path.stem: pd.read_parquet(path) for path in tmp_path.glob("*.parquet")}
    assert set(raw["runs"].capability) == {torch.backends.cpu.get_cpu_capability()}
    assert set(raw["losses"].what) == {"untrained", "trained", "unigram", "copy"}
    closure = raw["closure"].query("rule == 'trapezoid'")
    assert (closure.parts - closure.change).abs().max() < 0.01 * closure.change.abs().max()
    assert (raw["places"].steps.dropna() <= 3).all() and set(raw["places"]["window"]) == {0, 1}
    aligned = raw["aligned"].set_index(["encoder", "map"])
    assert aligned.agreement["own", "none"] == 1
    assert set(aligned.index.get_level_values(0)) == {"own", "mlm", "untrained"}
    assert set(raw["layers"].measure) == {"avg_sim", "self_sim", "intra_sim", "centred_1"}
    before = sorted(path.stat().st_mtime_ns for path in folder.rglob("*.parquet"))
    run.make_all(folder)
    assert before == sorted(path.stat().st_mtime_ns for path in folder.rglob("*.parquet"))


def test_following_a_training_leaves_its_weights_as_they_are(run, tiny):
    plain = run.Training(objective="clm", dropout=0.1, **tiny)
    models = [run.train(t).model for t in (plain, replace(plain, windows=((2, 5),)))]
    for one, other in zip(*(m.state_dict().values() for m in models), strict=True):
        assert torch.equal(one, other)


def test_a_block_that_fails_leaves_nothing_and_one_without_its_needs_waits(
    run, tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(run, "stamp", lambda: {"commit": "abc"})
    spaces, *_ = planned(run, tiny)
    run.make_all(tmp_path, planned=[spaces])
    assert not (tmp_path / "spaces-9000").exists()

    def broken(models):
        raise OSError("full disk")

    def whole(models):
        return {}, None

    two = [run.Block("objectives", name, make) for name, make in (("a", broken), ("b", whole))]
    with pytest.raises(RuntimeError, match="not made: a"):
        run.make_all(tmp_path, planned=two)
    assert not (tmp_path / "a").exists() and (tmp_path / "b").exists()


def test_changed_code_and_another_commit_are_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "stamp", lambda: {"commit": "abc-dirty"})
    with pytest.raises(ValueError, match="without changes"):
        run.check_checkout(tmp_path)
    monkeypatch.setattr(run, "stamp", lambda: {"commit": "abc"})
    (tmp_path / "mlm-500").mkdir()
    pd.DataFrame({"commit": ["def"]}).to_parquet(tmp_path / "mlm-500" / "runs.parquet")
    with pytest.raises(ValueError, match=r"mlm-500 is of \{'def'\}"):
        run.check_checkout(tmp_path)


def test_a_family_compares_every_layer_of_every_member(run, tiny):
    of = {
        n: run.Training(objective="clm", **tiny | {"depth": d}) for n, d in (("s1", 1), ("s2", 2))
    }
    (found,) = run.compare.family({n: run.new_model(t) for n, t in of.items()}, of).values()
    assert len(found) == 15  # 2 + 3 layers, with the embeddings
    own = found[(found.a == found.b) & (found.layer_a == found.layer_b)]
    assert own.cka.to_numpy() == pytest.approx(1)


def test_a_stitch_to_itself_by_identity_costs_nothing(run, tiny):
    of = {
        f"{a}-{s}": run.Training(objective="clm", activation=a, **tiny | {"seed": s})
        for a in ("gelu", "solu")
        for s in (1, 2)
    }
    (found,) = run.compare.stitches({n: run.new_model(t) for n, t in of.items()}, of).values()
    itself = found[(found.relation == "itself") & (found.kind == "identity")]
    assert itself.penalty.abs().max() < 1e-6
    pairs = found.drop_duplicates(["relation", "front", "back"]).relation.value_counts()
    assert pairs.to_dict() == {"itself": 4, "seed": 4, "activation": 4, "untrained": 4}


def test_a_finetuned_encoder_is_read_before_and_after(run):
    tiny = {"model": "tiny-random", "train_rows": 64, "eval_rows": 40, "epochs": 1, "seed": 9000}
    config = replace(run.finetunings()[0], **tiny)
    found = run.compare.after_finetuning(config)
    table = found["finetuned"]
    assert set(table.quantity) == {"neighbours", "score", "elongated"}
    kept = table[table.quantity == "neighbours"].groupby("when").value.mean()
    assert kept["after"] > 10 * kept["null"]
    assert set(found["removals"].when) == {"before", "after"}


def test_the_planned_blocks_need_only_what_is_planned_before_them(run):
    made = set()
    for block in run.blocks():
        assert set(block.needs) <= made and block.name not in made
        made.add(block.name)
    assert len(made) == 12 + 24 + 14 + 12 + 15


@pytest.mark.parametrize(("size", "verdict"), [(0.3, "as the paper"), (-0.3, "opposite"), (0, "")])
def test_effects_that_are_there_are_found_with_their_sign(tmp_path, size, verdict):
    tables = planted(size)
    for name, table in tables.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    found = DECIDE["decide"](DECIDE["read_tables"](tmp_path)).set_index("id")
    assert found.n.to_dict() == dict.fromkeys(found.index, 3)
    if size:
        assert found.estimate.to_numpy() * found.expected.to_numpy() == pytest.approx(
            [size * UNITS.get(name, 1) for name in found.index], abs=0.02
        )
        assert [*found.verdict] == [verdict] * len(found)
    else:
        assert set(found.verdict) <= {"equivalent", "open"}
    DECIDE["write"](tmp_path)
    once = [(tmp_path / f"{name}.csv").read_bytes() for name in ("hypotheses", "beside")]
    DECIDE["write"](tmp_path)
    assert once == [(tmp_path / f"{name}.csv").read_bytes() for name in ("hypotheses", "beside")]
    parts = set(pd.read_csv(tmp_path / "beside.csv").part)
    assert parts >= {"losses", "layers", "aligned", "family", "stitches", "shares", "members"}


UNITS = {"R1": 10}


def planted(size):
    """Tables in which every hypothesis has this size, with the paper's sign, and little noise."""
    rng, rows = np.random.default_rng(1), {}

    def add(table, value, column, **keys):
        value += 2e-4 * rng.standard_normal()
        rows.setdefault(table, []).append(keys | {column: value})

    for seed in SEEDS:
        for objective in ("mlm", "clm", "mt"):
            block = {"part": "objectives", "block": f"{objective}-{seed}", "seed": seed}
            block |= {"objective": objective}
            add("runs", 1.0, "seconds", **block)
            for what, loss in (("trained", 3.0), ("unigram", 5.0), ("copy", 4.9)):
                if what != "copy" or objective == "mt":
                    add("losses", loss, "loss", what=what, **block)
            for place in planted_places(objective, size):
                hurts = round(1000 * place.pop("share") + rng.integers(0, 3))
                add("places", place.pop("value"), "value", hurts=hurts, steps=1000, last=9.0,
                    largest=0.1, first=1, **block, **place)  # fmt: skip
            for head in range(2):
                add("heads", -0.1, "value", stack="", layer=1, head=head, rule="euler", **block)
        keys = {"part": "spaces", "block": f"spaces-{seed}", "seed": seed}
        jump = {("mt", 0): 0.2 + size, ("mt", 4): 0.2 + 2 * size, ("mlm", 0): 0.2}
        for objective, layer in ((o, i) for o in ("mlm", "mt") for i in range(5)):
            base = 0.2 + size * (objective == "mt")
            value = jump.get((objective, layer), base)
            add("layers", value, "value", null=0.0, measure="avg_sim", state="trained",
                objective=objective, layer=layer, **keys)  # fmt: skip
        for encoder, loss in (("mlm", 4 - size), ("untrained", 4.0)):
            add("aligned", loss, "loss", map="affine", encoder=encoder, agreement=0.5, **keys)
        planted_family(add, seed, size)
        ways = [("solu", "gelu"), ("gelu", "solu")]
        for depth, (front, back) in product((3, 4), ways):
            for layer in range(1, depth + 1):
                add("stitches", 0.1 + size * (front == "solu"), "penalty", relation="activation",
                    kind="trained", depth=depth, layer=layer, front=f"{front}-{seed}",
                    back=f"{back}-{seed}", part="stitching", block=f"stitch-{depth}")  # fmt: skip
        for task, when in product(("movies", "products"), ("before", "after")):
            add("finetuned", 10 + 10 * size * (when == "after"), "value", quantity="elongated",
                vectors="words", when=when, layer=6, task=task, arm="none", seed=seed,
                part="finetuning", block=f"rp-{task}-none-{seed}")  # fmt: skip
    return {name: pd.DataFrame(of) for name, of in rows.items()}


def planted_places(objective, size):
    """Shares of steps that hurt, and sums, by window, layer and component."""
    for window, layer, rule in product((0, 1), (1, 4), ("euler", "trapezoid")):
        for component in ("query", "key", "value", "out", "W1", "W2"):
            share = 0.4
            if objective == "mlm":
                share += size * (component in ("query", "key"))
            if objective == "mt":
                share += size * (component in ("value", "out", "W2"))
            if objective == "clm" and window == 1:  # less than the mean of the two others
                share += size / 6 + size / 4 - size
            upper = size / 4 * (1 if layer == 4 else -1) * component.startswith("W")
            for stack in ("encoder", "decoder") if objective == "mt" else ("",):
                yield {"window": window, "layer": layer, "rule": rule, "component": component,
                       "stack": stack, "share": share, "value": -1 / 12 - upper}  # fmt: skip


def planted_family(add, seed, size):
    """CKA that fades with depth, and two members that are odd."""
    depths = {"s1": 2, "s2": 2, "s3": 2, "s4": 2, "s5": 2, "narrow": 2, "shifted": 2}
    layers = [(name, i) for name, depth in depths.items() for i in range(depth + 1)]
    for k, (a, i) in enumerate(layers):
        for b, j in layers[k:]:
            odd = size * any(m in ("narrow", "shifted") for m in (a, b))
            value = 0.4 + size / 2 * (i == j == 1) - size / 2 * (i == j == 2) - odd
            add("family", value, "cka", a=a, layer_a=i, b=b, layer_b=j, seed=seed,
                part="family", block=f"family-{seed}")  # fmt: skip


def test_a_training_no_better_than_word_frequencies_does_not_count(tmp_path):
    tables = planted(0.3)
    losses = tables["losses"]
    worse = (losses.block == "mt-501") & (losses.what == "trained")
    tables["losses"] = losses.assign(loss=losses.loss.where(~worse, 4.95))  # a copy has 4.9
    for name, table in tables.items():
        table.to_parquet(tmp_path / f"{name}.parquet")
    found = DECIDE["decide"](DECIDE["read_tables"](tmp_path)).set_index("id")
    # The masked LM of the seed counts; what compares it with the translation model does not.
    assert [found.n[name] for name in ("V1", "V2", "S1", "S3", "B1", "R1")] == [3, 2, 2, 2, 3, 3]
    assert found.verdict["V2"] == "not tested" and found.verdict["V1"] == "as the paper"


def test_what_is_not_on_record_is_not_tested(tmp_path):
    planted(0.3)["runs"].to_parquet(tmp_path / "runs.parquet")
    found = DECIDE["decide"](DECIDE["read_tables"](tmp_path))
    assert set(found.verdict) == {"not tested"} and found.estimate.isna().all()
    with pytest.raises(FileNotFoundError, match="--collect"):
        DECIDE["read_tables"](tmp_path / "elsewhere")


def test_committed_tables_are_those_that_the_script_decides_again(tmp_path):
    """Whatever is on record: with no tables there are no decisions, with some both are there."""
    tables = {path.stem for path in FOLDER.glob("*.parquet")}
    decided = {path.stem for path in FOLDER.glob("*.csv")}
    assert decided == ({"hypotheses", "beside"} if tables else set())
    for name in decided:
        table = DECIDE["decide" if name == "hypotheses" else "beside"](DECIDE["read_tables"]())
        again = table.to_csv(index=False, float_format="%.6f")
        assert again == (FOLDER / f"{name}.csv").read_text(encoding="utf-8")


def test_committed_runs_are_whole_of_one_commit_and_planned(run):
    """Whatever is on record: every table's blocks are among the runs, every run was planned."""
    tables = {path.stem: pd.read_parquet(path) for path in FOLDER.glob("*.parquet")}
    planned_names = [block.name for block in run.blocks()]
    runs = tables.get("runs", pd.DataFrame({"block": [], "commit": [], "capability": []}))
    assert set(runs.block) <= set(planned_names) and not runs.block.duplicated().any()
    assert runs.commit.nunique() <= 1 and not runs.commit.astype(str).str.contains("dirty").any()
    assert runs.capability.notna().all()
    for table in tables.values():
        assert set(table.block) <= set(runs.block)
