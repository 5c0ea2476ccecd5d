"""Waves: every host once, groups whole, the canary first, the order kept."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq import rollout
from patchq.errors import UsageError
from patchq.rollout import Order, Share, Wave

HOSTS = st.integers(1, 40).map(lambda count: tuple(f"h{n}" for n in range(count)))
SHARES = st.builds(Share, st.integers(1, 60)) | st.builds(
    Share, st.integers(1, 100), st.just(True)
)


@st.composite
def runs(draw):
    """Hosts in some order, sets of them that may overlap and name others, and an order."""
    hosts = draw(HOSTS.flatmap(lambda names: st.permutations(names).map(tuple)))
    names = st.sampled_from((*hosts, "elsewhere"))
    together = draw(st.lists(st.frozensets(names, max_size=6), max_size=5).map(tuple))
    serial = draw(st.none() | SHARES)
    return hosts, Order(draw(st.integers(0, 45)), serial, Share(0), together)


@given(runs())
def test_every_host_moves_once(run):
    hosts, order = run

    moved = [host for wave in rollout.waves(hosts, order) for host in wave.hosts]

    assert sorted(moved) == sorted(hosts)


@given(runs())
def test_what_moves_together_is_in_one_wave(run):
    hosts, order = run

    waves = rollout.waves(hosts, order)

    for some in order.together:
        number = {n for n, wave in enumerate(waves) for host in wave.hosts if host in some}
        assert len(number) <= 1


@given(runs())
def test_the_canary_is_first_and_no_larger_than_it_must_be(run):
    hosts, order = run

    first, *rest = rollout.waves(hosts, order)

    assert first.canary == (order.canary > 0)
    assert not any(wave.canary for wave in rest)
    if first.canary:
        assert len(first.hosts) >= min(order.canary, len(hosts))
        assert len(first.hosts) - len(first.units[-1]) < order.canary


@given(runs())
def test_the_order_is_kept(run):
    hosts, order = run

    units = [unit for wave in rollout.waves(hosts, order) for unit in wave.units]

    firsts = [hosts.index(unit[0]) for unit in units]
    assert firsts == sorted(firsts)
    for unit in units:
        places = [hosts.index(host) for host in unit]
        assert places == sorted(places)


@given(runs())
def test_a_wave_is_no_larger_than_asked_for_but_for_one_unit_and_takes_what_fits(run):
    hosts, order = run
    waves = [wave for wave in rollout.waves(hosts, order) if not wave.canary]

    if order.serial is None:
        assert len(waves) <= 1
        return
    most = max(1, order.serial.of(len(hosts)))
    for wave in waves:
        assert len(wave.hosts) <= most or len(wave.units) == 1
    for wave, after in itertools.pairwise(waves):
        assert len(wave.hosts) + len(after.units[0]) > most


@given(runs(), st.data())
def test_who_moves_with_a_bad_host_falls_with_it_and_nobody_else(run, data):
    hosts, order = run
    units = rollout.units(hosts, order.together)
    bad = data.draw(st.sets(st.sampled_from(hosts)))

    fallen = rollout.fallen(bad, units)

    assert set(fallen) == {host for unit in units if bad & set(unit) for host in unit}


@pytest.mark.parametrize(
    ("text", "total", "number"),
    [
        ("3", 30, 3),
        ("10%", 30, 3),
        ("10%", 29, 2),
        ("10%", 9, 0),
        ("33%", 10, 3),
        ("100%", 7, 7),
        ("1%", 99, 0),
    ],
)
def test_a_part_is_rounded_down(text, total, number):
    assert rollout.share(text, "--serial").of(total) == number


def test_a_wave_has_one_host_at_least():
    found = rollout.waves(("a", "b"), Order(serial=rollout.share("10%", "--serial")))

    assert [wave.hosts for wave in found] == [("a",), ("b",)]


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "101%", "1.5", "5 %", "%", "1" * 9])
def test_what_is_no_number_of_hosts_is_refused(text):
    with pytest.raises(UsageError, match="no number of hosts"):
        rollout.share(text, "--serial", least=1)


@pytest.mark.parametrize(
    ("limit", "failed", "before", "stops"),
    [("0", 0, 0, False), ("0", 1, 0, True), ("2", 2, 0, False), ("2", 1, 2, True)],
)
def test_failures_of_all_waves_count_against_the_limit(limit, failed, before, stops):
    order = Order(fail_limit=rollout.share(limit, "--fail-limit"))

    found = rollout.stops(order, Wave((("a",),)), failed=failed, before=before, total=10)

    assert found is stops


def test_a_canary_that_fails_stops_whatever_the_limit():
    order = Order(canary=1, fail_limit=rollout.share("50%", "--fail-limit"))

    assert rollout.stops(order, Wave((("a",),), canary=True), failed=1, before=0, total=10)
    assert not rollout.stops(order, Wave((("a",),), canary=True), failed=0, before=0, total=10)
