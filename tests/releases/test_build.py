"""A build that no index keeps: its name, and how it gets along with wheels in the store."""

import pytest

from patchq.releases import build
from patchq.releases.fetch import fetch
from patchq.releases.store import Store, StoreError
from tests.releases.conftest import TEXT

LINUX = ("manylinux_2_17_x86_64", "manylinux2014_x86_64")
WHEEL = "".join(f"Tag: cp38-abi3-{name}\n" for name in LINUX).encode()
INFO = {"WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n", "METADATA": b"Name: demo\n"}
RECORD = b"demo/__init__.py,sha256=x,12\ndemo-1.0.dist-info/RECORD,,\n"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def add(cache, texts, *, info=INFO, version="1.0", origin="RECORD abc in /site on gpu1"):
    named = build.candidate("demo", version, info)
    files = [(path, data, False) for path, data in sorted(texts.items())]
    folder = f"demo-{version}.dist-info"
    return build.add(cache, named, files, info, RECORD, folder=folder, origin=origin)


@pytest.mark.parametrize(
    ("version", "info", "filename", "release"),
    [
        ("1.0", INFO["WHEEL"], "my_demo-1.0-py3-none-any.whl", "1.0"),
        ("1.0+cu130", INFO["WHEEL"] + b"Build: 1local\n",
         "my_demo-1.0+cu130-1local-py3-none-any.whl", "1.0+cu130-1local"),
        ("0.16.1.dev5+gabc", WHEEL,
         "my_demo-0.16.1.dev5+gabc-cp38-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
         "0.16.1.dev5+gabc"),
        ("1.0", b"Tag: py2-none-any\nTag: py3-none-any\n",
         "my_demo-1.0-py2.py3-none-any.whl", "1.0"),
    ],
)  # fmt: skip
def test_the_wheel_is_named_as_its_dist_info_says(version, info, filename, release):
    found = build.candidate("My.Demo", version, {"WHEEL": info})

    assert (found.filename, found.release) == (filename, release)


@pytest.mark.parametrize("info", [{}, {"WHEEL": b"Tag: nonsense\n"}, {"WHEEL": b"Wheel: 1\n"}])
def test_an_installation_that_was_no_wheel_is_refused(info):
    with pytest.raises(build.BuildError, match="nobody can tell which wheel"):
        build.candidate("demo", "1.0", info)


def test_a_version_that_is_none_is_refused():
    with pytest.raises(build.BuildError, match="nobody can tell which wheel") as caught:
        build.candidate("demo", "../../x", INFO)

    assert "is no wheel" in caught.value.why


def test_a_pinned_release_that_no_index_keeps_is_what_the_host_had(site, settings, cache):
    note = add(cache, TEXT)

    got = fetch("demo==1.0", cache=cache, settings=settings())

    assert (got.already, got.verified, got.tree) == (True, "host", note.tree)
    assert got.origin == "RECORD abc in /site on gpu1"
    assert "no wheel answers to demo==1.0" in got.notes[0]


def test_the_index_is_asked_and_its_wheel_takes_the_place_of_the_same_text(
    site, settings, wheel, cache
):
    add(cache, TEXT)
    site.offer_wheel(wheel())

    got = fetch("demo==1.0", cache=cache, settings=settings())

    assert (got.already, got.verified, got.origin) == (False, "record", None)
    assert [note.origin for note in Store("demo", cache).wheels("1.0")] == [None]


def test_a_wheel_of_the_same_name_with_another_text_is_refused(site, settings, wheel, cache):
    add(cache, {"demo/__init__.py": b"VERSION = 2\n"})
    site.offer_wheel(wheel())

    with pytest.raises(StoreError, match="is not what it was") as caught:
        fetch("demo==1.0", cache=cache, settings=settings())

    assert "as read from RECORD abc in /site on gpu1" in caught.value.why


def test_a_wheel_does_not_get_a_longer_name_than_a_hosts_own_build(site, settings, wheel, cache):
    own = {"WHEEL": b"Tag: py3-none-linux_x86_64\n"}
    add(cache, {"demo/__init__.py": b"VERSION = 2\n"}, info=own)
    site.offer_wheel(wheel())

    with pytest.raises(StoreError, match=r"another text is kept as 1\.0") as caught:
        fetch("demo==1.0", cache=cache, settings=settings())

    assert "as read from RECORD abc in /site on gpu1" in caught.value.why
    assert "update-ref -d refs/wheels/1.0-py3-none-linux_x86_64 && " in caught.value.mend
    assert "update-ref -d refs/tags/1.0" in caught.value.mend


def test_what_the_mend_says_lets_the_wheel_in(site, settings, wheel, cache):
    import subprocess

    own = {"WHEEL": b"Tag: py3-none-linux_x86_64\n"}
    add(cache, {"demo/__init__.py": b"VERSION = 2\n"}, info=own)
    site.offer_wheel(wheel())
    with pytest.raises(StoreError) as caught:
        fetch("demo==1.0", cache=cache, settings=settings())

    subprocess.run(caught.value.mend.partition(": ")[2], shell=True, check=True)

    assert fetch("demo==1.0", cache=cache, settings=settings()).release == "1.0"
    note = add(cache, {"demo/__init__.py": b"VERSION = 2\n"}, info=own)
    assert note.release == "1.0-py3-none-linux_x86_64"


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("demo-1.0.dist-info", "../../x"),
        ("demo-1.0.dist-info", ".git/config"),
        ("demo-1.0.dist-info", "/etc/x"),
        ("../x.dist-info", "METADATA"),
        ("demo", "METADATA"),
    ],
)
def test_names_of_a_host_that_lead_elsewhere_are_refused(cache, folder, name):
    named = build.candidate("demo", "1.0", INFO)

    with pytest.raises(build.BuildError, match="cannot be kept"):
        build.add(cache, named, [], {name: b""}, RECORD, folder=folder, origin="gpu1")

    assert not cache.exists()


def test_two_hosts_with_one_text_are_one_release(cache):
    add(cache, TEXT)

    note = add(cache, TEXT, origin="RECORD def in /site on gpu2")

    (kept,) = Store("demo", cache).wheels("1.0")
    assert kept == note
    assert kept.origin == "RECORD def in /site on gpu2"
