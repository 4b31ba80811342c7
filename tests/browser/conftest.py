"""A real Chromium, and the book that it reads."""

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
# What a browser does of its own accord would be requests that the page did not make.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="make browser installs it")
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not program:
        pytest.skip("no Chromium: apt-get install chromium, or set CHROMIUM to the program")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=program, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def book(tmp_path_factory):
    """The book of the stored notebooks, built anew; or the one in ``SHRINK_BOOK``."""
    if built := os.environ.get("SHRINK_BOOK"):
        return Path(built)
    pytest.importorskip("sphinx", reason="make browser installs it")
    from shrink_utils.study.book import _build_book

    claims = pd.read_csv(ROOT / "data" / "reference" / "quick" / "claims.csv")
    folder = tmp_path_factory.mktemp("site") / "book"
    _build_book(ROOT / "notebooks", claims, folder, title="profile quick")
    return folder


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        """Nothing on the screen for every file."""


@pytest.fixture(scope="session")
def site(book):
    """Address of the book on this machine."""
    handler = functools.partial(_Quiet, directory=str(book))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
