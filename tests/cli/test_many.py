"""What several hosts look like on a screen."""

import json

import pytest

from patchq.cli import many
from patchq.errors import ExitCode, HostError
from patchq.outcome import Outcome, Run, Word
from patchq.report import Report


def away(host, why="no route"):
    error = HostError(f"{host} cannot be reached", why=why, mend=f"ssh {host} true")
    return Outcome(host, Word.UNREACHABLE, None, error)


def pushed(host):
    lines = (
        "Applying patch 10-pi.patch",
        "patching file demo/a.py",
        "",
        "Now at patch 10-pi.patch",
    )
    return Outcome(host, Word.DONE, Report(lines, (), {"verb": "push"}))


def conflict(host):
    document = {"conflicts": [{"kind": "drift", "message": "demo/a.py was edited"}, {}]}
    notes = ("patchq: drift: demo/a.py was edited", "Nothing was changed")
    return Outcome(host, Word.CONFLICT, Report((), notes, document, ExitCode.CONFLICT))


@pytest.fixture
def shown(capsys):
    def show(*outcomes, verb="push", changes=True, **more):
        run = Run(outcomes, **{k: more.pop(k) for k in ("notes", "interrupted") if k in more})
        options = {"as_json": False, "quiet": False, **more}
        code = many.show(run, verb, changes=changes, **options)
        return code, *capsys.readouterr()

    return show


def test_a_push_ends_in_a_table_with_a_row_for_each_host(shown):
    code, out, err = shown(pushed("gpu1"), conflict("gpu2"), away("gpu3"))
    assert code == 4
    assert out.splitlines() == [
        "HOST  OUTCOME      DETAIL",
        "gpu1  done         Now at patch 10-pi.patch",
        "gpu2  conflict     drift: demo/a.py was edited (and 1 more)",
        "gpu3  unreachable  gpu3 cannot be reached",
    ]
    assert err.splitlines()[-1] == "3 hosts: 1 done, 1 conflict, 1 unreachable"


def test_equal_errors_are_told_once(shown):
    _, _, err = shown(*(away(f"root@gpu{n:02}:22") for n in range(1, 9)), away("db", "no name"))
    assert err.count("HOST cannot be reached") == 1
    assert err.count("why: no route") == 1
    assert "db: unreachable\n  db cannot be reached\n  why: no name" in err


def test_hosts_with_equal_errors_are_named_as_a_range(shown):
    _, _, err = shown(*(away(f"gpu{n:02}") for n in (1, 2, 3, 7)))
    assert "gpu[01-03,07]: unreachable\n" in err


def test_equal_answers_are_shown_once_under_their_hosts(shown):
    same = Report(("10-pi.patch", "20-foot.patch"))
    code, out, err = shown(
        Outcome("gpu1", Word.DONE, same),
        Outcome("gpu2", Word.DONE, Report(("10-pi.patch",))),
        Outcome("gpu3", Word.DONE, same),
        verb="applied",
        changes=False,
    )
    assert code == 0
    assert out.split("\n") == [
        "== gpu[1,3]",
        "10-pi.patch",
        "20-foot.patch",
        "== gpu2",
        "10-pi.patch",
        "",
    ]
    assert err == "3 hosts: 3 done\n"


def test_the_document_has_every_host_with_its_report_or_error(shown):
    code, out, err = shown(pushed("gpu1"), away("gpu2"), as_json=True, notes=("a note",))
    document = json.loads(out)
    assert (document["schema"], document["verb"], document["exit_code"]) == (1, "push", 4)
    assert document["counts"] == {"done": 1, "unreachable": 1}
    assert document["notes"] == ["a note"]
    first, second = document["hosts"]
    assert (first["host"], first["outcome"], first["report"]["verb"]) == ("gpu1", "done", "push")
    assert second["error"] == {
        "what": "gpu2 cannot be reached",
        "why": "no route",
        "mend": "ssh gpu2 true",
        "exit_code": 4,
    }
    assert code == 4
    assert err == ""


def test_a_run_that_was_stopped_says_so(shown):
    code, _, err = shown(pushed("gpu1"), interrupted=True)
    assert code == 130
    assert err.endswith("1 host: 1 done; stopped by ^C\n")


def test_what_a_host_says_cannot_drive_the_terminal(shown):
    _, out, err = shown(Outcome("gpu1", Word.DONE, Report(("\x1b[31mred",))), away("g\x1b2"))
    assert "\x1b" not in out + err


def test_what_hosts_note_that_were_changed_is_told_restarts_last(shown):
    cold, now = "torch.compile cache: cold", "restart needed: {} demo: started before this push"
    hosts = [
        Outcome(f"gpu{n}", Word.DONE, Report(("Now at patch a",), (cold, now.format(n)), {}))
        for n in (1, 2)
    ]
    _, _, err = shown(*hosts, conflict("gpu3"))

    assert err.splitlines()[:3] == [
        f"gpu[1-2]: {cold}",
        f"gpu1: {now.format(1)}",
        f"gpu2: {now.format(2)}",
    ]
