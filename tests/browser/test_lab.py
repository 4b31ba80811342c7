"""JupyterLab as a person uses it: open 04, run all cells, move the slider."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240_000  # milliseconds: a kernel that imports torch beside other work


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Address of a JupyterLab on a copy of the notebook, with the smoke profile."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "notebooks").mkdir()
    # Cells out of sight stay in the page, where the test looks; nobody asks which kernel to take.
    settings = folder / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text(
        '{"windowingMode": "none", "autoStartDefaultKernel": true}'
    )
    shutil.copy(ROOT / "notebooks" / "04_barcodes.ipynb", folder / "notebooks")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "SHRINK_PROFILE": "smoke", "SHRINK_SEED": "0"}
    environment |= {"SHRINK_RESULTS_DIR": str(folder / "results"), "JUPYTER_NO_CONFIG": "1"}
    environment |= {"JUPYTER_CONFIG_DIR": str(folder), "MPLBACKEND": ""}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token="]
    command += [f"--notebook-dir={folder / 'notebooks'}"]
    command += [f"--LabApp.user_settings_dir={folder / 'settings'}"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        address = f"http://127.0.0.1:{port}"
        try:
            _wait_for(f"{address}/api", server, folder / "log")
            yield address
        finally:
            server.terminate()
            server.wait(30)


def _wait_for(address, server, log):
    for _ in range(240):
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(f"no answer: {log.read_text()}")


def test_the_slider_of_04_moves_the_figure(browser, lab):
    view = browser.new_page(viewport={"width": 1400, "height": 1000})
    view.set_default_timeout(PATIENCE)
    view.goto(f"{lab}/lab/tree/04_barcodes.ipynb")
    # The status bar names the kernel once it is there; before that the menu runs nothing.
    view.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    view.get_by_role("menuitem", name="Run", exact=True).click()
    view.locator("#jp-mainmenu-run").get_by_text("Run All Cells", exact=True).click()
    picture = view.locator(".widget-html-content img[alt^='At scale']")
    picture.wait_for()
    before = picture.get_attribute("src")
    assert "At scale 0.50" in picture.get_attribute("alt")

    handle = view.locator(".widget-slider .noUi-handle").first
    handle.scroll_into_view_if_needed()
    handle.press("ArrowRight")
    new = "old => document.querySelector('.widget-html-content img').src !== old"
    view.wait_for_function(new, arg=before)
    assert "At scale 0.55" in picture.get_attribute("alt")
    assert view.locator(".jp-RenderedText[data-mime-type*=stderr]").count() == 0
    view.close()
