"""The book as a reader meets it: in a browser, without a network."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
SERIOUS = {"serious", "critical"}


@pytest.fixture(scope="module")
def pages(book):
    found = sorted(path.relative_to(book).as_posix() for path in book.rglob("*.html"))
    return [page for page in found if not page.startswith("_static/")]


@pytest.fixture(scope="module")
def soups(book, pages):
    """Every page, parsed."""
    return {page: BeautifulSoup((book / page).read_bytes(), "html.parser") for page in pages}


def _local(page, link):
    """Path inside the book and anchor that a link leads to; None for one that leads out."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    folder = page.rpartition("/")[0]
    steps: list[str] = []
    for step in [*folder.split("/"), *unquote(parts.path).split("/")] if parts.path else [page]:
        steps = steps[:-1] if step == ".." else steps + [step] * (step not in ("", "."))
    return "/".join(steps), unquote(parts.fragment)


def test_it_holds_the_notebooks_the_guides_and_a_page_for_every_public_name(pages):
    import shrink_utils.geometry
    import shrink_utils.topology
    import shrink_utils.training

    assert {"index.html", "reference.html", "docs/cluster.html", "docs/plan.html"} <= set(pages)
    assert sum(page.startswith("notebooks/") for page in pages) >= 12
    for package in (shrink_utils.geometry, shrink_utils.topology, shrink_utils.training):
        for name in filter(lambda name: not name.isupper(), package.__all__):  # no constants
            assert any(page.endswith(f"{package.__name__}.{name}.html") for page in pages), name


def test_every_internal_link_and_figure_resolves(book, soups):
    anchors = {page: {tag["id"] for tag in soup.find_all(id=True)} for page, soup in soups.items()}
    broken = []
    for page, soup in soups.items():
        tags = [(tag, tag["href"]) for tag in soup.select("a[href], link[href]")]
        tags += [(tag, tag["src"]) for tag in soup.select("img[src], script[src]")]
        for _, link in tags:
            if (target := _local(page, link)) is None:
                continue
            path, anchor = target
            if not (book / path).is_file():
                broken.append(f"{page}: {link}")
            elif anchor and path in anchors and anchor not in anchors[path]:
                broken.append(f"{page}: {link} (no such place)")
    assert not broken


def test_every_figure_has_alt_text(soups):
    images = [(page, image) for page, soup in soups.items() for image in soup.select("main img")]
    assert len(images) > 50
    for page, image in images:
        assert len(image.get("alt", "")) > 20 and "_images" not in image["alt"], (page, image)


def test_the_front_page_has_a_short_table(soups):
    (table,) = soups["index.html"].select("main table")
    assert 5 < len(table.select("tbody tr")) <= 15


def test_every_claim_is_on_the_page_of_claims(soups):
    tables = soups["claims.html"].select("main table")
    first = [cell.get_text(strip=True) for cell in tables[0].select("thead th")]
    assert first[0] == "claims of" and "replicated" in first
    rows = [row for table in tables[1:] for row in table.select("tbody tr")]
    reference = len(rows)
    counted = sum(
        int(cell.get_text()) for row in tables[0].select("tbody tr") for cell in row("td")[1:]
    )
    assert reference == counted > 100


def _left(request):
    """Whether the page was left before its icon came; what is missing is an answer of 404."""
    return request.failure == "net::ERR_ABORTED"


def test_every_page_loads_without_errors_and_asks_nobody_else(browser, site, pages):
    faults, hosts = [], set()
    view = browser.new_page()
    view.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    view.on("pageerror", lambda error: faults.append(str(error)))
    view.on("requestfailed", lambda r: None if _left(r) else faults.append(f"failed: {r.url}"))
    view.on("response", lambda r: faults.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    view.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    for page in pages:
        view.goto(f"{site}/{page}", wait_until="load")
        assert not faults, page
    assert hosts - {None} == {"127.0.0.1"}
    view.close()


def test_formulas_are_typeset_on_this_machine(browser, site):
    view = browser.new_page()
    view.goto(f"{site}/notebooks/05_regularizer.html")
    view.wait_for_function(
        "[...document.querySelectorAll('.math')].every(m => m.querySelector('mjx-container'))",
        timeout=120_000,
    )
    assert view.locator(".math").count() > 20
    assert view.locator("mjx-merror, [data-mjx-error]").count() == 0
    view.close()


def test_search_finds_persistent_entropy(browser, site):
    view = browser.new_page()
    view.goto(f"{site}/search.html?q=persistent+entropy")
    view.wait_for_selector("#search-results li a", timeout=60_000)
    found = view.locator("#search-results li a").evaluate_all("all => all.map(a => a.href)")
    assert any("persistent_entropy" in link for link in found)
    assert any("notebooks/04_barcodes" in link for link in found)
    view.close()


def test_axe_finds_no_serious_barrier(browser, site, pages):
    """All pages but those of single functions, of which every fifteenth: they are of one mould."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    mould = [page for page in pages if re.match(r"api/|_modules/", page)]
    chosen = [page for page in pages if page not in mould] + mould[::15]
    found, view = [], browser.new_page()
    for page in chosen:
        view.goto(f"{site}/{page}", wait_until="load")
        for violation in axe.run(view).response["violations"]:
            if violation["impact"] in SERIOUS:
                node = violation["nodes"][0]["html"][:200]
                found.append(f"{page}: {violation['id']} ×{len(violation['nodes'])}: {node}")
    view.close()
    assert not found, "\n".join(found)


def test_pages_are_readable_on_a_small_screen_and_in_the_dark(browser, site, tmp_path):
    view = browser.new_page(viewport={"width": 400, "height": 800}, color_scheme="dark")
    view.goto(f"{site}/notebooks/04_barcodes.html", wait_until="load")
    assert view.evaluate("document.documentElement.dataset.theme") == "dark"
    wide = view.evaluate("document.documentElement.scrollWidth")
    view.screenshot(path=tmp_path / "small.png")
    view.close()
    assert wide <= 410
