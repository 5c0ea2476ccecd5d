"""Which hosts a command line means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import UsageError
from patchq.inventory.hostset import collapse, expand

KNOWN = ("gpu1", "gpu2", "gpu10", "web", "old-gpu")


@pytest.mark.parametrize(
    ("specs", "hosts"),
    [
        (["a", "b"], ["a", "b"]),
        (["a,b", "c"], ["a", "b", "c"]),
        (["gpu[01-03]"], ["gpu01", "gpu02", "gpu03"]),
        (["gpu[8-10]"], ["gpu8", "gpu9", "gpu10"]),
        (["gpu[1,3-4]n[1-2]"], ["gpu1n1", "gpu1n2", "gpu3n1", "gpu3n2", "gpu4n1", "gpu4n2"]),
        (["root@gpu[1-2]:2222"], ["root@gpu1:2222", "root@gpu2:2222"]),
        (["gpu[1-4],!gpu3"], ["gpu1", "gpu2", "gpu4"]),
        (["gpu[1-4]", "!gpu[2-3]"], ["gpu1", "gpu4"]),
        (["root@gpu[1-3]:22,!gpu2"], ["root@gpu1:22", "root@gpu3:22"]),
        (["gpu*"], ["gpu1", "gpu2", "gpu10"]),
        (["*gpu*,!old-*"], ["gpu1", "gpu2", "gpu10"]),
        (["gpu?"], ["gpu1", "gpu2"]),
        (["admin@gpu?"], ["admin@gpu1", "admin@gpu2"]),
        (["a,a,b,a"], ["a", "b"]),
        (["[::1]:22,[fe80::1%eth0]"], ["[::1]:22", "[fe80::1%eth0]"]),
        (["command:docker exec -i v[1-2],x sh -c"], ["command:docker exec -i v[1-2],x sh -c"]),
        (["command:kubectl exec -i 'pod*' -- sh -c", "a"], None),
        ([], []),
    ],
)
def test_lists_ranges_patterns_and_exceptions(specs, hosts):
    assert list(expand(specs, KNOWN)) == (hosts or specs)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("a,,b", "empty host"),
        (",a", "empty host"),
        ("gpu[3-1]", "'3-1'"),
        ("gpu[1-]", "'1-'"),
        ("gpu[001-02]", "'001-02'"),
        ("gpu[1-99999]", "'1-99999'"),
        ("gpu[1-200][1-200]", "cannot be read"),
        ("no-such-*", "fits no host"),
        ("a,!b", "takes away no host"),
        ("a,!a", "no host is left"),
    ],
)
def test_what_cannot_be_meant_is_said(spec, says):
    with pytest.raises(UsageError) as caught:
        expand([spec], KNOWN)
    assert says in caught.value.what
    assert caught.value.why
    assert caught.value.mend


@given(
    st.lists(
        st.from_regex(
            r"(root@)?[a-z]{1,3}[0-9]{0,3}(\.[a-z]{2})?(:[1-9][0-9]{0,3})?", fullmatch=True
        ),
        unique=True,
        min_size=1,
    )
)
def test_what_is_collapsed_expands_to_the_same_hosts(hosts):
    assert set(expand([collapse(hosts)], ())) == set(hosts)


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        (f"gpu[{'1' * 5000}]", "cannot be read"),
        (f"gpu[{','.join(['1-9999'] * 3000)}]", "cannot be read"),
        (f"gpu{'[1-9999]' * 3000}", "cannot be read"),
        (",".join(["gpu[1-9999]"] * 3000), "more than 20000 hosts"),
        (",".join(["gpu1", *["!gpu[1-9999]"] * 3000]), "more than 20000 hosts"),
        ("command:ssh 'x", "cannot be read as a command"),
        ("command:ssh \0x", "cannot be read as a command"),
    ],
)
def test_slip_of_the_pen_is_an_error_of_some_length(spec, what):
    with pytest.raises(UsageError, match=what) as caught:
        expand([spec], KNOWN)

    assert len(f"{caught.value.what}{caught.value.why}{caught.value.mend}") < 2_000


def test_exceptions_of_many_hosts_are_found_by_name():
    assert expand(["root@gpu[1-9999]:22", "!gpu[2-9999]"], ()) == ("root@gpu1:22",)


def test_number_of_any_length_is_folded():
    hosts = ["a" + "1" * 5000 + end for end in "12"]

    assert collapse(hosts) == f"a{'1' * 4983}[{'1' * 18}-{'1' * 17}2]"


GROUPS = {
    "rack1": ["gpu1", "gpu2"],
    "rack2": ["gpu3"],
    "broken": ["gpu2", "away"],
    "empty": [],
    "all": ["gpu1", "gpu2", "gpu3", "away"],
}


@pytest.mark.parametrize(
    ("specs", "hosts"),
    [
        (["@rack1"], ["gpu1", "gpu2"]),
        (["@rack1,@rack2"], ["gpu1", "gpu2", "gpu3"]),
        (["@rack[1-2]"], ["gpu1", "gpu2", "gpu3"]),
        (["@rack*,!gpu1"], ["gpu2", "gpu3"]),
        (["@rack*", "!@broken"], ["gpu1", "gpu3"]),
        (["root@gpu[1-3]:22,!@broken"], ["root@gpu1:22", "root@gpu3:22"]),
        (["all"], ["gpu1", "gpu2", "gpu3", "away"]),
        (["@all,!gpu?"], ["away"]),
        (["gpu[7-9],!@broken,!@empty"], ["gpu7", "gpu8", "gpu9"]),
        (["gpu7,@rack1", "gpu1"], ["gpu7", "gpu1", "gpu2"]),
    ],
)
def test_groups_are_sets_of_hosts(specs, hosts):
    assert list(expand(specs, GROUPS["all"], GROUPS)) == hosts


@pytest.mark.parametrize(
    ("spec", "what", "nearest"),
    [
        ("@rakc1", "there is no group '@rakc1'", "@rack1"),
        ("@rack[1-3]", "there is no group '@rack3'", "@rack"),
        ("!@brokn", "there is no group '@brokn'", "@broken"),
        ("@rak*", "there is no group '@rak*'", "@rack"),
        ("gpx*", "the pattern 'gpx*' fits no host", "'gpu"),
        ("@rack1,!gpu22", "'!gpu22' takes away no host", "'!gpu2'"),
        ("@rack1,!gup[1-2]", "'!gup1' takes away no host", "'!gpu1'"),
        ("@empty", "no host is meant", "patchq hosts"),
        ("@rack2,!gpu3", "no host is left", ""),
        ("!gpu3", "no host is left", "-H all -H '!gpu3'"),
    ],
)
def test_what_fits_nothing_is_an_error_that_names_the_nearest(spec, what, nearest):
    with pytest.raises(UsageError) as caught:
        expand([spec], GROUPS["all"], GROUPS)

    assert what in caught.value.what
    assert nearest in caught.value.why + caught.value.mend


@pytest.mark.parametrize("spec", ["@rack1", "all", "gpu1,!@rack1"])
def test_a_group_without_an_inventory_says_where_one_would_be(spec):
    with pytest.raises(UsageError, match="there is no inventory") as caught:
        expand([spec], KNOWN)

    assert "PATCHQ_HOSTS" in caught.value.why
