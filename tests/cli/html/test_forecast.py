"""The forecast as a page: the words and reasons of the document."""

import json

import pytest

from patchq.cli.html import forecast as pages
from patchq.cli.html.page import Look
from patchq.rebase.forecast import Column
from patchq.rebase.step import Step, Word
from tests import world as worlds

TONES = {"bad", "look", "changed", "good", "done", "none"}


def test_every_word_has_a_look_of_its_own():
    looks = pages.LOOKS.values()

    assert set(pages.LOOKS) == set(Word)
    assert {one.tone for one in looks} <= TONES
    for field in Look.__slots__:
        if field != "tone":
            assert len({getattr(one, field) for one in looks}) == len(Word)


def test_a_release_that_failed_and_a_patch_that_is_not_there_say_so():
    step = Step("10-a.patch", Word.CONFLICT, "a.py", reasons=("both",), flags=("look",), since="9")
    columns = (Column("1", "0", (step,)), Column("2", "0", ()), Column("3", "", (), "no answer"))

    page = pages.page("q", "demo", ">=1", columns, ())

    cells = [[(cell.text, cell.marked) for cell in row[2:]] for row in page.rows]
    assert cells == [[("conflict", True)], [("no patch", False)], [("failed", False)]]
    assert [why.title for why in page.whys] == [
        "10-a.patch on 1: conflict",
        "10-a.patch on 2: no patch",
        "10-a.patch on 3: failed",
    ]
    assert [(part.heading, part.sentences) for part in page.whys[0].parts[1:]] == [
        ("Detail", ("a.py",)),
        ("Why it is a conflict", ("both",)),
        ("To be reviewed", ("look",)),
        ("Upstream since", ("9",)),
    ]
    assert page.whys[2].parts[0].sentences == ("no answer",)


def test_where_all_failed_there_is_still_a_column():
    page = pages.page("q", "demo", ">=1", (Column("3", "", (), "no answer"),), ())

    assert page.headings == ("release", "series from", "")
    assert [cell.text for cell in page.rows[0]] == ["3", "-", "failed"]
    assert page.whys[0].title == "3: failed"


@pytest.mark.slow
def test_a_place_that_cannot_be_written_is_refused_before_the_work(world):
    done = world.run("forecast", "demo", ">=1", "--queue", world.queue, "--html", "none/f.html")

    assert done.returncode == 64
    assert "none/f.html cannot be written" in done.stderr
    assert "mend: patchq forecast demo '>=1' --html FILE" in done.stderr


@pytest.mark.slow
def test_the_page_has_the_words_and_reasons_of_the_document(world, browser):
    links = world.root / "links"
    links.mkdir()
    files = dict(worlds.FILES)
    files["demo/shapes.py"] = files["demo/shapes.py"].replace("3 *", "3.14159 *")
    worlds.wheel(links, files, version="1.1")
    files["demo/data.txt"] += "four\n"
    worlds.wheel(links, files, version="1.2")
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links)}
    path = world.root / "f.html"

    done = world.run(
        "forecast", "demo", ">=1.1", "--queue", world.queue, "--json", "--html", path,
        environ=index,
    )  # fmt: skip
    document = json.loads(done.stdout)
    browser.open(path)

    assert done.returncode == 0, done.stderr
    assert document["html"] == str(path)
    shown = browser.ask(
        "return [...document.querySelectorAll('tbody tr')].map("
        "r => [...r.querySelectorAll('[data-word]')].map(c => c.dataset.word))"
    )
    releases = document["releases"]
    assert shown == [[step["word"] for step in one["steps"]] for one in releases]
    assert shown[1] == ["conflict", "structural", "upstream"]
    for at, one in enumerate(releases):
        for number, step in enumerate(one["steps"]):
            browser.click(f"#at-why-{at}-{number} a")
            said = browser.text(".why:target")
            told = [step["detail"], *step["reasons"], *step["proofs"], *step["flags"]]
            assert all(text in said for text in told)
            assert all(line.strip() in said for line in step["changed"].split("\n"))
            browser.click(".why:target .close")
