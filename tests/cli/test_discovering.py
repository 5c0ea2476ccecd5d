"""What `hosts --discover` prints of what hosts have."""

import tomllib

from patchq.cli import discovering
from patchq.outcome import Outcome, Word
from patchq.report import Report


def found(python, *have, pids=(), site="/s"):
    return [
        {
            "python": python,
            "site": site,
            "distribution": name,
            "version": version,
            "processes": list(pids),
        }
        for name, version in have
    ]


def shown(**hosts):
    outcomes = tuple(
        Outcome(host, Word.DONE, Report((), (), {"found": some})) for host, some in hosts.items()
    )
    return "\n".join(discovering._tables(outcomes))


def test_hosts_of_which_the_same_is_to_be_said_have_one_table():
    same = found("/v/bin/python", ("vllm", "0.16.0"))

    text = shown(gpu01=same, gpu02=same, gpu03=found("/w/bin/python", ("vllm", "0.17.0")), db=same)

    assert tomllib.loads(text)["hosts"] == {
        "gpu[01-02]": {"python": "/v/bin/python"},
        "db": {"python": "/v/bin/python"},
        "gpu03": {"python": "/w/bin/python"},
    }


def test_the_only_one_in_use_is_meant():
    text = shown(
        a=[
            *found("/v/bin/python", ("vllm", "1"), pids=[3]),
            *found("/w/bin/python", ("vllm", "1")),
        ]
    )

    assert text.split("\n")[1:3] == [
        'python = "/v/bin/python"  # vllm 1, in use',
        '# python = "/w/bin/python"  # vllm 1, in /s',
    ]


def test_of_several_in_use_none_is_chosen():
    text = shown(
        a=[
            *found("/v/bin/python", ("vllm", "1"), pids=[3]),
            *found("/w/bin/python", ("vllm", "1"), pids=[4]),
        ]
    )

    assert tomllib.loads(text)["hosts"] == {"a": {}}


def test_an_interpreter_with_two_distributions_is_one():
    text = shown(a=found("/v/bin/python", ("vllm", "1"), ("demo", "2")))

    assert text.split("\n")[1] == 'python = "/v/bin/python"  # vllm 1, demo 2'


def test_how_a_host_was_reached_is_said_too():
    some = found("/v/bin/python", ("vllm", "1"))
    specs = {"root@gpu1:2222": some, "root@[::1]:22": some, 'command:sh -c "x y"': some}
    outcomes = [Outcome(spec, Word.DONE, Report((), (), {"found": some})) for spec in specs]

    tables = [tomllib.loads("\n".join(discovering._tables((one,))))["hosts"] for one in outcomes]

    python = {"python": "/v/bin/python"}
    assert tables == [
        {"gpu1": {"user": "root", "port": 2222, **python}},
        {"NAME": {"address": "::1", "user": "root", "port": 22, **python}},
        {"NAME": {"command": 'sh -c "x y"', **python}},
    ]


def test_a_path_is_text_whatever_is_in_it():
    text = shown(a=found('/o"d\\ \udcff#é/python', ("vllm", "1")))

    assert tomllib.loads(text)["hosts"]["a"]["python"] == '/o"d\\ ?#é/python'
