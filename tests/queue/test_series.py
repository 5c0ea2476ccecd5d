import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.errors import PatchqError
from patchq.model import UnsafePath
from patchq.queue import series

LINES = [b"# note\n", b"\n", b" \t\n", b"a.patch\n", b"b.patch -p0 # why\n", b"c.patch -R\r\n"]
LINES += [
    b"  d.diff\t-p2  -R#x\n",
    b"sub/caf\xe9.patch",
    b"e#f.patch # x # y\n",
    b"\xff",
    b"\x0c\n",
]


def entries(data):
    return [(e.name, e.strip, e.reverse, e.comment) for e in series.parse(data).entries]


@given(st.lists(st.sampled_from(LINES)).map(b"".join) | st.binary())
def test_what_is_read_is_written_back_byte_for_byte(data):
    try:
        found = series.parse(data)
    except PatchqError:
        return

    assert found.to_bytes() == data


def test_names_options_and_comments_are_read():
    data = b"# all\na.patch\n\tb.patch -p0 -R # why # so\nc#d.patch\t-p1\t# \n"
    data += b"sub/caf\xe9.patch -R\r\n"

    assert entries(data) == [
        ("a.patch", 1, False, ""),
        ("b.patch", 0, True, "why # so"),
        ("c#d.patch", 1, False, ""),
        ("sub/caf\udce9.patch", 1, True, ""),
    ]
    assert [entry.options for entry in series.parse(data).entries] == ["", "-p0 -R", "", "-R"]
    assert [entry.line for entry in series.parse(data).entries] == [2, 3, 4, 5]


@pytest.mark.slow
def test_quilt_reads_the_same_names_in_the_same_order(tmp_path):
    data = b"#c\n a.patch -p0\t# x\n\nb.patch\t-R # y\n \t\nsub/c#d.patch #e\nlast.patch"
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "series").write_bytes(data)
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "QUILT_PATCHES": "patches"}

    theirs = subprocess.run(
        ["quilt", "--quiltrc", "-", "series"], cwd=tmp_path, env=environ, capture_output=True
    )

    names = theirs.stdout.decode().replace("patches/", "").split()
    assert names == [entry.name for entry in series.parse(data).entries]
    assert len(names) == 4


@pytest.mark.slow
def test_quilt_gives_patch_the_same_options(tmp_path):
    data = b"a.patch\nb.patch -p0 -R # c -p3\nc.patch -p2\n"
    script = '. /usr/share/quilt/scripts/patchfns; SERIES=series; for p; do patch_args "$p"; done'
    (tmp_path / "series").write_bytes(data)

    theirs = subprocess.run(
        ["bash", "-c", script, "x", "a.patch", "b.patch", "c.patch"],
        cwd=tmp_path,
        capture_output=True,
    )

    words = [
        word for entry in series.parse(data).entries for word in (entry.options.split() or ["-p1"])
    ]
    assert theirs.stdout.decode().split() == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"a.patch\n#\na.patch -p0\n", "series:3: a.patch is listed twice"),
        (b"  # x\n", "quilt would look for a patch named '#'"),
        (b"a.patch -p\n", "'-p' is unknown"),
        (b"a.patch -pab\n", "'-pab' is unknown"),
        (b"a.patch -p0 -p1\n", "given twice"),
        (b"a.patch -R -R\n", "given twice"),
        (b"a.patch -p123456\n", "unknown"),
        (b"a.patch why\n", "'why' is unknown"),
        (b"a.patch.gz\n", "is compressed"),
    ],
)
def test_a_line_that_says_nothing_to_quilt_is_refused_with_its_number(line, words):
    with pytest.raises(series.SeriesError) as caught:
        series.parse(line)

    assert words in caught.value.what
    assert caught.value.what.startswith("series:")


@pytest.mark.parametrize(
    "name", [b"../a.patch", b"/a.patch", b"a/../b.patch", b".git/a.patch", b"a\0.patch", b"a\\b"]
)
def test_a_patch_outside_of_the_folder_is_refused(name):
    with pytest.raises(UnsafePath):
        series.parse(name + b"\n")
