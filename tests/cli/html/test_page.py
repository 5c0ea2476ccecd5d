"""The page of a report, in a real Chromium: what a person sees, clicks on and types."""

from datetime import UTC, datetime

import pytest

from patchq.cli import destination
from patchq.cli.html import page as pages
from patchq.cli.html.page import Cell, Look, Page, Part, Why

NASTY = "</script><img src=x onerror=\"document.title='mine'\">'&amp;\x1b[31m\u202e"
TONES = ("bad", "look", "changed", "good", "done", "none")
MADE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
ESCAPE = "\ue00c"

# Elements whose text has less contrast than WCAG 2.1 asks of AA, as "text: ratio".
PALE = """
const luminance = (rgb) => rgb.map((one) => one / 255).map(
  (one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4
).reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const behind = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const found = parse(getComputedStyle(one).backgroundColor);
    if (found.length === 3 || found[3] === 1) return found.slice(0, 3);
  }
  throw new Error("no background");
};
const out = [];
let seen = 0;
for (const element of document.body.querySelectorAll("*")) {
  const own = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
  if (!own || !element.checkVisibility()) continue;
  seen += 1;
  const pair = [parse(getComputedStyle(element).color).slice(0, 3), behind(element)];
  const [light, dark] = pair.map(luminance).sort((a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05);
  if (ratio < 4.5) out.push(`${element.innerText}: ${ratio.toFixed(2)}`);
}
return [seen, out];
"""


def look(at):
    return Look("!?*=#·"[at], TONES[at], at, f"what word{at} means")


def row(number, name):
    """Return a row whose word depends on its number, and its reasons."""
    cells = [Cell(name, order=number), Cell(f"text {number}")]
    whys = []
    for column in range(2):
        at = (number + column) % 6
        why = f"why-{number}-{column}"
        cells.append(Cell(f"word{at}", look(at), why, marked=at == 1))
        found = (Part("Why", (f"reason {number} {column}", NASTY)),)
        found += (Part("Diff", diff=f"@@\n-old\n+{NASTY}\n same"),)
        whys.append(Why(why, f"{name}: word{at}", found))
    return tuple(cells), whys


NAMES = ("1.9", "1.10", "2.0rc1", "2.0", NASTY, "other", "last")


@pytest.fixture
def page():
    rows, whys = [], []
    for number, name in enumerate(NAMES):
        cells, found = row(number, name)
        rows.append(cells)
        whys += found
    notes = ("a note", NASTY)
    headings = ("name", "text", "first", NASTY)
    return Page(
        f"Report {NASTY}", "Lead.", headings, tuple(rows), tuple(whys), notes, "to be reviewed"
    )


@pytest.fixture
def opened(browser, page, tmp_path):
    """The browser with the page open."""
    path = tmp_path / "page.html"
    pages.write(path, page)
    browser.open(path)
    return browser


def column(browser, number=1):
    return browser.texts(f"tbody tr > *:nth-child({number})")


def test_text_stays_text_and_controls_are_shown(page):
    html = pages.render(page, MADE)

    assert "<img" not in html
    assert html.count("</script>") == 1
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "\\x1b[31m\\u202e" in html
    assert "Made 2026-01-02 03:04 UTC" in html


def test_a_byte_that_is_not_utf_8_is_written_and_read(page, tmp_path):
    path = tmp_path / "page.html"
    odd = Page("caf\udce9", "", ("a",), ((Cell("x"),),), ())

    pages.write(path, odd)

    assert "caf\\udce9" in path.read_text(encoding="utf-8")


def test_a_link_is_written_through_and_stays_a_link(tmp_path, page):
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to("real.html")

    pages.write(destination.place(str(tmp_path / "link.html"), ""), page)

    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_nothing_of_the_text_runs_and_nothing_is_loaded(opened):
    loaded = opened.ask("return performance.getEntriesByType('resource').length")

    assert opened.ask("return document.title").startswith("Report </script><img src=x")
    assert opened.ask("return document.images.length") == 0
    assert loaded == 0
    refused = "document.body.setAttribute('onclick', 'document.title=1'); document.body.click();"
    assert opened.ask(f"{refused} return document.title") != "1"


@pytest.mark.slow
def test_a_click_on_a_word_shows_why_and_escape_goes_back_to_it(opened):
    assert opened.texts(".why") == []

    opened.click("#at-why-1-0 a")
    shown = opened.text(".why:target")
    opened.type(".why:target", ESCAPE)

    assert shown.startswith("close\n1.10: word1\nWhy\nreason 1 0\n</script><img")
    assert "\n@@\n-old\n+</script>" in shown
    assert opened.texts(".why") == []
    assert opened.ask("return document.activeElement.closest('td').id") == "at-why-1-0"


@pytest.mark.slow
def test_why_is_closed_by_its_link_and_another_takes_its_place(opened):
    opened.click("#at-why-0-0 a")
    first = opened.texts(".why h2")
    opened.click(".why:target .close")
    closed = opened.texts(".why h2")
    opened.click("#at-why-2-1 a")

    assert (first, closed) == (["1.9: word0"], [])
    assert opened.texts(".why h2") == ["2.0rc1: word3"]
    assert opened.ask("return document.querySelectorAll('a.open').length") == 1


@pytest.mark.slow
def test_a_link_to_a_reason_opens_it(browser, page, tmp_path):
    pages.write(tmp_path / "page.html", page)

    browser.open(tmp_path / "page.html", "#why-3-0")

    assert browser.texts(".why h2") == ["2.0: word3"]


@pytest.mark.slow
def test_a_heading_sorts_by_order_and_again_the_other_way(opened):
    shown = column(opened)

    opened.click("thead th:nth-child(1) button")
    once = column(opened)
    opened.click("thead th:nth-child(1) button")

    assert once == shown
    assert column(opened) == shown[::-1]
    assert opened.ask("return document.querySelector('th').ariaSort") == "descending"


@pytest.mark.slow
def test_a_column_of_words_is_sorted_worst_first_and_one_of_text_as_text(opened):
    opened.click("thead th:nth-child(3) button")
    words = [text.split()[-1] for text in column(opened, 3)]
    opened.click("thead th:nth-child(2) button")

    assert words == ["word0", "word0", "word1*", "word2", "word3", "word4", "word5"]
    assert column(opened, 2) == [f"text {number}" for number in range(7)]
    assert len(opened.texts("th[aria-sort]")) == 1


@pytest.mark.slow
def test_rows_are_found_by_text_and_by_words(opened):
    opened.type("#find", "2.0")
    typed = column(opened)
    counted = opened.text("#shown")
    opened.ask("document.querySelector('#find').value = ''")
    opened.click("#words [data-word=word5]")
    pressed = column(opened)
    opened.click("#words [data-word='*']")

    assert (typed, counted) == (["2.0rc1", "2.0"], "2 of 7 rows")
    assert len(pressed) == 2
    assert column(opened) == [
        "1.9",
        "1.10",
        NAMES[4].replace("\x1b", "\\x1b").replace("\u202e", "\\u202e"),
        "other",
        "last",
    ]


@pytest.mark.slow
def test_without_scripts_the_table_is_whole_and_says_why(browser, page, tmp_path):
    pages.write(tmp_path / "page.html", page)
    browser.scripts(on=False)

    browser.open(tmp_path / "page.html")
    rows = column(browser)
    browser.click("#at-why-1-1 a")

    assert len(rows) == 7
    assert browser.text(".why:target h2") == "1.10: word2"
    assert browser.texts("#controls") == []


@pytest.mark.slow
def test_all_text_can_be_read_in_the_light_and_in_the_dark(opened):
    opened.click("#at-why-1-0 a")
    seen, pale = opened.ask(PALE)
    light = opened.ask("return getComputedStyle(document.body).backgroundColor")

    opened.scheme("dark")

    assert opened.ask("return getComputedStyle(document.body).backgroundColor") != light
    assert seen > 60
    assert (pale, opened.ask(PALE)[1]) == ([], [])


@pytest.mark.slow
def test_every_word_has_its_symbol_beside_it(opened):
    symbols = opened.ask(
        "return [...document.querySelectorAll('tbody .word')].map("
        "e => e.querySelector('.symbol').textContent + e.parentElement.dataset.word)"
    )

    assert len(set(symbols)) == 6
    assert len({one[0] for one in symbols}) == 6
