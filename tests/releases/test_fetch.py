"""Fetching from a real server on loopback, and from the index that is configured."""

import os
import signal
import subprocess
import sys
import threading
import zipfile

import pytest

from patchq.errors import UsageError
from patchq.releases import index, ranges
from patchq.releases.fetch import FetchError, fetch
from patchq.releases.settings import Settings
from patchq.releases.store import Store, StoreError
from patchq.releases.wheel import WheelError

BIG = {f"demo/m{n}.py": os.urandom(2000).hex().encode() + b"\n" for n in range(40)}
BINARY = {"demo/_A.so": os.urandom(1 << 20), "demo/_B.so": os.urandom(3 << 20)}


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def nothing_visible(cache):
    left = [path.name for path in cache.iterdir()] if cache.exists() else []
    return Store("demo", cache).releases() == () and set(left) <= {"demo.git", "demo.lock"}


def test_a_release_is_read_by_ranges_and_kept(site, settings, wheel, cache):
    made = wheel({**BIG, **BINARY})
    site.offer_wheel(made)

    got = fetch("demo==1.0", cache=cache, settings=settings())

    assert (got.release, got.files, got.verified, got.already) == ("1.0", 40, "record", False)
    assert got.wheel_size == made.stat().st_size
    assert got.bytes_read < got.wheel_size / 4
    assert got.requests == len(site.asked) == 4
    assert Store("demo", cache).read("1.0", "demo/m7.py") == BIG["demo/m7.py"]


def test_the_first_request_is_one_byte_and_no_request_asks_two_ranges(
    site, settings, wheel, cache
):
    made = wheel({**BIG, **BINARY})
    site.offer_wheel(made)

    fetch("demo==1.0", cache=cache, settings=settings())

    first, *others = site.ranges_of(made)
    assert first == "bytes=0-0"
    assert all("," not in each and not each.startswith("bytes=-") for each in others)
    assert {each.encoding for each in site.asked} == {"identity"}


def test_a_second_fetch_of_a_pinned_release_asks_nobody(site, settings, wheel, cache):
    site.offer_wheel(wheel())
    first = fetch("demo==1.0", cache=cache, settings=settings())
    site.asked.clear()

    again = fetch("demo==1.0", cache=cache, settings=settings())

    assert site.asked == []
    assert (again.already, again.tree, again.files) == (True, first.tree, first.files)


def test_a_second_fetch_without_a_pin_asks_only_the_index(site, settings, wheel, cache):
    made = wheel()
    site.offer_wheel(made)
    fetch("demo", cache=cache, settings=settings())
    site.asked.clear()

    again = fetch("demo>=1", cache=cache, settings=settings())

    assert [each.path for each in site.asked] == ["/simple/demo/"]
    assert again.already


def test_a_server_without_ranges_is_read_whole_and_that_is_said(site, settings, wheel, cache):
    made = wheel({**BIG, **BINARY})
    site.offer_wheel(made)
    site.ranges = False
    steps = []

    got = fetch(
        "demo==1.0", cache=cache, settings=settings(), progress=lambda *step: steps.append(step)
    )

    size = made.stat().st_size
    assert steps[0] == (0, size)
    assert steps[-1] == (size, size)
    assert got.notes == ("the server sends no ranges: the whole wheel was downloaded",)
    assert got.verified == "wheel"
    assert nothing_but_the_store(cache)


def nothing_but_the_store(cache):
    return sorted(path.name for path in cache.iterdir()) == ["demo.git", "demo.lock"]


def test_full_reads_the_wheel_whole_and_checks_the_indexs_digest(site, settings, wheel, cache):
    site.offer_wheel(wheel())
    by_ranges = fetch("demo==1.0", cache=cache, settings=settings())

    whole = fetch("demo==1.0", cache=cache, settings=settings(), full=True)

    assert (by_ranges.verified, whole.verified) == ("record", "wheel")
    assert whole.tree == by_ranges.tree
    assert fetch("demo==1.0", cache=cache, settings=settings()).verified == "wheel"


def test_full_refuses_a_wheel_that_is_not_the_indexs(site, settings, wheel, cache):
    made = wheel()
    site.offer_wheel(made)
    site.files[f"/files/{made.name}"] = wheel({"demo/a.py": b"evil\n"}).read_bytes()

    with pytest.raises(WheelError, match="is refused") as caught:
        fetch("demo==1.0", cache=cache, settings=settings(), full=True)

    assert "the index says" in caught.value.why
    assert nothing_visible(cache)


def test_full_without_a_digest_says_so(site, settings, wheel, cache):
    site.offer_wheel(wheel(), digest=False)

    got = fetch("demo==1.0", cache=cache, settings=settings(), full=True)

    assert got.verified == "record"
    assert "no sha256" in got.notes[0]


def test_a_tampered_file_is_refused_and_nothing_is_kept(site, settings, wheel, cache):
    def edit(members):
        return [
            (m, d.replace(b"1", b"2") if m.filename.endswith(".py") else d) for m, d in members
        ]

    site.offer_wheel(wheel(edit=edit))

    with pytest.raises(WheelError, match=r"demo-1\.0-py3-none-any\.whl is refused"):
        fetch("demo==1.0", cache=cache, settings=settings())

    assert nothing_visible(cache)


def test_another_text_of_the_same_wheel_is_refused_later(wheel, cache):
    fetch(str(wheel()), cache=cache, settings=Settings())
    other = wheel({"demo/__init__.py": b"VERSION = 2\n"})

    with pytest.raises(StoreError, match="not what it was") as caught:
        fetch(str(other), cache=cache, settings=Settings())

    assert caught.value.mend.count("update-ref -d") == 2
    assert Store("demo", cache).read("1.0", "demo/__init__.py") == b"VERSION = 1\n"


def test_an_encoded_wheel_is_refused(site, settings, wheel, cache):
    made = wheel()
    site.offer_wheel(made, page="/simple/demo/")
    site.before = lambda asked, number: setattr(site, "gzip", asked.path.endswith(".whl"))

    with pytest.raises(ranges.EncodedError, match="comes encoded as gzip"):
        fetch("demo==1.0", cache=cache, settings=settings())


def test_a_wheel_that_changes_midway_is_read_anew(site, settings, wheel, cache):
    made = wheel({**BIG, **BINARY})
    site.offer_wheel(made)
    old = site.files[f"/files/{made.name}"]
    new = wheel({**BIG, **BINARY, "demo/m0.py": b"new = 1\n"}).read_bytes()

    def before(asked, number):
        site.files[f"/files/{made.name}"] = old if number < 2 else new

    site.before = before
    fetch("demo==1.0", cache=cache, settings=settings())

    assert site.ranges_of(made).count("bytes=0-0") == 2
    assert Store("demo", cache).read("1.0", "demo/m0.py") == b"new = 1\n"


def test_a_wheel_that_never_stops_changing_is_given_up(site, settings, wheel, cache):
    made = wheel({**BIG, **BINARY})
    site.offer_wheel(made)
    data = site.files[f"/files/{made.name}"]

    def before(asked, number):
        site.files[f"/files/{made.name}"] = data + b"\0" * number

    site.before = before
    with pytest.raises(FetchError, match="changes while it is read"):
        fetch("demo==1.0", cache=cache, settings=settings())

    assert nothing_visible(cache)


def test_a_body_that_breaks_off_is_asked_again(site, settings, wheel, cache):
    made = wheel({**BIG, **BINARY})
    site.offer_wheel(made)

    def before(asked, number):
        if asked.path.endswith(".whl") and number == 1:
            site.broken = 1

    site.before = before
    got = fetch("demo==1.0", cache=cache, settings=settings())

    assert got.files == 40
    assert len(site.ranges_of(made)) == 4


def test_a_full_download_that_breaks_off_leaves_nothing(site, settings, wheel, cache):
    site.offer_wheel(wheel())
    site.ranges = False

    def before(asked, number):
        site.broken = 1000 if asked.path.endswith(".whl") and number >= 1 else 0

    site.before = before
    with pytest.raises(index.UnreachableError):
        fetch("demo==1.0", cache=cache, settings=settings())

    assert list(cache.iterdir()) == []


def test_a_signed_link_that_expired_is_looked_up_again(site, settings, wheel, cache):
    made = wheel({**BIG, **BINARY})
    site.offer_wheel(made)
    page = site.files["/simple/demo/"]

    def before(asked, number):
        pages = sum(each.path == "/simple/demo/" for each in site.asked)
        site.files["/simple/demo/"] = page.replace(b".whl#", b".whl?signed=%d#" % pages)
        if ".whl" in asked.path:
            expired = asked.path.endswith("signed=1") and number == 2
            return 403 if expired else None
        return None

    site.before = before
    got = fetch("demo==1.0", cache=cache, settings=settings())

    assert got.files == 40
    assert [each.path for each in site.asked].count("/simple/demo/") == 2


@pytest.mark.slow
def test_every_build_of_a_version_is_kept_and_the_highest_is_the_release(
    site, settings, wheel, cache
):
    site.offer_wheel(wheel({"demo/a.py": b"old\n"}))
    site.offer_wheel(wheel({"demo/a.py": b"new\n"}, build="1"))

    got = fetch("demo==1.0", cache=cache, settings=settings())

    store = Store("demo", cache)
    assert got.release == "1.0-1"
    assert store.releases() == ("1.0", "1.0-1")
    assert store.read("1.0", "demo/a.py") == b"old\n"
    assert "1.0 differs from 1.0-1 in 1 text files" in got.notes[0]
    assert fetch("demo==1.0", cache=cache, settings=settings()).release == "1.0-1"


@pytest.mark.slow
def test_a_build_that_is_missing_from_the_store_is_fetched(site, settings, wheel, cache):
    site.offer_wheel(wheel({"demo/a.py": b"old\n"}))
    site.offer_wheel(wheel({"demo/a.py": b"new\n"}, build="1"))
    fetch("demo==1.0", cache=cache, settings=settings())
    git = ["git", f"--git-dir={cache / 'demo.git'}", "update-ref", "-d", "refs/tags/1.0"]
    subprocess.run(git, check=True)

    again = fetch("demo==1.0", cache=cache, settings=settings())

    assert not again.already
    assert Store("demo", cache).has("1.0")


def test_another_platforms_wheel_with_another_text_is_said(site, settings, wheel, cache):
    tags = [f"cp38-abi3-{each}" for each in ("linux_x86_64", "linux_s390x", "win_amd64")]
    for tag in tags:
        site.offer_wheel(wheel({"demo/a.py": tag.encode()}, tag=tag))

    got = fetch("demo==1.0", cache=cache, settings=settings(), platform="linux_x86_64")

    ours, other = (f"demo-1.0-{tag}.whl" for tag in tags[:2])
    assert got.notes == (f"{other} differs from {ours} in 1 text files",)


def test_two_platforms_texts_get_two_releases(wheel, cache):
    fetch(str(wheel({"demo/a.py": b"x\n"})), cache=cache, settings=Settings())
    other = wheel({"demo/a.py": b"y\n"}, tag="cp311-cp311-linux_s390x")

    got = fetch(str(other), cache=cache, settings=Settings())

    assert got.release == "1.0-cp311-cp311-linux_s390x"
    assert "has another text" in got.notes[0]
    assert Store("demo", cache).read("1.0", "demo/a.py") == b"x\n"
    assert fetch("demo==1.0", cache=cache, settings=Settings()).release == "1.0"


def test_a_local_wheel_costs_no_network_and_gives_the_same_tree(site, settings, wheel, cache):
    made = wheel()
    site.offer_wheel(made)
    remote = fetch("demo==1.0", cache=cache, settings=settings())

    local = fetch(str(made), cache=cache / "other", settings=settings())

    assert (local.tree, local.bytes_read, local.requests) == (remote.tree, 0, 0)


def test_a_wheel_is_taken_from_its_url(site, settings, wheel, cache):
    made = wheel()
    site.offer_wheel(made)

    got = fetch(f"{site.url}/files/{made.name}", cache=cache, settings=settings(indexes=()))

    assert got.release == "1.0"
    assert "/simple/demo/" not in [each.path for each in site.asked]


@pytest.mark.slow
def test_a_yanked_release_is_read_only_for_a_pin_and_said(site, settings, wheel, cache):
    site.offer_wheel(wheel())
    site.offer_wheel(wheel(version="2.0"))
    page = site.files["/simple/demo/"].replace(b"<a href", b"<a data-yanked='broken' href")
    head, _, tail = page.rpartition(b"data-yanked")
    site.files["/simple/demo/"] = (
        head.replace(b"data-yanked='broken'", b"") + b"data-yanked" + tail
    )

    newest = fetch("demo", cache=cache, settings=settings())
    pinned = fetch("demo==2.0", cache=cache, settings=settings())

    assert newest.release == "1.0"
    assert pinned.notes == ("demo-2.0-py3-none-any.whl was yanked from the index: broken",)


def test_an_unknown_release_names_those_that_there_are(site, settings, wheel, cache):
    site.offer_wheel(wheel())

    with pytest.raises(FetchError, match="no wheel answers to demo==9") as caught:
        fetch("demo==9", cache=cache, settings=settings())

    assert caught.value.why == "the indexes offer 1.0"


def test_an_unknown_distribution_is_named(site, settings, cache):
    with pytest.raises(FetchError, match="no wheel answers to absent") as caught:
        fetch("absent", cache=cache, settings=settings())

    assert "no wheel of absent" in caught.value.why


def test_an_index_that_fails_is_passed_over_and_said(serve, site, settings, wheel, cache):
    site.offer_wheel(wheel())
    broken = serve()
    broken.before = lambda asked, number: 500
    indexes = (f"{broken.url}/simple", f"{site.url}/simple")

    got = fetch("demo==1.0", cache=cache, settings=settings(indexes=indexes))

    assert got.release == "1.0"
    assert "the server answered 500" in got.notes[0]


def test_no_index_at_all_is_said(cache):
    with pytest.raises(FetchError) as caught:
        fetch("demo", cache=cache, settings=Settings())

    assert "no index is set" in caught.value.why


@pytest.mark.parametrize(
    "wanted", ["demo==", "de mo", "../demo", "no_wheel.whl", "gone-1-py3-none-any.whl"]
)
def test_what_is_neither_requirement_nor_wheel_is_a_usage_error(wanted, cache):
    with pytest.raises(UsageError):
        fetch(wanted, cache=cache, settings=Settings())


def test_a_cache_that_cannot_be_made_is_an_error_in_three_parts(wheel, tmp_path):
    (tmp_path / "cache").write_text("a file is here")

    with pytest.raises(StoreError, match="cannot be written"):
        fetch(str(wheel()), cache=tmp_path / "cache", settings=Settings())


SCRIPT = """
import sys, pathlib
from patchq.releases.fetch import fetch
from patchq.releases.settings import Settings
settings = Settings(indexes=(sys.argv[1] + "/simple",), timeout=30.0, retries=0)
print(fetch("demo==1.0", cache=pathlib.Path(sys.argv[2]), settings=settings).tree)
"""


def start(site, cache):
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", SCRIPT, site.url, str(cache)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_fetches_at_once_all_end_with_the_same_tree(site, wheel, cache):
    site.offer_wheel(wheel({**BIG, **BINARY}))

    running = [start(site, cache) for _ in range(4)]
    ended = [process.communicate(timeout=60) for process in running]

    assert [error for _, error in ended] == [""] * 4
    assert len({tree for tree, _ in ended}) == 1
    assert nothing_but_the_store(cache)


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True], ids=["by ranges", "whole"])
def test_a_fetch_that_is_killed_midway_leaves_nothing_visible(site, wheel, cache, whole):
    site.offer_wheel(wheel({**BIG, **BINARY}))
    site.ranges = not whole
    reached, go_on = threading.Event(), threading.Event()

    def before(asked, number):
        if asked.path.endswith(".whl") and number == 1:
            reached.set()
            go_on.wait(30)

    site.before = before
    process = start(site, cache)
    assert reached.wait(30)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    go_on.set()

    assert nothing_visible(cache)
    site.before = lambda asked, number: None
    tree, error = start(site, cache).communicate(timeout=60)
    assert (len(tree.strip()), error) == (40, "")


@pytest.mark.slow
def test_a_real_release_costs_under_two_percent_of_its_wheel(cache):
    got = fetch("vllm==0.16.0", cache=cache)

    assert got.tree == "2817037fa59661b87906608ea38cc893aa6368d5"
    assert got.bytes_read < 0.02 * got.wheel_size
    assert got.requests <= 8
    again = fetch("vllm==0.16.0", cache=cache)
    assert (again.already, again.requests) == (True, 0)


def test_a_small_wheel_takes_one_request_after_the_first(site, settings, wheel, cache):
    made = wheel({"demo/a.py": b"", "demo/_C.so": os.urandom(900000)})
    site.offer_wheel(made)

    fetch("demo==1.0", cache=cache, settings=settings())

    assert site.ranges_of(made) == ["bytes=0-0", f"bytes=0-{made.stat().st_size - 1}"]


@pytest.mark.slow
def test_a_real_wheel_gives_the_same_bytes_by_ranges_as_unpacked_by_pip(cache, tmp_path):
    requirement = "packaging==24.0"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", tmp_path, requirement]
    subprocess.run(pip, check=True)
    (downloaded,) = tmp_path.glob("packaging-*.whl")

    got = fetch(requirement, cache=cache)

    store = Store("packaging", cache)
    with zipfile.ZipFile(downloaded) as archive:
        for path in store.listing(got.release):
            assert store.read(got.release, path) == archive.read(path)
