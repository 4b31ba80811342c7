"""The book as a reader meets it: in a browser, without a network."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
SERIOUS = {"serious", "critical"}
ROOT = Path(__file__).resolve().parents[2]


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
    assert first[0] == "claims of" and "agrees" in first
    assert len(tables[1].select("tbody tr")) == 12
    rows = [row for table in tables[2:] for row in table.select("tbody tr")]
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


VERDICTS = {"agrees", "disagrees", "inconclusive", "replicated", "supported", "contradicted"}
VERDICTS |= {"equivalent", "open"}


@pytest.mark.parametrize(("name", "table"), [("index", "headlines"), ("claims", "claims")])
def test_a_phone_shows_the_verdict_beside_its_claim(browser, site, name, table):
    view = browser.new_page(viewport={"width": 390, "height": 844})
    view.goto(f"{site}/{name}.html", wait_until="load")
    cell = view.locator(f"table.{table} tbody tr td").nth(1)
    assert cell.text_content().strip() in VERDICTS
    box = cell.bounding_box()
    view.close()
    assert box["x"] + box["width"] <= 390


def test_a_desktop_shows_all_columns_of_the_claims(claims):
    boxes = claims.locator("table.claims").first.locator("thead th").all()
    assert max(box.bounding_box()["x"] + box.bounding_box()["width"] for box in boxes) <= 1440


def test_the_header_of_the_claims_stays_on_the_screen(claims):
    table = claims.locator("table.claims").nth(1)
    table.locator("tbody tr").nth(20).scroll_into_view_if_needed()
    head = table.locator("thead th").first.bounding_box()
    assert 0 <= head["y"] < 200


def test_the_tables_of_11_fit_its_page(browser, site):
    view = browser.new_page(viewport={"width": 1440, "height": 900})
    view.goto(f"{site}/notebooks/11_claims.html", wait_until="load")
    widths = view.evaluate(
        "[...document.querySelectorAll('.cell_output table')]"
        ".map(table => [table.offsetWidth, table.parentElement.clientWidth])"
    )
    view.close()
    assert len(widths) > 8
    assert all(table <= page for table, page in widths)


def test_the_front_page_shows_findings_and_figure_on_its_first_screen(browser, site):
    view = browser.new_page(viewport={"width": 1440, "height": 900})
    view.goto(f"{site}/index.html", wait_until="load")
    figure = view.locator("main figure img").bounding_box()
    view.close()
    assert figure["y"] + figure["height"] <= 900


def test_the_readme_says_it_all_on_its_first_screen(browser, tmp_path):
    """What it is, what was found, both commands and the figure; as wide as GitHub shows it."""
    markdown = pytest.importorskip("markdown_it", reason="make browser installs it")
    body = markdown.MarkdownIt("gfm-like", {"linkify": False}).render(
        (ROOT / "README.md").read_text(encoding="utf-8")
    )
    style = "body {width: 980px; margin: 16px auto; font: 16px/1.5 sans-serif} li {margin: 4px}"
    page = f'<base href="{ROOT.as_uri()}/"><meta charset="utf-8"><style>{style}</style>{body}'
    (tmp_path / "readme.html").write_text(page, encoding="utf-8")
    view = browser.new_page(viewport={"width": 1440, "height": 900})
    view.goto((tmp_path / "readme.html").as_uri(), wait_until="load")
    view.screenshot(path=tmp_path / "readme.png")
    commands, figure = view.locator("pre").first.bounding_box(), view.locator("img").bounding_box()
    assert view.locator("img").evaluate("image => image.naturalWidth") > 0
    view.close()
    assert commands["y"] + commands["height"] < 900 and figure["y"] + figure["height"] < 900
