"""An audit as a page, in a real Chromium: what is found, sorted, opened, and never run."""

import json

import pytest

from patchq import running as live
from patchq.audit.finding import Word
from patchq.cli.html import audit
from patchq.cli.html import page as pages
from patchq.errors import ExitCode
from tests import fleet_rows
from tests.cli.html.test_page import ESCAPE, MADE, PALE
from tests.fleet_rows import receipt, row, running, silent

EVIL = "</script><script>document.title='mine'</script><img src=x onerror=\"document.title='m'\">"


@pytest.fixture
def shown(browser, tmp_path):
    """A function that opens the page of these rows."""

    def show(*rows, fragment=""):
        path = tmp_path / "audit.html"
        pages.write(path, audit.page(rows, ("a note",)))
        browser.open(path, fragment)
        return browser

    return show


def texts(page):
    """Return the table as a person reads it without colours."""
    return [[f"{cell.text} {cell.note}".strip() for cell in one] for one in page.rows]


def hosts(browser):
    return browser.texts("tbody th")


def test_every_word_has_a_look_of_its_own():
    looks = audit.LOOKS

    assert set(looks) == {
        *(word.value for word in Word),
        audit.UNREACHABLE,
        audit.FAILED,
        audit.RESTART,
        audit.MIXED,
    }
    for field in ("symbol", "rank", "meaning"):
        assert len({getattr(look, field) for look in looks.values()}) == len(looks)


def test_one_queue_has_a_column_for_each_patch():
    page = audit.page(
        [
            row("a", receipt=receipt(1), running=running(2)),
            row("b", "partial", patches=["10-aux-states.patch"], ephemeral=True),
            row("c", "behind", behind=3, commit="c0ffee", patches=["10-aux-states.patch"]),
            silent("d"),
        ],
        (),
    )

    assert page.headings == (
        "host", "q", "10-aux-states", "20-eagle3", "30-speculative", "40-token",
        "demo", "processes", "last receipt",
    )  # fmt: skip
    restart = "restart needed 2 processes"
    assert texts(page) == [
        ["a", "current", *["on"] * 4, "1.0", restart, "2026-01-01T00:01:00Z push by ops"],
        ["b", "partial 1 of 4", "on", "-", "-", "-", "1.0 ephemeral", "-", "-"],
        ["c", "behind by 3 commits", "on", "-", "-", "-", "1.0", "-", "-"],
        ["d", "unreachable", *["-"] * 4, "-", "-", "-"],
    ]
    assert [cell.marked for one in page.rows for cell in one if cell.look] == [
        False, False, True, True, True,
    ]  # fmt: skip


def test_many_patches_and_many_queues_do_not_make_the_table_wider():
    some = [row("a", queue=f"q{number}", wanted=number < 3) for number in range(4)]
    evil = [row("b", "unknown", queue=f"e{number}", wanted=False) for number in range(500)]

    narrow, wide = audit.page(some, ()), audit.page([*evil, *some], ())

    assert narrow.headings == ("host", "q0", "q1", "q2", "q3", "demo", "last receipt")
    assert {"q0", "q1", "q2"} < set(wide.headings)
    assert "other queues" in wide.headings
    assert len(wide.headings) == 16
    assert "unknown and 490 more" in [text for line in texts(wide) for text in line]


def test_a_host_has_all_that_is_known_of_it():
    page = audit.page(
        [
            row(
                "a",
                "drifted",
                mend="patchq diff -z -H a",
                paths=["demo/x.py", "demo/y.py", "demo/z.py"],
                patches=["10-aux-states.patch"],
                receipt=receipt(1),
                running=running(1, mixed=True),
                ephemeral=True,
            ),
            row("a", queue="p", version="1.0"),
            silent("b", "the key is another one"),
        ],
        (),
    )

    one, other = page.whys
    told = {part.heading: part.sentences for part in one.parts}
    assert list(told) == ["q: drifted", "p: current", "demo 1.0"]
    assert told["q: drifted"] == (
        "why it is drifted",
        "mend: patchq diff -z -H a",
        "series: 1.0",
        "on: 10-aux-states.patch",
        "not on: 20-eagle3.patch; 30-speculative.patch; 40-token.patch",
        "files: demo/x.py; demo/y.py; demo/z.py",
    )
    assert told["demo 1.0"][3:] == (
        "ephemeral: it goes with the container",
        "last receipt: 2026-01-01T00:01:00Z push by ops from laptop, r1",
        "mixed code: 100; 101; 102; 103; 104; 105; 106; 107; 108; 109",
        "restart needed: 100 VLLM::Worker_TP0 (worker)",
    )
    assert other.parts[0].sentences == (
        "the key is another one", "no answer came", "mend: ssh HOST"
    )  # fmt: skip
    assert "demo/x.py; demo/y.py and 1 more" in texts(page)[0]
    assert "mixed code 1 server" in texts(page)[0]


def test_what_could_not_be_seen_of_a_host_is_in_its_details():
    blind = running() | {"hidden": True, "unreadable": 2}

    page = audit.page([row("a", running=blind)], ())

    (told,) = [part.sentences for part in page.whys[0].parts if part.heading.startswith("demo ")]
    assert told[-2:] == (
        "processes of other users: not shown there, so a restart may be needed unseen",
        "cannot be looked into: 2 processes",
    )


def test_the_worst_of_two_rows_of_one_queue_is_shown():
    page = audit.page([row(word="drifted"), row(distribution="else")], ())

    assert texts(page)[0][1] == "drifted"


def test_a_page_does_not_grow_with_what_one_host_says():
    long = "x" * 100_000
    evil = row("e", "drifted", queue=long, version=long, why=long, paths=[long] * 1000)

    html = pages.render(audit.page([evil], ()), MADE)

    assert len(html) < 40_000


def test_here_there_is_one_environment_without_a_name():
    page = audit.page([row("")], ())

    assert page.title == "Audit of the environment here"
    assert page.rows[0][0].text == page.whys[0].title == "here"


def test_processes_of_these_tests_are_as_an_audit_has_them():
    receipt = live.Receipt("r", "t", "push", "", "", 0, 0)
    process = live.Process(1, "x", "worker", "child", 1, live.State.BEFORE, receipt, None, None)
    real = live.Running((process,)).to_json()

    assert set(running()) == set(real)
    assert set(running()["processes"][0]) == set(real["processes"][0])


@pytest.mark.slow
def test_a_click_on_a_host_or_a_word_opens_the_host_and_escape_closes_it(shown):
    browser = shown(*fleet_rows.fleet(20, 5))

    browser.click("tbody tr:nth-child(4) th a")
    by_name = browser.texts(".why h2")
    browser.type(".why:target", ESCAPE)
    closed = browser.texts(".why h2")
    focus = browser.ask("return document.activeElement.textContent")
    browser.click("tbody tr:nth-child(7) td:nth-child(3) a")

    assert (by_name, closed, focus) == (["gpu0004"], [], "gpu0004")
    assert browser.texts(".why h2") == ["gpu0007"]
    assert "sgl-router: current" in browser.text(".why:target")


@pytest.mark.slow
def test_a_page_is_used_by_keys_alone(shown):
    browser = shown(row("a"), row("b", "partial"), row("c", "drifted"))
    tab, enter, nothing = "\ue004", "\ue007", "\ue000"

    browser.type("#find", f"{tab}{tab} ")  # the second word, and press it
    found = hosts(browser)
    browser.type("#find", f"{tab}{tab} {tab}{tab}{tab}{tab}{enter}")  # and a heading
    sorted_ = browser.ask("return document.querySelectorAll('th')[1].ariaSort")
    worst = hosts(browser)
    browser.type("tbody tr:first-child th a", enter)
    opened = browser.texts(".why h2")
    browser.type(".why:target", f"{tab}{nothing}")

    assert (found, sorted_, worst) == (["b"], "ascending", ["c", "b", "a"])
    assert opened == ["c"]
    assert browser.ask("return document.activeElement.className") == "close"


@pytest.mark.slow
def test_a_column_sorts_worst_first_and_the_other_way(shown):
    rows = [row("a"), row("b", "missing"), silent("c"), row("d", "drifted"), row("e", "behind")]
    browser = shown(*rows)

    browser.click("thead th:nth-child(2) button")
    worst = hosts(browser)
    browser.click("thead th:nth-child(2) button")

    assert worst == ["c", "d", "e", "b", "a"]
    assert hosts(browser) == worst[::-1]


@pytest.mark.slow
def test_hosts_are_found_by_text_in_their_details_and_by_words(shown):
    browser = shown(
        row("a", "drifted", paths=["demo/x.py", "demo/y.py", "demo/deep.py"]),
        row("b", running=running(2)),
        row("c", "missing", wanted=False),
        silent("d"),
    )

    browser.type("#find", "DEEP.py")
    deep = hosts(browser)
    browser.ask("document.querySelector('#find').value = ''")
    browser.click("#words [data-word='restart needed']")
    restart = hosts(browser)
    browser.click("#words [data-word='restart needed']")
    browser.click("#words [data-word='*']")

    assert (deep, restart) == (["a"], ["b"])
    assert hosts(browser) == ["a", "d"]
    assert browser.text("#shown") == "2 of 4 rows"


@pytest.mark.slow
def test_a_word_is_counted_once_a_host(shown):
    browser = shown(*(row("a", queue=f"q{n}") for n in range(5)), silent("b"))

    assert browser.texts("#words button") == [
        "⊘ unreachable 1",
        "✓ current 1",
        "* not as it should be 1",
    ]


@pytest.mark.slow
def test_what_a_host_says_is_text_wherever_it_is(shown):
    said = {"time": EVIL, "who": EVIL, "whence": EVIL, "verb": EVIL, "id": EVIL}
    servers = running(1)
    servers["processes"][0]["name"] = EVIL
    browser = shown(
        row(
            EVIL, "drifted", queue=EVIL, distribution=EVIL, version=EVIL, why=EVIL, mend=EVIL,
            paths=[EVIL], patches=[EVIL], series=[EVIL], site=EVIL, python=EVIL, commit=EVIL,
            environment=EVIL, receipt=said, running=servers, release=EVIL, behind=1,
        ),
        silent("b", EVIL),
    )  # fmt: skip

    browser.click("tbody tr th a")

    assert browser.ask("return document.title") == "Audit of 2 hosts"
    assert browser.ask("return [document.scripts.length, document.images.length]") == [1, 0]
    assert browser.text(".why:target").count("</script><script>") > 10
    assert browser.ask("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.slow
def test_all_text_can_be_read_in_the_light_and_in_the_dark(shown):
    browser = shown(*fleet_rows.fleet(130, 5), fragment="#host-3")

    seen, pale = browser.ask(PALE)
    browser.scheme("dark")

    assert seen > 800
    assert (pale, browser.ask(PALE)[1]) == ([], [])


@pytest.mark.slow
def test_without_scripts_the_table_is_whole_and_hosts_can_be_opened(shown, browser):
    browser.scripts(on=False)
    shown(*fleet_rows.fleet(30, 2))

    words = browser.texts("tbody tr:nth-child(4) td .word")
    browser.click("tbody tr:nth-child(4) th a")

    assert len(hosts(browser)) == 30
    assert words[0].split(" ", 1) == ["✓", "current"]
    assert browser.texts(".why h2") == ["gpu0004"]
    assert browser.texts("#controls") == []


@pytest.mark.slow
def test_headings_and_hosts_stay_in_sight_in_a_page_of_a_thousand_hosts(shown):
    browser = shown(*fleet_rows.fleet(1000, 5))

    browser.ask("window.scrollTo(400, 20000)")
    middle = browser.ask(
        "const at = (x, y) => document.elementFromPoint(x, y).closest('th');"
        "return [at(30, 10).innerText, at(30, 400).innerText]"
    )
    browser.ask("window.scrollTo(0, 0)")
    browser.type("#find", "gpu0999")

    assert middle[0] == "host"
    assert middle[1].startswith("gpu0")
    assert browser.ask("return document.body.scrollWidth > innerWidth") is True
    assert hosts(browser) == ["gpu0999"]
    assert browser.text("#shown") == "1 of 1000 rows"


@pytest.mark.slow
def test_the_page_of_a_real_audit_has_the_words_of_the_document(world, browser):
    world.here("push", "2")
    (world.site / "demo/shapes.py").write_text("mine\n")
    path = world.root / "a.html"
    names = ("-H", "command:sh -c", "-H", "command:sh -c 'exit 3' <script>")

    done = world.here("audit", "--json", "--html", path, *names)
    document = json.loads(done.stdout)
    browser.open(path)

    assert done.returncode == document["exit_code"] == ExitCode.HOST_FAILED
    assert document["html"] == str(path)
    assert f"written: {path}" in document["notes"]
    first, second = document["rows"]
    assert set(first) == set(row())
    assert set(second) == set(silent("x"))
    assert hosts(browser) == [first["host"], second["host"]]
    words = browser.ask(
        "return [...document.querySelectorAll('td a')].map(a => a.parentElement.dataset.word)"
    )
    assert words[:2] == ["drifted", second["word"]]
    browser.click("tbody th a")
    shown = browser.text(".why:target")
    for text in (first["why"], first["mend"], first["receipt"]["id"], first["site"], "not on: 30"):
        assert text in shown
