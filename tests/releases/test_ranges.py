"""Ranges of a remote file: joined, checked, never guessed."""

import doctest
import itertools

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from patchq.releases import ranges
from patchq.releases.index import Session, UnreachableError
from patchq.releases.settings import Settings

STRETCHES = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(1, 300)).map(lambda each: (each[0], sum(each)))
)


@settings(max_examples=50, deadline=None)
@given(STRETCHES, st.integers(0, 500))
def test_joined_stretches_cover_all_and_lie_apart(stretches, gap):
    joined = ranges.coalesce(stretches, gap)

    assert all(any(a <= start and end <= b for a, b in joined) for start, end in stretches)
    assert all(after[0] - before[1] > gap for before, after in itertools.pairwise(joined))
    assert {each for pair in joined for each in pair} <= {e for pair in stretches for e in pair}


def test_the_example_holds():
    assert doctest.testmod(ranges).failed == 0


@pytest.fixture
def session():
    with Session(Settings(timeout=5.0, retries=0)) as made:
        yield made


def remote(session, site):
    return ranges.RemoteFile(session, lambda: f"{site.url}/file")


def test_a_file_is_read_as_if_it_were_here(site, session):
    data = bytes(range(256)) * 40
    site.offer("/file", data)

    with remote(session, site) as file:
        assert file.size == len(data)
        assert file.seek(-16, 2) == len(data) - 16
        assert file.read() == data[-16:]
        file.seek(100)
        file.seek(10, 1)
        assert (file.read(5), file.tell()) == (data[110:115], 115)
        assert (file.readable(), file.seekable(), file.read(0)) == (True, True, b"")
        file.want([(0, 100), (150, 200)])
        count = session.requests
        file.seek(50)
        assert file.read(120) == data[50:170]
        assert session.requests == count


def test_a_server_without_ranges_is_left_at_once(site, session):
    site.offer("/file", b"x" * (8 << 20))
    site.ranges = False

    with pytest.raises(ranges.NoRangesError):
        remote(session, site)

    assert session.received == 0


@pytest.mark.parametrize(
    "answered", ["bytes 0-8/10000", "bytes 1-9/10000", "bytes 0-9/10001", "x"]
)
def test_an_answer_for_another_range_is_not_taken(site, session, answered):
    site.offer("/file", bytes(10000))

    with remote(session, site) as file:
        site.lie = answered
        with pytest.raises((ranges.ChangedError, ranges.NoRangesError)):
            file.read(10)


def test_a_body_that_always_breaks_off_is_an_error(site, session):
    site.offer("/file", bytes(10000))

    with remote(session, site) as file:
        site.broken = 9
        with pytest.raises(UnreachableError):
            file.read(100)


def test_more_than_a_wheel_can_need_is_never_asked_for(site, session):
    site.offer("/file", bytes(10))
    site.lie = f"bytes 0-0/{1 << 40}"

    with remote(session, site) as file, pytest.raises(EOFError):
        file.read()


def test_a_weak_tag_is_never_sent_as_a_condition(site, session):
    site.offer("/file", bytes(10000))
    site.weak = True

    with remote(session, site) as file:
        assert file.read(10) == bytes(10)
