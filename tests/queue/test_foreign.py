"""Patches from elsewhere: made by real git in real repositories, put on a release's files."""

import random

import pytest

from patchq.engine import diff
from patchq.errors import ConflictError, PatchqError, UsageError
from patchq.queue import foreign, refitting, sifting
from tests.engine import corpus
from tests.queue import test_mailbox

ROWS = [b"line %d\n" % at for at in range(40)]
BASE = {
    "src/pkg/__init__.py": b"",
    "src/pkg/a.py": b"".join(ROWS),
    "src/pkg/sub/b.py": b"x = 1\n",
    "tests/test_a.py": b"def test():\n    assert 1\n",
    "docs/index.md": b"# pkg\n",
    "csrc/k.cu": b"int a;\n",
    "setup.py": b"from setuptools import setup\nsetup()\n",
    ".github/workflows/ci.yml": b"on: push\n",
}


class Repository:
    """A real git repository."""

    def __init__(self, folder, files=BASE):
        self.folder = folder
        folder.mkdir()
        self.run("init", "-q")
        self.commit("base", files)

    def run(self, *words):
        return corpus.git(self.folder, *words)

    def commit(self, subject, files, *, remove=()):
        for name, data in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for name in remove:
            (self.folder / name).unlink()
        self.run("add", "-A")
        self.run("commit", "-q", "--allow-empty", "-m", subject)

    def mails(self, count):
        """Return what a pull request's .patch address gives: mails, one after the other."""
        return self.run("format-patch", "--stdout", f"-{count}")


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repository")


def wheel(repository_files=BASE, root="src/"):
    return {
        name.removeprefix(root): (data, False)
        for name, data in repository_files.items()
        if name.startswith(root)
    }


def fit(data, tree, *, source="x.patch", name=None, **wish):
    found = foreign.read(data, source=source, name=name)
    shipped = sifting.Shipped.of([*tree, "pkg-1.dist-info/METADATA"])
    chosen = refitting.choose(found, shipped, refitting.Wish(**wish), where="pkg 1.0")
    files, out = dict(tree), []
    for one in refitting.fit(chosen, lambda name: files.get):
        files.update(one.files)
        out.append(one)
    return Patches(out, chosen.notes)


class Patches(tuple):
    """The patches of a file, and what is said of all of them."""

    def __new__(cls, patches, notes):
        """Make a tuple of the patches."""
        made = super().__new__(cls, patches)
        made.notes = notes
        return made


def changed(text, at=10):
    return text.replace(b"line %d\n" % at, b"LINE %d\n" % at)


A = BASE["src/pkg/a.py"]


def test_a_plain_diff_that_fits_keeps_every_byte():
    text = b"Description: x\n\n" + diff.unified(A, changed(A), "pkg/a.py") + b"-- \n2.0\n"

    (one,) = fit(text, wheel(), source="somewhere/x.diff")

    assert (one.name, one.text, one.notes) == ("x.diff", text, ())
    assert one.header == b"Description: x\n\n"
    assert one.files == {"pkg/a.py": (changed(A), False)}


def test_a_pull_request_becomes_patches_for_the_files_that_the_wheel_has(repository):
    repository.commit(
        "Fix the [tenth] line\n\nIt was wrong.",
        {"src/pkg/a.py": changed(A), "tests/test_a.py": b"def test(): pass\n"},
    )
    repository.commit("Add c", {"src/pkg/c.py": b"c = 1\n", "docs/c.md": b"c\n"})
    repository.commit("Only docs", {"docs/index.md": b"# more\n"})

    found = fit(repository.mails(3), wheel(), source="1234.patch")

    first, second = found
    assert (first.name, second.name) == ("Fix-the-tenth-line.patch", "Add-c.patch")
    assert first.header.startswith(b"From: n <e>\nDate: ")
    assert first.header.endswith(b"\nSubject: Fix the [tenth] line\n\nIt was wrong.\n\n")
    assert first.text == first.header + diff.unified(
        A, changed(A), "pkg/a.py", old_mode=0o100644, new_mode=0o100644
    )
    assert found.notes == (
        "-p2: b/src/pkg/a.py is pkg/a.py in pkg 1.0",
        "Fix-the-tenth-line.patch: left out, pkg 1.0 does not have them: tests/test_a.py",
        "Add-c.patch: left out, pkg 1.0 does not have them: docs/c.md",
        "Only-docs.patch: left out, pkg 1.0 does not have them: docs/index.md",
        "Only-docs.patch: nothing of it is left; not imported",
    )
    assert second.files == {"pkg/c.py": (b"c = 1\n", False)}


@pytest.mark.slow
def test_the_tree_is_what_git_am_makes_of_it(repository, tmp_path):
    repository.commit("one", {"src/pkg/a.py": changed(A)})
    repository.commit(
        "two", {"src/pkg/a.py": changed(changed(A), 30)}, remove=["src/pkg/sub/b.py"]
    )
    repository.run("mv", "src/pkg/a.py", "src/pkg/moved.py")
    repository.commit("three", {"src/pkg/new.py": b"new\n"})
    mails = repository.mails(3)
    other = Repository(tmp_path / "other")
    shifted = b"top\n" + A
    other.commit("release", {"src/pkg/a.py": shifted})
    (tmp_path / "box").write_bytes(mails)
    other.run("am", "-q", str(tmp_path / "box"))
    tree = wheel({**BASE, "src/pkg/a.py": shifted})

    patches = fit(mails, tree)

    files = dict(tree)
    for one in patches:
        files.update(one.files)
    ours = {name: file for name, file in files.items() if file is not None}
    theirs = {
        name.removeprefix("src/"): file
        for name, file in corpus.read(other.folder).items()
        if name.startswith("src/")
    }
    assert ours == theirs
    assert [one.name for one in patches] == ["one.patch", "two.patch", "three.patch"]
    assert "pkg/a.py: Hunk #1 succeeded at 9 (offset 1 line)." in patches[0].notes
    for one in patches:  # each fits exactly, from the bottom up
        header, diffs = diff.parse(one.text, name=one.name)
        assert header == one.header
        assert refitting.landing.land(diffs, tree.get).exact
        tree.update(one.files)


def test_git_show_and_git_log_give_the_same_patches_oldest_first(repository):
    repository.commit("one", {"src/pkg/a.py": changed(A)})
    repository.commit("two\n\nbody", {"src/pkg/a.py": changed(changed(A), 30)})
    log = repository.run("log", "-p", "-2")
    reverse = repository.run("show", "HEAD")

    patches = fit(log, wheel(), source="-")
    tree = {**wheel(), **patches[0].files}
    (shown,) = fit(reverse, tree, source="two.patch")

    assert [one.name for one in patches] == ["one.patch", "two.patch"]
    assert patches.notes[0] == "- has the newest commit first; the oldest becomes the first patch"
    assert patches[1].header.startswith(b"commit ")
    assert patches[1].header.endswith(b"\n    two\n    \n    body\n\n")
    assert (shown.name, shown.files) == ("two.patch", patches[1].files)


def test_git_log_in_reverse_is_taken_as_it_is(tmp_path):
    rows = []
    for at, subject in enumerate(("one", "two")):
        rows.append(
            b"commit %040x\nAuthor: n <e>\nDate:   Tue Dec 1 0%d:00:00 2026 +0000\n\n    %s\n\n"
            % (at, at, subject.encode())
            + diff.unified(b"%d\n" % at, b"%d\n" % (at + 1), "pkg/n.py")
            + b"\n"
        )

    patches = fit(b"".join(rows), {"pkg/n.py": (b"0\n", False)}, source="-")

    assert [one.name for one in patches] == ["one.patch", "two.patch"]
    assert not any("newest" in note for note in patches.notes)


@pytest.mark.parametrize(
    ("path", "strip"),
    [("pkg/a.py", 0), ("a/pkg/a.py", 1), ("./src/pkg/a.py", 2), ("a/python/x/pkg/a.py", 3)],
)
def test_the_number_of_folders_is_found_and_said_if_it_is_not_one(path, strip):
    body = diff.unified(A, changed(A), "x").split(b"\n", 3)[3]
    text = f"--- {path}\n+++ {path}\n".encode() + body

    found = fit(text, wheel())

    (one,) = found
    assert one.files == {"pkg/a.py": (changed(A), False)}
    said = f"-p{strip}: {path} is pkg/a.py in pkg 1.0"
    assert found.notes == (() if strip == 1 else (said,))
    assert b"--- a/pkg/a.py\n" in one.text


def test_names_from_the_root_of_a_machine_are_read_as_gnu_patch_reads_them():
    body = diff.unified(A, changed(A), "x").split(b"\n", 3)[3]
    names = b"--- /opt/lib/site-packages/pkg/a.py.orig\n+++ /opt/lib/site-packages/pkg/a.py\n"

    (one,) = fit(names + body, wheel())

    assert one.files == {"pkg/a.py": (changed(A), False)}
    assert any("began at the root" in note for note in one.notes)


def test_a_tie_of_two_numbers_names_both():
    tree = {"a.py": (A, False), "pkg/a.py": (A, False)}

    with pytest.raises(UsageError) as refused:
        fit(diff.unified(A, changed(A), "pkg/a.py"), tree)

    assert refused.value.what == "x.patch fits with -p1 and with -p2"
    assert "pkg/a.py (-p1) or a.py (-p2)" in refused.value.why
    assert fit(diff.unified(A, changed(A), "pkg/a.py"), tree, strip=2)[0].files.keys() == {"a.py"}


def test_a_patch_for_something_else_is_refused():
    with pytest.raises(UsageError) as refused:
        fit(diff.unified(b"1\n", b"2\n", "other/thing.py"), wheel())

    assert refused.value.what == "no file of x.patch is a file of pkg 1.0"
    assert "b/other/thing.py" in refused.value.why


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"csrc/k.cu": b"int b;\n"}, "csrc/k.cu: it is compiled"),
        ({"src/pkg/fast.pyx": b"new\n"}, "src/pkg/fast.pyx: it is compiled"),
        ({"CMakeLists.txt": b"new\n"}, "CMakeLists.txt: it is compiled"),
        (
            {"setup.py": b"from setuptools import setup\nsetup(ext_modules=[])\n"},
            "setup.py: it changes how the package's extensions are built",
        ),
        ({"src/pkg/late.py": b"two\n"}, "src/pkg/late.py: it lies in the package"),
    ],
)
def test_what_would_be_missed_is_refused_unless_left_out_on_demand(tmp_path, files, why):
    repository = Repository(tmp_path / "r", {**BASE, "src/pkg/late.py": b"one\n"})
    repository.commit("x", {"src/pkg/a.py": changed(A), **files})
    (name,) = files

    with pytest.raises(sifting.CompiledSource) as refused:
        fit(repository.mails(1), wheel())
    found = fit(repository.mails(1), wheel(), leave_out=(name,))

    assert refused.value.why.startswith(why)
    assert f"--leave-out {name}" in refused.value.mend
    assert found[0].files.keys() == {"pkg/a.py"}
    assert f"x.patch: left out on demand: {name}" in found.notes


def test_sources_that_the_wheel_ships_are_patched():
    tree = {**wheel(), "pkg/jit/k.cuh": (b"int a;\n", False)}
    text = diff.unified(b"int a;\n", b"int b;\n", "pkg/jit/k.cuh")
    text += diff.unified(None, b"int c;\n", "pkg/jit/l.cuh")

    (one,) = fit(text, tree)

    assert one.files.keys() == {"pkg/jit/k.cuh", "pkg/jit/l.cuh"}


def test_a_pattern_that_leaves_nothing_out_is_refused():
    with pytest.raises(UsageError, match="--leave-out nothing/"):
        fit(diff.unified(A, changed(A), "pkg/a.py"), wheel(), leave_out=("nothing/*",))


def test_binary_files_links_and_copies_may_be_left_out(repository):
    (repository.folder / "link").symlink_to("setup.py")
    repository.commit(
        "x", {"src/pkg/a.py": changed(A), "docs/x.png": b"\0\1\2" * 99, "docs/copy.md": b"# pkg\n"}
    )

    found = fit(repository.run("format-patch", "--stdout", "--binary", "-C", "-1"), wheel())

    assert found[0].files.keys() == {"pkg/a.py"}
    left = "left out, pkg 1.0 does not have them: docs/copy.md, docs/x.png, link"
    assert f"x.patch: {left}" in found.notes


def test_a_binary_file_of_the_wheel_is_refused(repository):
    repository.commit("y", {"src/pkg/x.bin": b"\0\1\2" * 9})
    tree = wheel({**BASE, "src/pkg/x.bin": b"\0\1\2" * 9})
    repository.commit("x", {"src/pkg/x.bin": b"\0\1\3" * 9})

    with pytest.raises(diff.PatchFormatError):
        fit(repository.mails(1), tree)


def test_carriage_returns_of_the_whole_file_are_left_out_and_said():
    text = b"why\n\n" + diff.unified(A, changed(A), "pkg/a.py")

    found = fit(text.replace(b"\n", b"\r\n"), wheel())

    assert found[0].text == text
    assert found.notes == (foreign.RETURNS,)


def test_lines_between_diffs_that_are_lost_are_counted():
    one = diff.unified(A, changed(A), "pkg/a.py")
    two = diff.unified(b"x = 1\n", b"x = 2\n", "pkg/sub/b.py")
    tree = wheel()

    (whole,) = fit(one + b"and then\n\n" + two, tree)
    (moved,) = fit(one + b"and then\n\n" + two, {**tree, "pkg/a.py": (b"top\n" + A, False)})

    assert b"and then\n" in whole.text
    assert b"and then\n" not in moved.text
    assert "x.patch: 1 lines between its diffs are left out" in moved.notes


def test_carriage_returns_of_a_file_that_has_them_stay():
    crlf = A.replace(b"\n", b"\r\n")
    text = diff.unified(crlf, changed(A).replace(b"\n", b"\r\n"), "pkg/a.py")

    (one,) = fit(text, {"pkg/a.py": (crlf, False)})

    assert (one.text, one.notes) == (text, ())


def test_a_reversed_patch_is_written_the_other_way_round():
    text = b"why\n" + diff.unified(changed(A), A, "pkg/a.py")

    (one,) = fit(text, wheel(), reverse=True)

    assert one.text == b"why\n" + diff.unified(
        A, changed(A), "pkg/a.py", old_mode=0o100644, new_mode=0o100644
    )


def test_a_patch_that_is_in_already_is_never_turned_round():
    text = diff.unified(A, changed(A), "pkg/a.py")

    with pytest.raises(ConflictError) as refused:
        fit(text, {"pkg/a.py": (changed(A), False)})

    assert refused.value.what == "Patch x.patch can be reverse-applied"
    assert "nothing is turned round unasked" in refused.value.why
    assert "patchq import -R x.patch" in refused.value.mend


def test_fuzz_is_offered_when_it_would_help_and_shown_when_it_did():
    text = diff.unified(A, changed(A), "pkg/a.py")
    tree = {"pkg/a.py": (A.replace(b"line 7\n", b"else\n"), False)}

    with pytest.raises(ConflictError) as refused:
        fit(text, tree)
    (one,) = fit(text, tree, fuzz=2)

    assert refused.value.what == "Patch x.patch does not apply to pkg 1.0"
    assert refused.value.why == (
        "pkg/a.py: Hunk #1 FAILED at 8: line 8: expected 'line 7', found 'else'"
    )
    assert refused.value.mend.startswith("patchq import --fuzz 1 x.patch")
    assert one.notes == ("pkg/a.py: Hunk #1 succeeded at 8 with fuzz 1.",)
    assert b" else\n" in one.text


def test_an_ambiguous_hunk_is_a_conflict_that_lists_its_places():
    block = b"".join(b"same %d\n" % at for at in range(7))
    text = diff.unified(b"0\n" * 9 + block, b"0\n" * 9 + block.replace(b"3", b"three"), "pkg/a.py")

    with pytest.raises(ConflictError) as refused:
        fit(text, {"pkg/a.py": (block + b"x\n" + block, False)})

    assert refused.value.why == "pkg/a.py: Hunk #1 FAILED at 10: it fits at the lines 1, 9"
    assert "correct the line number" in refused.value.mend


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"<!DOCTYPE html><html>", "it is a web page"),
        (b"hello\n", "no line of it begins"),
    ],
)
def test_what_is_no_patch_is_refused_with_the_reason(data, why):
    with pytest.raises(UsageError) as refused:
        foreign.read(data, source="x.patch")

    assert why in refused.value.why


def test_the_combined_diff_of_a_merge_is_refused(repository):
    repository.run("checkout", "-q", "-b", "side")
    repository.commit("side", {"src/pkg/sub/b.py": b"x = 2\n"})
    repository.run("checkout", "-q", "-")
    repository.commit("main", {"src/pkg/sub/b.py": b"x = 3\n"})
    with pytest.raises(AssertionError):
        repository.run("merge", "side")
    repository.commit("merged", {"src/pkg/sub/b.py": b"x = 4\n"})

    with pytest.raises(diff.PatchFormatError) as refused:
        foreign.read(repository.run("show"), source="-")

    assert "merge" in refused.value.what


def test_a_plain_diff_on_stdin_needs_a_name_and_several_patches_take_none(repository):
    text = diff.unified(A, changed(A), "pkg/a.py")
    repository.commit("one", {"src/pkg/a.py": changed(A)})
    repository.commit("two", {"src/pkg/a.py": A})

    with pytest.raises(UsageError, match="no name"):
        foreign.read(text, source="-")
    with pytest.raises(UsageError, match="single patch"):
        foreign.read(repository.mails(2), source="-", name="n.patch")
    assert fit(text, wheel(), source="-", name="n.patch")[0].name == "n.patch"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("0001-one.patch", "one.patch"),
        ("down/load/mine.patch", "mine.patch"),
        ("77.patch", "one.patch"),
        ("-", "one.patch"),
        ("v2-0001.patch", "one.patch"),
    ],
)
def test_a_single_mail_is_named_for_its_file_or_its_subject(repository, source, name):
    repository.commit("one", {"src/pkg/a.py": changed(A)})

    assert foreign.read(repository.mails(1), source=source).patches[0].name == name


def test_names_are_gits(repository):
    subjects = ["a" * 80, "fix: [x] ..y//z...", "ünïcode", "v1.2 (final).", "...", "--x--"]
    for number, subject in enumerate(subjects):
        repository.commit(subject, {"src/pkg/a.py": b"%d\n" % number})
    files = repository.run("format-patch", f"-{len(subjects)}").decode().split()

    found = foreign.read(repository.mails(len(subjects)), source="-").patches

    expected = [name[5:] if name[5:] != ".patch" else "0005.patch" for name in files]
    assert [one.name for one in found] == expected


def test_a_header_that_looks_like_a_diff_is_refused_not_cut():
    header = b"diff -u is what made this\n\nwhy\n"

    with pytest.raises(diff.PatchFormatError) as refused:
        fit(header + diff.unified(A, changed(A), "pkg/a.py"), {"pkg/a.py": (b"0\n" + A, False)})

    assert "looks like the beginning of one" in refused.value.what


BITS = [
    *(b"From ", b"--- ", b"+++ ", b"@@ -1,3 +1,4 @@", b"diff --git ", b"\r\n", b"\n", b"\0"),
    *(
        b"=?utf-8?q?",
        b"=?utf-8?b?x",
        b"\\ No newline\n",
        b"GIT binary patch\n",
        b"rename from a\n",
    ),
    *(b"/dev/null", b'"a/\\303"', b"commit abcdef0\nA: b\n", b"multipart/mixed; boundary=X"),
    *(b"--X\n", b"Content-Transfer-Encoding: base64\n", b"..", b"/"),
]


def damaged(seed):
    """Return a mail, a commit or a diff with something wrong in it."""
    rng = random.Random(seed)
    body = diff.unified(A, changed(A), "pkg/a.py")
    coded = b"MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n"
    coded += b"Content-Transfer-Encoding: quoted-printable\n"
    whole = [
        test_mailbox.mail(b"[PATCH 1/2] caf=C3=A9", b"why\n---\n" + body, fields=coded),
        test_mailbox.mail(b"=?utf-8?B?W1BBVENIXSB4?=", b"why\n" + body),
        b"commit 0123456\nAuthor: a\nDate:   Tue Dec 1 00:00:00 2026 +0000\n\n    x\n\n" + body,
        b"Index: x\n" + b"=" * 67 + b"\n" + body,
        b"diff --git a/pkg/o b/pkg/n\nrename from pkg/o\nrename to pkg/n\n" + body,
    ]
    data = bytearray(rng.choice(whole))
    for _ in range(rng.randint(0, 6)):
        at, kind = rng.randrange(len(data) + 1), rng.random()
        if kind < 0.4:
            data[at:at] = rng.choice(BITS)
        elif kind < 0.7:
            del data[at : at + rng.randint(1, 30)]
        elif kind < 0.9 and data:
            data[at - 1] = rng.randrange(256)
        else:
            data += rng.choice(whole)
    return bytes(data)


@pytest.mark.slow
def test_what_is_damaged_is_read_or_refused_and_never_a_bug():
    read = refused = 0
    for seed in range(2000):
        try:
            read += len(fit(damaged(seed), wheel(), fuzz=seed % 3))
        except PatchqError as error:
            refused += bool(error.why)

    assert read > 500
    assert refused > 500
