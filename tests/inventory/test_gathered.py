"""Hosts and groups of one inventory, and what holds of a host of which several speak."""

import tomllib

import pytest

from patchq.errors import UsageError
from patchq.inventory import ansible, gathered, table
from patchq.inventory.files import headings
from patchq.inventory.values import Environment, Inventories, Origin

LISTED = ansible.read(
    {
        "_meta": {"hostvars": {"a1": {"ansible_user": "deploy", "ansible_port": 2222}}},
        "all": {"children": ["ungrouped", "cluster"]},
        "cluster": {"children": ["rack"]},
        "rack": {"hosts": ["a1", "a2"]},
    },
    Origin("inventory.ini"),
)


def inventory(text, listed=None):
    document = table.read(tomllib.loads(text), source="hosts.toml", lines=headings(text))
    return gathered.gather(document, listed or ansible.Listed())


def test_hosts_come_in_their_order_and_say_where_they_are_named():
    found = inventory('[hosts.b]\n[groups.g]\nhosts = ["a[1-2]", "b"]\n')

    assert [*found.hosts] == ["b", "a1", "a2"]
    assert str(found.hosts["b"]) == "hosts.toml:1 [hosts.b]"
    assert str(found.hosts["a2"]) == "hosts.toml:2 [groups.g]"


def test_a_group_may_have_groups_and_exceptions():
    found = inventory(
        '[groups.outer]\nhosts = ["@inner", "c", "!b2"]\n'
        '[groups.inner]\nhosts = ["b[1-3]", "@core"]\n[groups.core]\nhosts = ["d"]\n'
    )

    assert found.groups["outer"].hosts == ("b1", "b3", "d", "c")
    assert found.groups["outer"].inside == {"inner", "core"}


def test_a_group_that_holds_itself_is_an_error_with_the_circle():
    with pytest.raises(UsageError, match="the group holds itself") as caught:
        inventory(
            '[groups.a]\nhosts = ["@b"]\n[groups.b]\nhosts = ["@c"]\n[groups.c]\nhosts = ["@a"]'
        )

    assert caught.value.why == "a -> b -> c -> a"


@pytest.mark.parametrize(
    ("text", "what", "rest"),
    [
        ('[groups.a]\nhosts = ["@inner"]\n[groups.iner]\nhosts = []\n', "no group '@inner'", "a"),
        ('[groups.a]\nwanted = ["q"]\n', "the group has no 'hosts'", "no Ansible inventory"),
        ('[groups.a]\nhosts = ["x[3-1]"]\n', "hosts.toml:1 [groups.a]: 'x[3-1]'", "hosts.toml"),
        ('[groups.a]\nhosts = ["y*"]\n[hosts.x1]\n', "the pattern 'y*' fits no host", "x1"),
        ('[hosts."x[1-3]"]\n[hosts."x[3-4]"]\n', "x3 is in two tables", "neither is nearer"),
    ],
)
def test_what_cannot_be_gathered_is_told_with_its_table(text, what, rest):
    with pytest.raises(UsageError) as caught:
        inventory(text)

    assert what in caught.value.what
    assert rest in caught.value.why + caught.value.mend


def test_the_nearer_table_counts():
    found = inventory(
        '[all]\nuser = "all"\nport = 1\nbecome = true\n'
        '[groups.outer]\nhosts = ["@inner"]\nuser = "outer"\nport = 2\n'
        '[groups.inner]\nhosts = ["h[1-3]"]\nuser = "inner"\n'
        '[hosts."h[2-3]"]\nuser = "range"\n[hosts.h3]\nuser = "own"\n'
    )

    users = [found.find(name).settings.user for name in ("h1", "h2", "h3")]
    assert users == ["inner", "range", "own"]
    one = found.find("h1")
    assert (one.settings.port, one.settings.become) == (2, True)
    assert str(one.origins["port"]) == "hosts.toml:5 [groups.outer]"
    assert one.groups == ("outer", "inner")
    assert found.find("h4") is None


def test_what_is_nearest_of_the_environment_says_all_of_it():
    found = inventory(
        '[groups.g]\nhosts = ["a", "b"]\ntarget = "/srv/site"\n'
        '[hosts.a]\npython = "/opt/bin/python"\n'
    )

    assert found.find("a").settings.environment == Environment("/opt/bin/python")
    assert found.find("b").settings.environment == Environment(None, "/srv/site")


def test_groups_that_contradict_each_other_are_an_error_of_that_host_only():
    found = inventory(
        '[groups.a]\nhosts = ["x", "y"]\nport = 1\n[groups.b]\nhosts = ["y", "z"]\nport = 2\n'
    )

    assert found.find("x").problem is found.find("z").problem is None
    problem = found.find("y").problem
    assert "two groups say different things of 'port'" in problem.what
    assert "hosts.toml:1 [groups.a] says 1" in problem.why
    assert "[hosts.y]" in problem.mend


def test_groups_that_agree_do_not_contradict_each_other():
    found = inventory('[groups.a]\nhosts = ["y"]\nport = 7\n[groups.b]\nhosts = ["y"]\nport = 7\n')

    assert found.find("y").settings.port == 7


def test_wanted_adds_up_and_a_hosts_own_replaces_it():
    found = inventory(
        '[all]\nwanted = ["base"]\n[groups.a]\nhosts = ["x", "y"]\nwanted = ["q"]\n'
        '[groups.b]\nhosts = ["x", "z"]\nwanted = ["r", "q"]\n[hosts.y]\nwanted = []\n'
    )

    wanted = {name: found.find(name).settings.wanted for name in "xyz"}
    assert wanted == {"x": ("q", "r", "base"), "y": (), "z": ("r", "q", "base")}


def test_hosts_toml_adds_to_what_ansible_says_and_comes_first():
    found = inventory(
        '[all]\nuser = "all"\nport = 1\n[groups.rack]\nport = 7\nwanted = ["q"]\n'
        '[groups.cluster]\nport = 8\n[hosts.a2]\naddress = "10.0.0.2"\n',
        LISTED,
    )

    one, two = found.find("a1").settings, found.find("a2").settings
    assert (one.user, one.port, one.wanted) == ("deploy", 7, ("q",))
    assert (two.user, two.port, two.address) == ("all", 7, "10.0.0.2")
    assert found.groups["rack"].hosts == ("a1", "a2")
    assert str(found.find("a1").origins["user"]) == "inventory.ini [a1]"


def test_a_group_of_both_has_the_hosts_of_both():
    found = inventory('[groups.rack]\nhosts = ["b1", "@cluster"]\n', LISTED)

    assert found.groups["rack"].hosts == ("a1", "a2", "b1")


def test_the_nearer_of_two_files_counts_for_a_host_and_for_a_group():
    near = inventory('[groups.g]\nhosts = ["a"]\n[hosts.a]\nport = 1\n')
    far = inventory('[groups.g]\nhosts = ["b"]\n[hosts.a]\nport = 2\nuser = "x"\n[hosts.c]\n')
    both = Inventories((near, far))

    assert both.hosts == ("a", "c", "b")
    assert both.groups["g"].hosts == ("a",)
    assert (both.find("a").settings.port, both.find("a").settings.user) == (1, None)
    assert both.find("c") is not None
    assert both.find("nobody") is None


@pytest.mark.parametrize(
    ("said", "user", "argv"),
    [
        ("docker exec -i {name} sh -c", None, ("docker", "exec", "-i", "h", "sh", "-c")),
        ("ssh -p {port} {user}@{address}", None, ("ssh", "-p", "22", "me@10.0.0.1")),
        ("ssh {user}@{name}", "other", ("ssh", "other@h")),
        ("sh -c '{name} x'", None, ("sh", "-c", "h x")),
        ("docker exec --format '{{.ID}}' {name}", None, None),
        ("ssh {host}", None, None),
    ],
)
def test_a_command_has_places_and_a_word_stays_a_word(said, user, argv):
    found = inventory(
        f'[hosts.h]\naddress = "10.0.0.1"\nuser = "me"\nport = 22\ncommand = """{said}"""\n'
    )

    if argv is None and "host}" in said:
        with pytest.raises(UsageError, match="is not known"):
            found.find("h").argv(user)
    else:
        argv = argv or ("docker", "exec", "--format", "{{.ID}}", "h")
        assert found.find("h").argv(user) == argv


def test_a_place_that_nobody_fills_is_an_error_with_the_table():
    found = inventory('[hosts.h]\ncommand = "ssh -p {port} x"\n')

    with pytest.raises(UsageError, match=r"has \{port\}") as caught:
        found.find("h").argv()

    assert "hosts.toml:1 [hosts.h]" in caught.value.mend


def test_an_address_may_have_the_hosts_name_in_it():
    found = inventory('[all]\naddress = "{name}.example"\n[hosts."a[1-2]"]\n')

    assert found.find("a2").address == "a2.example"


def test_an_inventory_may_have_many_hosts():
    assert len(inventory('[hosts."a[1-9999]"]\n').hosts) == 9999


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("".join(f'[hosts."a{n}[1-9999]"]\n' for n in range(9)), "more hosts than are taken"),
        (
            "".join(f'[groups.g{n}]\nhosts = ["a[1-9999]", "b[1-9999]"]\n' for n in range(20)),
            "more hosts than are taken",
        ),
        (
            "".join(f'[groups.g{n}]\nhosts = ["@g{n + 1}"]\n' for n in range(500)),
            "more than 50 deep",
        ),
    ],
)
def test_an_inventory_has_bounds(text, says):
    with pytest.raises(UsageError) as caught:
        inventory(text)

    assert says in caught.value.what


def test_what_a_program_would_take_for_an_option_is_put_into_no_command():
    found = inventory('[hosts.h]\nuser = "-oX"\ncommand = "ssh {user} x"\n')

    with pytest.raises(UsageError, match="cannot be put into a command") as caught:
        found.find("h").argv()

    assert "option" in caught.value.why


def test_a_group_of_ansibles_may_move_together_and_a_group_in_it_does_not():
    found = inventory("[groups.cluster]\ntogether = true\n", LISTED)

    assert {name: group.together for name, group in found.groups.items()} == {
        "cluster": True,
        "rack": False,
    }
    assert found.groups["cluster"].hosts == ("a1", "a2")
