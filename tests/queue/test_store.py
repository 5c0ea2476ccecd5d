import random
import shutil
import subprocess
import sys

import pytest
from packaging.specifiers import SpecifierSet

from patchq.engine import diff
from patchq.errors import UsageError
from patchq.model import UnsafePath
from patchq.queue import lock as locks
from patchq.queue import store, table
from tests.engine import corpus

TOML = """\
distribution = "demo"
summary = "caf\u00e9"
owner = "A <a@example.org>"
upstream = ["https://example.org/1"]

[patches.20-b]
for = "<0.16"
upstream = "https://example.org/2"
"""
A = b"Description: a\n\n" + diff.unified(b"1\n", b"2\n", "demo/x.py")
B = diff.unified(b"3\n", b"2\n", "demo/x.py")


@pytest.fixture
def folder(tmp_path):
    """A queue with two releases: 0.16.0 has a sketch of its own for one patch."""
    queue = tmp_path / "queues" / "q"
    for release in ("0.16.0", "0.9"):
        (queue / release).mkdir(parents=True)
        (queue / release / "10-a.patch").write_bytes(A)
        (queue / release / "20-b.diff").write_bytes(B)
        (queue / release / "series").write_text("10-a.patch\n20-b.diff -R # back\n")
    (queue / "post").mkdir()
    (queue / "post" / "10-a.pyi").write_bytes(b"shared a")
    (queue / "post" / "20-b.pyi").write_bytes(b"shared b")
    (queue / "0.16.0" / "20-b.pyi").write_bytes(b"own b")
    (queue / "queue.toml").write_text(TOML)
    return queue


def locked(folder, release="0.16.0"):
    """Write the release's lock and return the queue."""
    queue = store.open(folder)
    patches = store.load(queue, release).patches
    lock = locks.make("demo", release, "t", patches, read={"demo/x.py": (b"1\n", False)}.get)
    (folder / release / "series.lock").write_bytes(locks.format(lock))
    return queue


def test_a_queue_says_what_its_toml_says_and_has_its_releases_in_order(folder):
    shutil.copytree(folder / "0.9", folder / "nightly")
    queue = store.open(folder)

    assert (queue.name, queue.folder, queue.distribution) == ("q", folder, "demo")
    assert (queue.summary, queue.owner) == ("caf\u00e9", "A <a@example.org>")
    assert queue.upstream == ("https://example.org/1",)
    assert queue.patches["20-b"].upstream == "https://example.org/2"
    assert queue.releases == ("nightly", "0.9", "0.16.0")


@pytest.mark.parametrize(
    ("stem", "release", "needed"),
    [
        ("10-a", "9", True),
        ("20-b", "0.15.1", True),
        ("20-b", "0.16.0", False),
        ("20-b", "0.16.0rc1", False),
        ("20-b", "0.15.1+cu130", True),
        ("20-b", "nightly", True),
    ],
)
def test_a_queue_knows_which_releases_need_a_patch(folder, stem, release, needed):
    assert store.open(folder).needs(stem, release) is needed


def test_a_series_is_loaded_with_options_and_the_sketches_that_count(folder):
    series = store.load(store.open(folder), "0.16.0")

    assert [(p.name, p.reverse, p.sketch, p.sketch_name) for p in series.patches] == [
        ("10-a.patch", False, b"shared a", "post/10-a.pyi"),
        ("20-b.diff", True, b"own b", "0.16.0/20-b.pyi"),
    ]
    assert series.lock is None
    assert store.load(store.open(folder), "0.9").patches[1].sketch == b"shared b"


def test_a_patch_without_a_sketch_has_none(folder):
    shutil.rmtree(folder / "post")

    patch = store.load(store.open(folder), "0.16.0").patches[0]

    assert (patch.sketch, patch.sketch_name) == (None, "")


def test_a_lock_is_read_with_the_series_and_alone(folder):
    queue = locked(folder)

    assert store.load(queue, "0.16.0").lock == store.lock(queue, "0.16.0")
    assert store.lock(queue, "0.16.0").release == "0.16.0"
    assert store.lock(queue, "0.9") is None


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("0.16.0/10-a.patch", A + b"\n", "10-a.patch was edited"),
        ("0.16.0/20-b.pyi", b"x", "sketch of 20-b.diff"),
        ("0.16.0/10-a.pyi", b"x", "sketch of 10-a.patch"),
        ("0.16.0/series", b"10-a.patch\n20-b.diff\n", "options '-R'"),
        ("post/20-b.pyi", b"not asked, since 0.16.0 has its own", None),
        ("queue.toml", TOML.encode() + b"\n", None),
    ],
)
def test_an_edit_that_makes_a_lock_stale_is_found_without_parsing_a_patch(
    folder, path, text, words
):
    queue = locked(folder)
    assert store.verify(queue, "0.16.0") is None

    (folder / path).write_bytes(text)

    found = store.verify(queue, "0.16.0")
    assert found is words is None or words in found
    assert locks.stale(store.lock(queue, "0.16.0"), store.load(queue, "0.16.0")) == found


def test_a_release_without_a_lock_is_said(folder):
    assert store.verify(store.open(folder), "0.9") == "there is no series.lock"


def test_a_release_without_a_series_is_said_with_those_there_are(folder):
    with pytest.raises(UsageError) as caught:
        store.load(store.open(folder), "1.0")

    assert caught.value.what == "queue q has no series for 1.0"
    assert "0.9, 0.16.0" in caught.value.why


def test_a_patch_that_is_listed_and_not_there_is_named(folder):
    (folder / "0.16.0" / "10-a.patch").unlink()

    with pytest.raises(UsageError, match=r"10-a\.patch"):
        store.load(store.open(folder), "0.16.0")


def test_a_patch_with_a_path_outside_of_the_package_is_refused(folder):
    (folder / "0.16.0" / "10-a.patch").write_bytes(A.replace(b"demo/x.py", b"../../x.py"))

    with pytest.raises(UnsafePath, match=r"10-a.patch:\d"):
        store.load(store.open(folder), "0.16.0")


@pytest.mark.parametrize(
    ("text", "words", "mend"),
    [
        ('distribution = "x"\nsumary = "x"\n', "the key 'sumary'", "'summary'"),
        (TOML + 'upstreem = "x"\n', "the key 'upstreem'", "'upstream'"),
        ('summary = "x"\n', "has no 'distribution'", 'distribution = "..."'),
        ('distribution = "x"\n', "has no 'summary'", 'summary = "..."'),
        ('distribution = 1\nsummary = "x"\n', "'distribution' has a value", "correct"),
        ('distribution = "x"\nsummary = "x"\nupstream = "x"\n', "'upstream' has", "correct"),
        ('distribution = "x"\nsummary = "x"\nupstream = [1]\n', "'upstream' has", "correct"),
        ('distribution = "x"\nsummary = "x"\npatches = 1\n', "'patches' has", "correct"),
        (TOML.replace("[patches.20-b]", "[patches]\n20-b = 1\n[x]"), "the key 'x'", "keys"),
        (TOML.split("[patches")[0] + "[patches]\na = 1\n", "'patches.a' has", "correct"),
        (TOML.replace('"<0.16"', "16"), "'for' has", "correct"),
        (TOML.replace("<0.16", "soon"), "'patches.20-b.for' has", "correct"),
        (TOML.replace("[patches.20-b]", '[patches."20-b.patch"]'), "names a file", '"20-b"'),
        ("= 1", "cannot be read", "correct"),
    ],
)
def test_a_queue_toml_that_is_wrong_is_refused_and_the_nearest_key_named(
    folder, text, words, mend
):
    (folder / "queue.toml").write_text(text)

    with pytest.raises(UsageError) as caught:
        store.open(folder)

    assert words in caught.value.what
    assert str(folder) in caught.value.what
    assert mend in caught.value.mend or mend == "keys"


def test_a_specifier_that_is_taken_as_it_stands_is_one():
    pieces = ["<", ">", "=", "!", "~", " ", ",", "1", "0", ".", "16", "*", "a", "==", "<=", "\n"]
    chance = random.Random(8)
    texts = ["".join(chance.choices(pieces, k=chance.randint(1, 9))) for _ in range(30_000)]
    plain = [text for text in texts if table._PLAIN.fullmatch(text)]

    assert len(plain) > 200
    for text in plain:
        SpecifierSet(text)


def test_a_folder_that_is_no_queue_is_said(tmp_path):
    with pytest.raises(UsageError, match="is not a queue"):
        store.open(tmp_path / "nothing")


def test_queues_are_sought_upwards_then_where_told_then_in_patchq_itself(folder, tmp_path):
    below = tmp_path / "queues" / "q" / "post"
    (tmp_path / "more").mkdir()
    shutil.copytree(folder, tmp_path / "more" / "r")
    shutil.copytree(folder, tmp_path / "more" / "q")
    environ = {"PATCHQ_QUEUES": f"{tmp_path / 'more'}:{tmp_path / 'queues'}:"}

    folders = store.search(below, environ)
    found = store.queues(below, environ)

    assert folders[:2] == [tmp_path / "queues", tmp_path / "more"]
    assert len(folders) == 3
    assert [queue.folder for queue in found if queue.distribution == "demo"] == [
        tmp_path / "queues" / "q",
        tmp_path / "more" / "r",
    ]


def test_a_folder_of_queues_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="is not a folder"):
        store.queues(tmp_path, {"PATCHQ_QUEUES": str(tmp_path / "nothing")})


def test_the_commit_of_a_queue_is_that_of_its_own_repository(folder, tmp_path):
    queue = store.open(folder)
    assert store.commit(queue) == (None, False)
    corpus.git(tmp_path, "init", "-q")
    corpus.git(tmp_path, "add", "-A")
    corpus.git(tmp_path, "commit", "-qm", "one")
    head = corpus.git(tmp_path, "rev-parse", "HEAD").decode().strip()

    clean = store.commit(queue)
    (folder / "0.9" / "new.patch").write_bytes(A)

    assert clean == (head, False)
    assert store.commit(queue) == (head, True)


def test_looking_at_queues_loads_no_parser_and_no_git():
    heavy = "{'unidiff', 'git', 'libcst', 'click', 'asyncssh', 'urllib3'}"
    code = (
        f"import sys; from patchq.queue import store; sys.exit(bool({heavy} & {{*sys.modules}}))"
    )

    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
