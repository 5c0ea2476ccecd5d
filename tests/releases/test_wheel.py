"""What a wheel must be like to be read, and what is read of it."""

import re
import zipfile

import pytest

from patchq.releases import wheel as wheels


def read(path, distribution="demo"):
    with path.open("rb") as file:
        return wheels.read(file, path.name, distribution)


def refusal(path):
    with pytest.raises(wheels.WheelError) as caught:
        read(path)
    return caught.value.why


def test_text_files_are_read_and_binaries_are_not(wheel):
    text = read(wheel())

    assert [(path, runs) for path, _, runs in text.files] == [
        ("demo/__init__.py", False),
        ("demo/deep/core.py", False),
    ]
    assert sorted(text.dist_info) == ["METADATA", "RECORD", "WHEEL"]


@pytest.mark.parametrize(
    ("path", "size", "kept"),
    [
        ("a/b.PY", 10, True),
        ("a/py.typed", 0, True),
        ("a/.gitkeep", 1, True),
        ("a/LICENSE", 4000, True),
        ("a/tool", 1 << 20, False),
        ("a/data.json", 1 << 24, False),
        ("a/_C.abi3.so", 10, False),
        ("a/photo.jpg", 10, False),
    ],
)
def test_what_is_text_is_decided_by_name_and_size(path, size, kept):
    assert wheels.is_text(path, size) is kept


def test_files_of_the_data_folder_are_installed_paths(wheel):
    text = read(
        wheel(
            {
                "demo-1.0.data/purelib/demo/a.py": b"a\n",
                "demo-1.0.data/platlib/demo/b.py": b"b\n",
                "demo-1.0.data/scripts/run.py": b"#!python\n",
                "demo-1.0.data/headers/x.h": b"int x;\n",
            }
        )
    )

    assert [path for path, _, _ in text.files] == ["demo/a.py", "demo/b.py"]


def test_a_vendored_packages_metadata_is_left_out(wheel):
    text = read(wheel({"demo/_vendor/other-1.0.dist-info/METADATA": b"x\n", "demo/a.py": b""}))

    assert [path for path, _, _ in text.files] == ["demo/a.py"]


def test_the_executable_bit_is_that_of_pip(wheel):
    def edit(members):
        members[0][0].external_attr = 0o100755 << 16
        members[1][0].external_attr = 0o120777 << 16
        return members

    text = read(wheel({"demo/run.sh": b"#!/bin/sh\n", "demo/link.py": b"run.sh"}, edit=edit))

    assert [(path, runs) for path, _, runs in text.files] == [
        ("demo/link.py", False),
        ("demo/run.sh", True),
    ]


def test_a_file_that_is_not_what_record_says_is_refused(wheel):
    def edit(members):
        return [
            (m, b"VERSION = 2\n" if m.filename.endswith("__init__.py") else d) for m, d in members
        ]

    reason = refusal(wheel(edit=edit))

    assert reason.startswith("demo/__init__.py has the sha256 ")


def test_a_changed_size_is_refused(wheel):
    assert "has 12 bytes, RECORD says 13" in refusal(
        wheel(record=lambda text: text.replace(",12\n", ",13\n"))
    )


def test_a_file_that_record_does_not_list_is_refused(wheel):
    def record(text):
        return "\n".join(line for line in text.split("\n") if "_C.so" not in line)

    assert refusal(wheel(record=record)) == "RECORD does not list 'demo/_C.so'"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (lambda text: text.replace("sha256", "md5", 1), "sha256 or stronger"),
        (lambda text: "demo/__init__.py,,\n" + text.partition("\n")[2], "no digest"),
        (lambda text: text + text.partition("\n")[0] + "\n", "twice"),
        (lambda text: text + "a,b\n", "expected 3"),
        (lambda text: text.replace("sha256=", "sha256=!", 1), "no valid digest"),
        (lambda text: text + "x" * 200000 + ",,\n", "not CSV"),
    ],
)
def test_a_record_that_proves_nothing_is_refused(wheel, record, reason):
    assert reason in refusal(wheel(record=record))


def test_empty_lines_of_a_record_are_passed_over(wheel):
    assert read(wheel(record=lambda text: "\n" + text + "\n")).files


def test_a_wheel_whose_text_would_fill_the_memory_is_refused(wheel):
    path = wheel({f"demo/m{n}.py": b"" for n in range(200)})
    data = path.read_bytes()
    size = (8 << 20).to_bytes(4, "little")
    path.write_bytes(re.sub(rb"(?s)(PK\x01\x02.{20})....", lambda m: m[1] + size, data))

    assert "more than 536870912 bytes" in refusal(path)


def test_a_stronger_digest_is_taken(wheel):
    import base64
    import hashlib

    digest = base64.urlsafe_b64encode(hashlib.sha512(b"a\n").digest()).rstrip(b"=").decode()

    def record(text):
        return f"demo/a.py,sha512={digest},2\n" + text.partition("\n")[2]

    assert len(read(wheel({"demo/a.py": b"a\n"}, record=record)).files) == 1


def test_a_file_that_only_record_has_is_said(wheel):
    text = read(wheel(record=lambda text: text + "demo/gone.py,sha256=AA,1\n"))

    assert text.notes == ("RECORD lists 1 files that the wheel lacks (first: ['demo/gone.py'])",)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_listed_twice_is_refused(wheel):
    def edit(members):
        return [*members, (zipfile.ZipInfo("demo/__init__.py"), b"evil = 1\n")]

    assert refusal(wheel(edit=edit)) == "member 'demo/__init__.py': it is there twice"


def test_two_members_for_one_installed_path_are_refused(wheel):
    files = {"demo/a.py": b"1\n", "demo-1.0.data/purelib/demo/a.py": b"2\n"}

    assert refusal(wheel(files)) == "'demo/a.py' would be installed twice"


def test_a_file_where_another_needs_a_folder_is_refused(wheel):
    assert "needs a folder there" in refusal(wheel({"demo/a": b"", "demo/a/b.py": b""}))


@pytest.mark.parametrize(
    "path",
    [
        "../evil.py",
        "/etc/evil.py",
        "demo/../../evil.py",
        "demo/.git/config",
        "demo/.GiT /config",
        "demo/.g\u200cit/config",
        "demo/GIT~1/config",
        ".patchq/demo/state.json",
        "demo/a\nb.py",
        "demo\\a.py",
        "demo/.git::$INDEX_ALLOCATION/config",
        "demo-1.0.dist-info/../evil.py",
        "demo-1.0.data/purelib/../evil.py",
    ],
)
def test_an_unsafe_path_is_refused(wheel, path):
    assert "member" in refusal(wheel({path: b"", "demo/a.py": b""}))


def test_a_name_cut_by_a_nul_is_refused(wheel, rezip):
    path = wheel({"demo/a.py": b"", "demo/bXpy": b""})
    rezip(path, b"demo/bXpy", b"demo/b\0py", 9)

    assert "control character" in refusal(path)


def test_a_local_name_that_differs_from_the_directorys_is_refused(wheel, rezip):
    path = wheel()
    rezip(path, b"demo/__init__.py", b"demo/__evil__.py")

    assert "differ" in refusal(path)


def test_an_encrypted_member_is_refused(wheel, rezip):
    path = wheel({"demo/a.py": b""})
    directory = path.read_bytes().index(b"PK\x01\x02")
    data = bytearray(path.read_bytes())
    data[directory + 8] |= 1
    path.write_bytes(data)

    assert "encrypted" in refusal(path)


def test_another_compression_is_refused(wheel):
    def edit(members):
        members[0][0].compress_type = zipfile.ZIP_LZMA
        return members

    assert "neither stored nor deflated" in refusal(wheel(edit=edit))


def test_a_zip64_member_and_a_data_descriptor_are_read(wheel, tmp_path):
    made = wheel()
    streamed = tmp_path / made.name

    class Pipe:
        """A file that cannot seek, so that zipfile writes data descriptors."""

        def __init__(self, file):
            self.write, self.flush = file.write, file.flush

    with (
        streamed.open("wb") as file,
        zipfile.ZipFile(made) as source,
        zipfile.ZipFile(Pipe(file), "w") as target,
    ):
        for name in source.namelist():
            with target.open(name, "w", force_zip64=True) as member:
                member.write(source.read(name))

    assert b"PK\x07\x08" in streamed.read_bytes()
    assert read(streamed).files == read(made).files


@pytest.mark.parametrize("data", [b"", b"not a zip", b"PK\x05\x06"])
def test_what_is_no_zip_is_refused(tmp_path, data):
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(data)

    assert refusal(path)


def test_a_truncated_wheel_is_refused(wheel):
    path = wheel()
    path.write_bytes(path.read_bytes()[:-100])

    assert refusal(path)


def test_a_damaged_member_is_refused(wheel, rezip):
    path = wheel(
        {"demo/a.py": b"x = 1\n"},
        edit=lambda members: [(zipfile.ZipInfo(m.filename), d) for m, d in members],
    )
    rezip(path, b"x = 1\n", b"x = 2\n")

    assert "CRC" in refusal(path)


@pytest.mark.parametrize("name", ["other", "demo"])
def test_a_wheel_of_another_distribution_is_refused(wheel, name):
    path = wheel(name="other") if name == "other" else wheel({"more-1.dist-info/RECORD": b""})

    assert "expected one dist-info, of demo 1" in refusal(path)


def test_a_wheel_of_another_version_than_its_name_says_is_refused(wheel):
    path = wheel()

    assert "of demo 2" in refusal(path.rename(path.with_name("demo-2.0-py3-none-any.whl")))


def test_a_wheel_without_record_is_refused(wheel):
    path = wheel(edit=lambda members: [m for m in members if "RECORD" not in m[0].filename])

    assert refusal(path) == "it has no RECORD"
