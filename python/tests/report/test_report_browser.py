"""The report in a real browser without a network: nothing is fetched, nothing fails, everything is drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import EVIL, JAPANESE
from sampling import sampled
from sysdock import chart
from sysdock.analysis import Session

# Kept after the tests; git ignores the folder.
SCREENSHOTS = Path(__file__).resolve().parents[3] / "target" / "screenshots"

AXE = Path(sys.prefix) / "share" / "axe-core" / "axe.min.js"
AXE_RUN = """async () => {
  const found = await axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] });
  const shown = ({ id, nodes }) => `${id}: ${nodes.length}, first ${nodes[0].html}`;
  return { passes: found.passes.length, violations: found.violations.map(shown) };
}"""
# Counts colours of a canvas: a blank one has one.
COLOURS = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""


class Watched:
    """A page, and what went wrong or out in it."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on(
            "dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss())
        )
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation', (e) => console.error(e.violatedDirective))"
        )
        page.goto(url)

    def open_all(self) -> None:
        """Opens all analyses, as its button does."""
        self.page.locator("[data-folds] button[data-open='1']").click()

    def draw_all(self) -> None:
        """Opens all analyses, scrolls over the whole page and waits until every chart is drawn."""
        if self.page.locator("[data-folds]").count():
            self.open_all()
        for place in self.page.query_selector_all("[data-chart]"):
            place.evaluate("place => place.scrollIntoView({ block: 'center' })")
            place.wait_for_selector("canvas", state="attached")


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Watched]]:
    """Opens a file in a context of its own, with no network."""
    contexts = []

    def opened(path: Path, **options: Any) -> Watched:
        contexts.append(browser.new_context(offline=True, **options))
        return Watched(contexts[-1].new_page(), path.as_uri())

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def unopened(browser: Any, page_file: Path) -> Iterator[Any]:
    """The page as it is at first, for tests that only look at it."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900}, color_scheme="light")
    yield Watched(context.new_page(), page_file.as_uri()).page
    context.close()


@pytest.fixture(scope="module")
def drawn_once(browser: Any, page_file: Path) -> Iterator[Watched]:
    """The page with all analyses open and all charts drawn."""
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900}, color_scheme="light")
    seen = Watched(context.new_page(), page_file.as_uri())
    seen.draw_all()
    yield seen
    context.close()


@pytest.fixture
def drawn(drawn_once: Watched) -> Iterator[Watched]:
    """The same for a test that may choose a time, a theme or a language; it fails if the page complained meanwhile."""
    yield drawn_once
    page = drawn_once.page
    page.mouse.move(0, 0)
    for name in ("theme-light", "lang-en"):
        page.locator(f"label[for={name}]").click()
    page.locator("#range button[type=reset]").click()
    page.evaluate("() => window.sysdockReady")
    assert drawn_once.complaints == []


def test_nothing_is_fetched_and_everything_is_drawn(drawn: Watched, page_file: Path) -> None:
    seen = drawn
    assert seen.requests == [page_file.as_uri()]
    canvases = seen.page.query_selector_all("canvas")
    assert len(canvases) >= 12
    assert all(canvas.evaluate(COLOURS) > 5 for canvas in canvases)


def test_recorded_markup_is_text(drawn: Watched) -> None:
    subject = drawn.page.locator("#rule-io-small_requests .subject").first
    assert subject.inner_text() == EVIL
    assert drawn.page.locator("h1").inner_text() == "tar cf /dev/null /usr/share/doc"
    assert drawn.page.get_by_text("<h1>box</h1>").count() == 1
    assert drawn.page.locator("img, i, section b:has-text('script')").count() == 0
    assert JAPANESE in drawn.page.locator("#t-io-files").inner_text()


def test_a_tooltip_shows_recorded_markup_as_text(drawn: Watched) -> None:
    plot = drawn.page.locator("#io-files [data-chart] canvas").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    # Somewhere on the longest bars.
    for down in range(0, int(box["height"]), 6):
        drawn.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + down)
        if drawn.page.locator("#tip").count():
            break
    assert "/tmp/<script>alert(1)</script>" in drawn.page.locator("#tip").inner_text()


def test_findings_come_first_and_are_visible(unopened: Any) -> None:
    findings, analyses = unopened.locator("#findings"), unopened.locator("#analyses")
    assert findings.bounding_box()["y"] < analyses.bounding_box()["y"]
    assert unopened.locator("article.finding").count() == 2
    assert unopened.locator("article.finding .advice").first.is_visible()
    assert unopened.locator(".count.finding b").inner_text() == "2"


def test_the_language_switch_works_by_keyboard_and_without_a_script(
    visit: Callable[..., Watched], page_file: Path
) -> None:
    for options in ({}, {"java_script_enabled": False}):
        page = visit(page_file, **options).page
        heading = page.locator("#findings h2")
        assert heading.inner_text() == "Findings"
        contents = page.locator("nav.contents")
        assert contents.get_attribute("aria-label") == "Contents"
        page.locator("#lang-en").focus()
        page.keyboard.press("ArrowRight")
        assert heading.inner_text() == "所見"
        # An attribute has one value, which only a script can change.
        assert contents.get_attribute("aria-label") == ("Contents" if options else "目次")
        assert page.locator("article.finding .advice").first.inner_text().startswith("どうするか")
    page.locator("#io-summary summary").first.click()
    assert page.locator("#t-io-summary").is_visible()


def test_without_a_script_tables_and_findings_are_there(
    visit: Callable[..., Watched], page_file: Path
) -> None:
    page = visit(page_file, java_script_enabled=False).page
    assert "need JavaScript" in page.locator("noscript").inner_text()
    assert page.locator("#t-io-summary tbody tr").count() == 3
    assert page.locator("article.finding").count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(visit: Callable[..., Watched], page_file: Path, scheme: str) -> None:
    page = visit(page_file, color_scheme=scheme).page
    for selector in (".muted", ".gain", ".state", ".count.unknown", ".count.ok", "a", "td", "code", "th"):
        ratio = page.locator(selector).first.evaluate(CONTRAST)
        assert ratio >= 4.5, (selector, ratio)


def test_the_theme_button_redraws_the_charts(drawn: Watched) -> None:
    corner = "canvas => [...canvas.getContext('2d').getImageData(1, 1, 1, 1).data].slice(0, 3)"
    assert drawn.page.locator("canvas").first.evaluate(corner) == [255, 255, 255]
    drawn.page.locator("label[for=theme-dark]").click()
    drawn.page.evaluate("() => window.sysdockReady")
    assert drawn.page.locator("canvas").first.evaluate(corner) == [22, 26, 32]


def test_a_column_sorts_by_its_exact_values(drawn: Watched) -> None:
    page = drawn.page
    head = page.locator("#t-io-files th[data-v=avg_ns]")
    head.locator("button").click()
    page.wait_for_selector("#t-io-files th[aria-sort]", timeout=5000)
    assert head.get_attribute("aria-sort") == "descending"
    place = head.evaluate("head => head.cellIndex")
    cells = page.locator(f"#t-io-files tbody td:nth-child({place + 1})")
    values = [float(cell.get_attribute("data-v")) for cell in cells.all()]
    assert values == sorted(values, reverse=True)


def test_search_leaves_the_lines_that_hold_the_words(visit: Callable[..., Watched], page_file: Path) -> None:
    page = visit(page_file).page
    page.locator("#io-files summary").first.click()
    rows = page.locator("#t-io-files tbody tr:visible")
    everything = rows.count()
    page.locator("input[data-search=t-io-files]").fill("日本")
    assert everything > rows.count() == 1
    assert JAPANESE in rows.first.inner_text()
    page.locator("input[data-search=t-io-files]").fill("")
    assert rows.count() == everything


DOMAINS = """() => [...document.querySelectorAll("[data-chart]")]
  .map((place) => [place.view, place.dataset.chart]).filter(([view]) => view)
  .map(([view, chart]) => {
    const book = JSON.parse(document.getElementById("sysdock-charts").textContent);
    const seconds = book.charts[Number(chart)].spec.usermeta?.seconds_per_unit;
    return seconds && view.scale("x").domain().map((end) => end * seconds);
  }).filter((domain) => domain)"""


def test_dragging_over_a_chart_sets_the_time_of_all(drawn: Watched) -> None:
    page = drawn.page
    before = page.evaluate(DOMAINS)
    assert len(before) >= 4
    plot = page.locator("#io-offsets [data-chart] canvas").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 160, steps=5)
    page.mouse.up()
    page.evaluate("() => window.sysdockReady")
    zoomed = page.evaluate(DOMAINS)
    chosen = [float(page.locator(f"#range input[name={name}]").input_value()) for name in ("from", "until")]
    assert chosen[0] < chosen[1]
    assert len(zoomed) == len(before)
    for domain in zoomed:
        assert domain == pytest.approx(chosen, abs=1e-6)
    page.locator("#range button[type=reset]").click()
    page.evaluate("() => window.sysdockReady")
    assert page.evaluate(DOMAINS) == before


# Where on the canvas of the first chart over time a mark stands that is in view.
A_MARK = """() => {
  const place = document.querySelector("#io-calls_over_time [data-chart]");
  const book = JSON.parse(document.getElementById("sysdock-charts").textContent);
  const { middle, calls } = book.charts[Number(place.dataset.chart)].columns;
  const [from, until] = place.view.scale("x").domain();
  const at = middle.findIndex((moment) => moment !== null && moment > from && moment < until);
  const [[left, top], edge] = [place.view.origin(), place.view.padding()];
  return [left + edge.left + place.view.scale("x")(middle[at]), top + edge.top + place.view.scale("y")(calls[at])];
}"""


def test_lines_can_be_dragged_over_and_tell_their_values(drawn: Watched) -> None:
    page = drawn.page
    plot = page.locator("#io-calls_over_time [data-chart] canvas").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 150, steps=5)
    page.mouse.up()
    page.evaluate("() => window.sysdockReady")
    chosen = [float(page.locator(f"#range input[name={name}]").input_value()) for name in ("from", "until")]
    assert 0 < chosen[0] < chosen[1]
    for domain in page.evaluate(DOMAINS):
        assert domain == pytest.approx(chosen, abs=1e-6)
    right, down = page.evaluate(A_MARK)
    page.mouse.move(box["x"] + right, box["y"] + down)
    assert "class: " in page.locator("#tip").inner_text()


@pytest.mark.parametrize(
    ("analysis", "place", "words"),
    [
        ("io-directories", (0.5, 0.06), ["Directory: /", "100 %"]),
        # The mark of the median, in the uppermost row.
        ("io-durations", None, ["Name of the system call: openat", "p50: ", "max: "]),
    ],
)
def test_rectangles_and_ranges_tell_their_values(
    drawn: Watched,
    analysis: str,
    place: tuple[float, float] | None,
    words: list[str],
) -> None:
    plot = drawn.page.locator(f"#{analysis} [data-chart]").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    found = [place] if place else [(across / 200, 0.12) for across in range(200)]
    for across, down in found:
        drawn.page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down)
        if drawn.page.locator("#tip").count():
            break
    assert all(each in drawn.page.locator("#tip").inner_text() for each in words)


def test_the_time_can_be_typed(drawn: Watched) -> None:
    page = drawn.page
    page.locator("#range input[name=from]").fill("0.25")
    page.locator("#range input[name=until]").fill("0.5")
    page.keyboard.press("Enter")
    page.evaluate("() => window.sysdockReady")
    assert all(domain == pytest.approx([0.25, 0.5]) for domain in page.evaluate(DOMAINS))


def test_charts_do_not_move_the_page(visit: Callable[..., Watched], page_file: Path) -> None:
    seen = visit(page_file)
    seen.open_all()
    places = "() => [...document.querySelectorAll('section.analysis')].map((e) => e.offsetTop)"
    before = seen.page.evaluate(places)
    seen.draw_all()
    after = seen.page.evaluate(places)
    assert max(abs(one - other) for one, other in zip(before, after, strict=True)) <= 120


def test_every_analysis_says_how_its_numbers_are_made(visit: Callable[..., Watched], page_file: Path) -> None:
    seen = visit(page_file)
    seen.open_all()
    page = seen.page
    sections = page.locator("section.analysis")
    assert sections.count() == page.locator("section.analysis details.sql pre").count() > 5
    page.locator("#io-summary details.sql summary").click()
    assert "GROUP BY" in page.locator("#io-summary details.sql pre").inner_text()


def test_a_number_of_a_table_leads_to_its_sql(visit: Callable[..., Watched], page_file: Path) -> None:
    seen = visit(page_file)
    seen.open_all()
    cell = seen.page.locator("#t-io-summary td.n").first
    cell.click()
    panel = seen.page.locator("#origin")
    name, exact = panel.locator("b").inner_text().split(" = ")
    assert exact == cell.evaluate("cell => cell.dataset.v ?? cell.textContent")
    assert not seen.page.locator("#io-summary details.sql pre").is_visible()
    panel.locator("a").click()
    assert seen.page.locator("#io-summary details.sql pre").is_visible()
    assert name in seen.page.locator("#io-summary details.sql mark").all_inner_texts()
    assert panel.count() == 0
    assert seen.complaints == []


def test_every_finding_links_its_numbers_to_its_rule(visit: Callable[..., Watched], page_file: Path) -> None:
    page = visit(page_file).page
    links = page.locator("#overview a.origin, #findings a.origin")
    assert links.count() >= 2
    for place in {link.get_attribute("href") for link in links.all()}:
        block = page.locator(f"pre{place}")
        assert block.count() == 1
        page.locator(f"a.origin[href='{place}']").first.click()
        assert block.is_visible()


@pytest.mark.more
def test_screenshots_are_kept(visit: Callable[..., Watched], page_file: Path) -> None:
    """To be viewed by those who read the CI output: the page in both themes, languages and widths, and opened."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for name, width, scheme, lang in (
        ("light", 1280, "light", "en"),
        ("opened", 1280, "light", "en"),
        ("dark-japanese", 1280, "dark", "ja"),
        ("narrow", 420, "light", "en"),
    ):
        seen = visit(page_file, viewport={"width": width, "height": 900}, color_scheme=scheme)
        seen.page.locator(f"label[for=lang-{lang}]").click()
        if name == "opened":
            seen.draw_all()
        seen.page.evaluate("() => window.sysdockReady")
        path = SCREENSHOTS / f"report-{name}.png"
        seen.page.screenshot(path=path, full_page=True)
        assert path.stat().st_size > 50_000
        assert seen.complaints == []


def test_a_narrow_screen_does_not_scroll_sideways(visit: Callable[..., Watched], page_file: Path) -> None:
    seen = visit(page_file, viewport={"width": 380, "height": 800})
    seen.draw_all()
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_page_of_charts_alone_draws_them(
    visit: Callable[..., Watched], session: Session, tmp_path: Path
) -> None:
    path = tmp_path / "charts.html"
    chart.write(session, "io/summary", {}, path)
    seen = visit(path)
    seen.draw_all()
    assert seen.complaints == []
    assert seen.requests == [path.as_uri()]


def test_it_is_short_until_something_is_opened(unopened: Any) -> None:
    assert unopened.evaluate("document.documentElement.scrollHeight") <= 6000
    assert unopened.locator("#overview .bar rect").count() >= 2
    assert unopened.locator("#timeline [data-chart]").count() >= 2
    for section in unopened.locator("section.analysis").all():
        assert not section.locator("table").is_visible()


def test_contents_lead_to_sections_with_as_much_as_they_say(unopened: Any) -> None:
    links = unopened.locator(".contents a").all()
    assert len(links) > 6
    for link in links:
        assert unopened.locator(link.get_attribute("href")).count() == 1
    for link in unopened.locator(".contents ul ul li").all():
        area = link.locator("a").get_attribute("href")
        assert (
            int(link.locator(".muted").inner_text()) == unopened.locator(f"{area} section.analysis").count()
        )


def test_a_link_to_a_closed_section_opens_it(visit: Callable[..., Watched], page_file: Path) -> None:
    page = visit(page_file).page
    assert not page.locator("#t-io-files").is_visible()
    page.evaluate("location.hash = '#io-files'")
    page.wait_for_selector("#t-io-files", state="visible")
    page.wait_for_selector("#io-files canvas", state="attached")


def test_analyses_without_rows_are_one_line(unopened: Any) -> None:
    empty = unopened.locator("#empty")
    count = empty.locator("li").count()
    assert count > 0
    assert empty.locator("summary").first.inner_text().startswith(f"{count} analys")
    assert unopened.locator("section.analysis .empty").count() == 0


def test_paper_shows_what_is_open_and_no_buttons(visit: Callable[..., Watched], page_file: Path) -> None:
    page = visit(page_file).page
    page.emulate_media(media="print")
    for selector in (".top", ".contents", "#range", "[data-folds]"):
        assert not page.locator(selector).is_visible(), selector
    assert page.locator("#overview h1").is_visible()
    assert page.locator("article.finding .advice").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.more)])
def test_axe_finds_nothing_that_wcag_aa_forbids(drawn: Watched, scheme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make test")
    drawn.page.locator(f"label[for=theme-{scheme}]").click()
    drawn.page.evaluate(AXE.read_text("utf-8"))
    for lang in sampled(("en",), ("en", "ja")):
        drawn.page.locator(f"label[for=lang-{lang}]").click()
        found = drawn.page.evaluate(AXE_RUN)
        assert found["passes"] > 10
        assert found["violations"] == []


# Contrast of a text with what is behind it, after WCAG 2.
CONTRAST = """element => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const straight = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map((c) => straight(c / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  let behind = element;
  const back = (node) => channels(getComputedStyle(node).backgroundColor);
  while (behind.parentElement && back(behind)[3] === 0) behind = behind.parentElement;
  const [one, two] = [light(channels(getComputedStyle(element).color)), light(back(behind))];
  return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
}"""
