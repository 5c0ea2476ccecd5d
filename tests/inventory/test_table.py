"""What a hosts.toml says, and what is wrong with it."""

import tomllib

import pytest

from patchq.errors import UsageError
from patchq.inventory import table
from patchq.inventory.files import headings
from patchq.inventory.values import Environment, Origin


def read(text):
    return table.read(tomllib.loads(text), source="hosts.toml", lines=headings(text))


WHOLE = """\
ansible = ["inventory.ini"]

[all]
user = "root"

[groups.blackwell]
hosts = ["gpu[01-08]", "@rack7", "!gpu03"]
environment = "/opt/vllm"
wanted = ["kimi-k2.5-eagle3"]

[hosts.gpu07]
address = "10.0.0.7"
port = 2222
become = "vllm"

[hosts."pod[1-2]"]
command = "docker exec -i {name} sh -c"
target = "/srv/site"
"""


def test_every_table_is_read_with_the_line_at_which_it_begins():
    found = read(WHOLE)

    assert found.ansible == ("inventory.ini",)
    assert (found.defaults.settings.user, str(found.defaults.origin)) == (
        "root",
        "hosts.toml:3 [all]",
    )
    group, parts = found.groups["blackwell"]
    assert parts == ("gpu[01-08]", "@rack7", "!gpu03")
    assert group.origin == Origin("hosts.toml", 6, "groups.blackwell")
    assert group.settings.environment == Environment("/opt/vllm/bin/python")
    assert group.settings.wanted == ("kimi-k2.5-eagle3",)
    one = found.hosts["gpu07"].settings
    assert (one.address, one.port, one.become, one.wanted) == ("10.0.0.7", 2222, "vllm", None)
    assert found.hosts["pod[1-2]"].settings.environment == Environment(None, "/srv/site")
    assert found.hosts["pod[1-2]"].origin.line == 16


@pytest.mark.parametrize(
    ("said", "environment"),
    [
        ('python = "/opt/v/bin/python"', Environment("/opt/v/bin/python")),
        ('environment = "~/venv/"', Environment("~/venv/bin/python")),
        (
            'environment = "/v/lib/python3.12/site-packages"',
            Environment(None, "/v/lib/python3.12/site-packages"),
        ),
        (
            'environment = "/usr/lib/python3/dist-packages"\npython = "python3"',
            Environment("python3", "/usr/lib/python3/dist-packages"),
        ),
        ('target = "/s"\npython = "python3.12"', Environment("python3.12", "/s")),
    ],
)
def test_an_environment_is_an_interpreter_a_folder_of_packages_or_both(said, environment):
    assert read(f"[hosts.a]\n{said}\n").hosts["a"].settings.environment == environment


@pytest.mark.parametrize(
    ("text", "what", "mend"),
    [
        ("[host.a]\n", "the key 'host' does not exist", "'hosts'"),
        ("[hosts.a]\npyhton = '/x'\n", "hosts.toml:1 [hosts.a]: the key 'pyhton'", "'python'"),
        ("[groups.a]\nhost = ['x']\n", "the key 'host' does not exist", "'hosts'"),
        ("[all]\nhosts = ['x']\n", "the key 'hosts' does not exist", "take the key out"),
        ("[all]\nqueues = ['x']\n", "the key 'queues' does not exist", "take the key out"),
        ("[groups.all]\nhosts = []\n", "a group cannot be called 'all'", "[all]"),
        ("[groups.'a b']\nhosts = []\n", "a group cannot be called 'a b'", "name"),
        ("[hosts.'root@a']\n", "'root@a' is not the name of a host", "address"),
        ("[hosts.'*']\n", "'*' is not the name of a host", "address"),
        ("[hosts.'::1']\n", "'::1' is not the name of a host", 'address = "::1"'),
        ("[groups.a]\nhosts = ['root@x']\n", "'root@x' is more than the name", "user"),
        ("[groups.a]\nhosts = ['command:sh -c']\n", "is more than the name", "command"),
        ("[groups.a]\nhosts = 'x'\n", "'hosts' has a value of the wrong kind", "hosts"),
        ("[hosts.a]\nport = 0\n", "'port' has a value", "port"),
        ("[hosts.a]\nport = true\n", "'port' has a value", "port"),
        ("[hosts.a]\nport = '22'\n", "'port' has a value", "port"),
        ("[hosts.a]\nuser = ''\n", "'user' has a value", "user"),
        ('[hosts.a]\nuser = "a\\nb"\n', "'user' has a value", "user"),
        ("[hosts.a]\nbecome = 1\n", "'become' has a value", "become"),
        ("[hosts.a]\nwanted = 'q'\n", "'wanted' has a value", "wanted"),
        ('[hosts.a]\ncommand = "sh \'c"\n', "'command' has a value", "command"),
        ("[hosts.a]\ncommand = ' '\n", "'command' has a value", "command"),
        ("[hosts.a]\naddress = 'u@b'\n", "'address' has a value", "address"),
        ("[hosts.a]\naddress = 'b:22'\n", "'address' has a value", "address"),
        ("[hosts.a]\nenvironment = 'venv'\n", "'environment' has a value", "environment"),
        ("[hosts.a]\nenvironment = 'a/site-packages'\n", "'environment' has", "environment"),
        ("[hosts.a]\ntarget = 'site'\n", "'target' has a value", "target"),
        ("[hosts.a]\nenvironment = '/v'\npython = '/p'\n", "do not go together", "leave one"),
        ("[hosts.a]\nenvironment = '/v'\ntarget = '/p'\n", "do not go together", "leave one"),
        ("hosts = ['a']\n", "'hosts' has a value of the wrong kind", "hosts"),
        ("[hosts]\na = 'b'\n", "'hosts.a' has a value of the wrong kind", "hosts.a"),
        ("all = 1\n", "'all' has a value of the wrong kind", "all"),
        ("ansible = 'x'\n", "'ansible' has a value of the wrong kind", "ansible"),
        ("[all]\naddress = '10.0.0.1'\n", "is the same for several hosts", "{name}"),
        ("[hosts.'a[1-2]']\naddress = 'b'\n", "is the same for several hosts", "{name}"),
    ],
)
def test_what_is_wrong_is_named_with_its_mend(text, what, mend):
    with pytest.raises(UsageError) as caught:
        read(text)

    assert what in caught.value.what
    assert caught.value.why
    assert mend in caught.value.mend


def test_headings_are_found_as_toml_spells_them():
    text = '[ hosts . "a.b" ] # x\n[[list]]\nx = [\n  "[no]",\n]\n[groups.\'c\']\n[bad\n'

    assert headings(text) == {("hosts", "a.b"): 1, ("groups", "c"): 6}


def test_a_group_may_move_together():
    found = read("[groups.r1]\nhosts = ['a', 'b']\ntogether = true\n[groups.r2]\nhosts = ['c']\n")

    assert found.together == {"r1"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[groups.r1]\nhosts = ['a']\ntogether = 'yes'", "'together' has a value of the wrong"),
        ("[hosts.a]\ntogether = true", "the key 'together' does not exist"),
        ("[all]\ntogether = true", "the key 'together' does not exist"),
    ],
)
def test_only_a_group_moves_together_or_does_not(text, what):
    with pytest.raises(UsageError, match=what):
        read(text)
