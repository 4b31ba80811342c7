"""The book as a reader meets it: in a browser, without a network."""

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


def test_every_page_loads_without_errors_and_asks_nobody_else(browser, site, pages):
    faults, hosts = [], set()
    view = browser.new_page()
    view.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    view.on("pageerror", lambda error: faults.append(str(error)))
    # A page may be left before its icon came; what is missing is an answer of 404.
    left = "net::ERR_ABORTED"
    view.on("requestfailed", lambda r: r.failure == left or faults.append(f"failed: {r.url}"))
    view.on("response", lambda r: faults.append(f"{r.status} {r.url}") if r.status >= 400 else None)
    view.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    for page in pages:
        view.goto(f"{site}/{page}", wait_until="load")
        assert not faults, page
        assert view.locator("mjx-merror, [data-mjx-error]").count() == 0, page
    assert hosts - {None} == {"127.0.0.1"}
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


@pytest.fixture
def claims(browser, site):
    """The page of claims, as a desktop shows it."""
    view = browser.new_page(viewport={"width": 1440, "height": 900})
    view.goto(f"{site}/claims.html", wait_until="load")
    yield view
    view.close()


def _column(view, name):
    """Texts of the shown cells of the first table's column."""
    return view.evaluate(
        """name => {
          const table = document.querySelector("table.claims");
          const heads = [...table.tHead.rows[0].cells].map(head => head.textContent.trim());
          const rows = [...table.tBodies[0].rows].filter(row => !row.hidden);
          return rows.map(row => row.cells[heads.indexOf(name)].textContent.trim());
        }""",
        name,
    )


@pytest.mark.parametrize("name", ["difference", "simultaneous interval", "paper"])
def test_a_click_on_a_header_sorts_by_number_with_empty_cells_last(claims, name):
    button = claims.locator("table.claims").first.get_by_role("button", name=name)
    for descending in (False, True):
        button.click()
        found = _column(claims, name)
        numbers = [float(re.search(r"[-+]?[\d.]+", text)[0]) for text in found if text]
        assert len(set(numbers)) > 1
        assert numbers == sorted(numbers, reverse=descending)
        assert not any(found[len(numbers) :])  # what has no number comes last


def test_searching_leaves_the_claims_that_hold_every_word_and_counts_them(claims):
    field, status = claims.get_by_role("searchbox", name="Search the claims"), "[role=status]"
    total = claims.locator("table.claims tbody tr").count()
    assert claims.locator(status).text_content() == f"{total} of {total} claims"
    for word in ("MRPC", "supported"):  # what the front page speaks of
        field.fill(word)
        assert claims.locator("table.claims tbody tr:visible").count() > 2
    field.fill("inconclusive random")
    shown = claims.locator("table.claims tbody tr:visible").all_inner_texts()
    assert 0 < len(shown) < total
    assert all("inconclusive" in text.lower() and "random" in text.lower() for text in shown)
    assert claims.locator(status).text_content() == f"{len(shown)} of {total} claims"
    sections = claims.locator("main section section:visible").count()
    field.fill("")
    assert claims.locator("main section section:visible").count() > sections > 0
    assert claims.locator("table.claims tbody tr:visible").count() == total


@pytest.mark.parametrize("width", [390, 768, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_scrolls_sideways(browser, site, width, scheme):
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    names = ["index", "claims", "use", "use/pytorch", "use/trainer", "use/lightning", "glossary"]
    names += ["docs/running", "docs/faults", "notebooks/05_regularizer", "notebooks/07_ablation"]
    wide = []
    for name in names:
        view.goto(f"{site}/{name}.html", wait_until="load")
        if view.evaluate("document.documentElement.scrollWidth") > width:
            wide.append(name)
    view.close()
    assert not wide
