"""The bare repository: same ids everywhere, all or nothing, nobody's settings."""

import os
import shutil
import signal
import subprocess
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from patchq import git
from patchq.agent import protocol
from patchq.releases.names import NameRefusedError
from patchq.releases.note import WheelNote
from patchq.releases.store import Store, StoreError, default_root

FILES = [
    ("demo/__init__.py", b"VERSION = 1\r\n$Id$\n", False),
    ("demo/a b.py", b"", False),
    ('demo/"quoted\\".txt'.replace("\\", ""), b"\xff\x00", False),
    ("demo/run.sh", b"#!/bin/sh", True),
    ("demo/caf\u00e9.py", b"1\n", False),
    ("demo/\udcff.py", b"2\n", False),
]
INFO = {"demo-1.0.dist-info/METADATA": b"Name: demo\n"}


def note(release="1.0", filename=None):
    return WheelNote(filename or f"demo-{release}-py3-none-any.whl", release, "", "record")


@pytest.fixture
def git_on_path(tmp_path, monkeypatch):
    """Put a git before the real one; the function sets what it does first."""
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")

    def does(first):
        script = tmp_path / "bin" / "git"
        script.write_text(f'#!/bin/sh\n{first}\nexec {real} "$@"\n')
        script.chmod(0o755)

    return does


@pytest.fixture
def store(tmp_path):
    return Store("Demo", tmp_path)


def test_what_is_added_is_read_back_byte_for_byte(store):
    kept = store.add(note(), FILES, INFO)

    with store:
        found = store.read_many("1.0", [path for path, _, _ in FILES])
        assert found == {path: (data, runs) for path, data, runs in FILES}
        assert set(store.listing("1.0")) == set(found)
        assert store.tree("1.0") == kept.tree
        assert store.wheels("1.0") == (kept,)
        assert store.dist_info(kept) == INFO


@pytest.mark.parametrize("path", ["demo", "demo/gone.py", "demo/run.sh/x", "x", "a\nb", ""])
def test_a_path_that_the_release_lacks_reads_as_none(store, path):
    store.add(note(), FILES, INFO)

    assert store.read("1.0", path) is None


def test_reading_needs_one_process(store, git_on_path, tmp_path):
    store.add(note(), FILES, INFO)
    git_on_path(f'echo "$*" >> {tmp_path}/calls')

    with store:
        assert store.has("1.0")
        store.read("1.0", "demo/run.sh")
        store.read_many("1.0", store.listing("1.0"))

    assert (tmp_path / "calls").read_text().count("\n") == 1


def test_a_store_that_nothing_was_added_to_is_empty_and_creates_nothing(store, tmp_path):
    assert (store.releases(), store.has("1.0"), store.wheels("1.0")) == ((), False, ())
    assert store.note("demo-1.0-py3-none-any.whl") is None
    assert list(tmp_path.iterdir()) == []


def test_a_release_that_was_not_fetched_is_named_with_those_that_were(store):
    store.add(note(), FILES, INFO)

    with pytest.raises(StoreError, match=r"demo 2\.0 was not fetched") as caught:
        store.tree("2.0")

    assert caught.value.why.endswith("has 1.0")
    assert caught.value.mend == "patchq fetch demo==2.0"


@pytest.mark.parametrize("release", ["", "..", "1.0^{tree}", "-d", "1.0\n", "a/b", "1.0.lock"])
def test_a_name_that_is_no_release_is_not_there(store, release):
    store.add(note(), FILES, INFO)

    assert not store.has(release)


@pytest.mark.slow
def test_equal_texts_share_a_commit_and_releases_are_in_order(store):
    for release in ("1.10", "1.9", "1.9-1", "1.9rc1"):
        store.add(note(release), FILES, INFO)

    commits = {git_of(store, "rev-parse", f"refs/tags/{r}") for r in store.releases()}
    assert store.releases() == ("1.9rc1", "1.9", "1.9-1", "1.10")
    assert len(commits) == 1


def git_of(store, *arguments):
    done = subprocess.run(
        ["git", f"--git-dir={store.path}", *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


HOSTILE = {
    "GIT_DIR": "/nowhere",
    "GIT_WORK_TREE": "/nowhere",
    "GIT_INDEX_FILE": "/nowhere/index",
    "GIT_OBJECT_DIRECTORY": "/nowhere/objects",
    "GIT_DEFAULT_HASH": "sha256",
    "GIT_AUTHOR_NAME": "Somebody",
    "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.autocrlf",
    "GIT_CONFIG_VALUE_0": "true",
    "GIT_NAMESPACE": "elsewhere",
    "GIT_TRACE": "2",
}
ADD = """
import sys, pathlib
from patchq.releases.note import WheelNote
from patchq.releases.store import Store
store = Store("demo", pathlib.Path(sys.argv[1]))
files = [("demo/a.py", b"x = 1\\r\\n$Id$\\n", False), ("demo/b.py", b"y\\n", True)]
note = WheelNote("demo-1.0-py3-none-any.whl", "1.0", "", "record")
print(store.add(note, files, {"demo-1.0.dist-info/METADATA": b""}).tree)
print(store.read("1.0", "demo/a.py"))
"""


@pytest.mark.slow
def test_a_users_settings_do_not_reach_the_store(tmp_path):
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    attributes = "*.py merge=union text eol=crlf ident filter=evil export-subst\n"
    (home / ".config" / "git" / "attributes").write_text(attributes)
    evil = f"[core]\n hooksPath = {home}\n autocrlf = true\n[filter 'evil']\n clean = false\n"
    (home / ".gitconfig").write_text(evil + "[init]\n templateDir = /nowhere\n".replace("'", '"'))
    (home / "reference-transaction").write_text("#!/bin/sh\nexit 1\n")
    (home / "reference-transaction").chmod(0o755)

    said = [
        subprocess.run(
            [sys.executable, "-c", ADD, str(tmp_path / name)],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **environ},
        ).stdout
        for name, environ in (("plain", {}), ("hostile", {**HOSTILE, "HOME": str(home)}))
    ]

    stores = [Store("demo", tmp_path / name) for name in ("plain", "hostile")]
    assert said[0] == said[1]
    assert len({git_of(each, "rev-parse", "refs/tags/1.0") for each in stores}) == 1
    assert "* -text -ident -filter -export-subst !merge" in git.ATTRIBUTES
    assert (stores[1].path / "info" / "attributes").read_text() == git.ATTRIBUTES


@pytest.mark.slow
@pytest.mark.parametrize("step", ["init", "fast-import", "refs/wheels/", "refs/tags/"])
def test_an_add_that_is_killed_leaves_nothing_visible(tmp_path, git_on_path, step):
    store = Store("demo", tmp_path / "cache")
    command = [sys.executable, "-c", ADD, str(store.root)]
    # git itself goes on where it is killed in the middle of its input.
    script = f'case "$*" in *{step}*) kill -9 $PPID; [ {step} = fast-import ] || exit 1;; esac'
    git_on_path(script)

    killed = subprocess.run(command, capture_output=True)
    git_on_path("")
    seen = store.releases()
    done = subprocess.run(command, capture_output=True, text=True)

    assert (killed.returncode, seen, done.stderr) == (-signal.SIGKILL, (), "")
    assert store.releases() == ("1.0",)


def test_what_a_killed_git_left_is_cleared_away(store):
    store.add(note(), FILES, INFO)
    left = [store.path / name for name in ("refs/tags/2.0.lock", "objects/pack/tmp_pack_x")]
    for path in left:
        path.touch()

    store.add(note("2.0"), FILES, INFO)

    assert store.releases() == ("1.0", "2.0")
    assert not any(path.exists() for path in left)


@pytest.mark.slow
def test_a_creation_that_was_killed_is_begun_anew(store, tmp_path):
    (tmp_path / "demo.fresh").mkdir()
    (tmp_path / "demo.fresh" / "HEAD").write_text("half")

    store.add(note(), FILES, INFO)

    assert store.has("1.0")


@pytest.mark.slow
def test_adds_at_once_are_all_kept(tmp_path):
    scripts = [
        ADD.replace('"1.0"', f'"1.{n}"').replace("demo-1.0-py3", f"demo-1.{n}-py3")
        for n in range(5)
    ]
    running = [
        subprocess.Popen([sys.executable, "-c", each, str(tmp_path)], stdout=subprocess.DEVNULL)
        for each in scripts
    ]

    assert [process.wait(60) for process in running] == [0] * 5

    assert Store("demo", tmp_path).releases() == tuple(f"1.{n}" for n in range(5))


def test_another_text_of_the_same_wheel_is_refused(store):
    kept = store.add(note(), FILES, INFO)

    with pytest.raises(StoreError, match="is not what it was"):
        store.add(note(), FILES[:2], INFO)

    assert store.tree("1.0") == kept.tree


@pytest.mark.parametrize(
    "path", ["../x", ".git/config", "a/.GIT/x", "/x", "a//b", ".patchq/x", "a.dist-info/RECORD"]
)
def test_an_unsafe_path_is_never_kept(store, path):
    with pytest.raises(NameRefusedError, match="cannot be kept"):
        store.add(note(), [(path, b"", False)], INFO)

    assert not store.path.exists()


def test_a_build_tag_that_is_no_tags_name_is_refused(store):
    with pytest.raises(NameRefusedError, match="cannot be kept"):
        store.add(note("1.0-1..x"), FILES, INFO)


def test_a_tree_deeper_than_python_recurses_is_listed(store):
    deep = "demo/" + "d/" * 1500 + "x.py"

    store.add(note(), [(deep, b"1\n", False), *FILES], INFO)

    assert list(store.listing("1.0")) == sorted([deep, *(path for path, _, _ in FILES)])
    assert store.read("1.0", deep) == b"1\n"


def test_a_damaged_store_is_an_error_in_three_parts(store):
    store.add(note(), FILES, INFO)
    for pack in store.path.glob("objects/pack/*"):
        pack.unlink()

    with pytest.raises((StoreError, git.GitError)) as caught:
        store.read("1.0", "demo/run.sh")

    assert caught.value.mend


def test_the_default_root_is_in_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert default_root() == tmp_path / "patchq" / "releases"


@pytest.mark.slow
@examples(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.dictionaries(
        st.text(
            st.characters(codec="utf-8", exclude_characters="/\\\x7f"), min_size=1, max_size=8
        ).filter(lambda name: protocol.unsafe(name) is None),
        st.tuples(st.binary(max_size=60), st.booleans()),
        max_size=6,
    )
)
def test_any_names_and_bytes_are_kept(tmp_path_factory, files):
    store = Store("demo", tmp_path_factory.mktemp("any"))

    store.add(note(), [(f"demo/{path}", *rest) for path, rest in files.items()], {})

    assert store.read_many("1.0", store.listing("1.0")) == {
        f"demo/{path}": rest for path, rest in files.items()
    }
