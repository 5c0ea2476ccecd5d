"""What a hostile wheel may cost: nothing much, and always an error that can be mended."""

import random
import re
import subprocess
import sys
import tracemalloc
import zipfile
import zlib

import pytest

from patchq.errors import PatchqError
from patchq.releases import ranges
from patchq.releases import wheel as wheels
from patchq.releases.fetch import fetch
from patchq.releases.index import Session
from patchq.releases.settings import Settings

END = b"PK\x05\x06"


def read(path):
    with path.open("rb") as file:
        return wheels.read(file, path.name, "demo")


def refusal(path):
    with pytest.raises(wheels.WheelError) as caught:
        read(path)
    assert caught.value.mend
    return caught.value.why


def announce(path, size, *, name=b"", packed=None):
    """Change the size that the directory announces of each member called so."""
    sizes = (b"" if packed is None else packed.to_bytes(4, "little"), size.to_bytes(4, "little"))

    def change(found):
        return found[1] + (sizes[0] or found[2]) + sizes[1] + found[4]

    entry = rb"(?s)(PK\x01\x02.{16})(.{4})(.{4})(.{18}" + re.escape(name) + rb")"
    path.write_bytes(re.sub(entry, change, path.read_bytes()))


@pytest.mark.parametrize(
    "path", ["demo/" + "d/" * 99 + "x.py", "demo/" + "d/" * 2500 + "x.py", "d" * 1001 + ".py"]
)
def test_a_path_without_end_is_refused(wheel, path, tmp_path):
    made = wheel({path: b""})

    with pytest.raises(wheels.WheelError) as caught:
        fetch(str(made), cache=tmp_path / "cache", settings=Settings())

    assert "its path has more than 100 parts or 1000 characters" in caught.value.why
    assert len(caught.value.why) < 400


def test_a_deep_path_is_taken(wheel, tmp_path):
    made = wheel({"demo/" + "d/" * 98 + "x.py": b""})

    assert fetch(str(made), cache=tmp_path / "cache", settings=Settings()).files == 1


@pytest.mark.parametrize("field", [12, 16], ids=["its length", "its offset"])
@pytest.mark.parametrize("value", [0, 1, 77, 1 << 20, (1 << 31) - 1, 0xFFFFFFFE])
def test_a_directory_that_is_elsewhere_is_refused(wheel, field, value):
    path = wheel()
    data = bytearray(path.read_bytes())
    at = data.rindex(END) + field
    data[at : at + 4] = value.to_bytes(4, "little")
    path.write_bytes(data)

    assert refusal(path)


def test_a_member_that_is_elsewhere_is_refused(wheel, site):
    path = wheel()
    data = path.read_bytes()
    for offset in (len(data) - 30, len(data) + 9, 0x7FFFFFFF):
        entry = rb"(?s)(PK\x01\x02.{38}).{4}(demo/__init__)"
        moved = re.sub(entry, lambda f, at=offset: f[1] + at.to_bytes(4, "little") + f[2], data)
        path.write_bytes(moved)
        assert refusal(path)
        site.offer("/moved.whl", moved)
        with Session(Settings(retries=0)) as session:
            far = ranges.RemoteFile(session, lambda: f"{site.url}/moved.whl")
            with pytest.raises(wheels.WheelError):
                wheels.read(far, path.name, "demo")


def peak_of_refusal(path):
    tracemalloc.start()
    try:
        return refusal(path), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo/__init__.py", "demo-1.0.dist-info/RECORD"])
def test_a_member_gives_no_more_than_it_announces(wheel, name):
    def edit(members):
        return [(m, bytes(1 << 28) if m.filename == name else data) for m, data in members]

    path = wheel(edit=edit)
    announce(path, 600_000, name=name.encode())

    reason, peak = peak_of_refusal(path)

    assert "CRC" in reason
    assert peak < 5 << 20


def test_a_record_without_end_is_refused(wheel):
    path = wheel()
    announce(path, 600_000_000, name=b"demo-1.0.dist-info/RECORD")

    assert refusal(path) == "its RECORD would be more than 8388608 bytes"


def test_a_bomb_of_many_small_files_is_refused_before_it_is_unpacked(wheel):
    path = wheel({f"demo/m{n}.py": b"\0" * 9 for n in range(50)})
    announce(path, 8 << 20, name=b"demo/m", packed=8 << 10)

    reason, peak = peak_of_refusal(path)

    assert re.fullmatch(r"it is a zip bomb: \d+ bytes unpack to 4194\d+", reason)
    assert peak < 1 << 20


def test_files_of_the_dist_info_count_too(wheel):
    path = wheel({f"demo-1.0.dist-info/licenses/{n}": b"x" for n in range(100)})
    announce(path, 8 << 20, name=b"demo-1.0.dist-info/licenses/")

    assert "more than 536870912 bytes" in refusal(path)


def test_a_member_that_is_packed_to_more_than_it_was_is_refused(wheel):
    path = wheel()
    announce(path, 12, name=b"demo/__init__.py", packed=1 << 30)

    assert "1073741824 bytes cannot be 12 packed ones" in refusal(path)


def test_text_that_packs_well_is_taken(wheel):
    path = wheel({"demo/zeros.csv": b"0,0,0,0\n" * 1_000_000})

    assert len(read(path).files[0][1]) == 8_000_000


@pytest.mark.slow
def test_a_wheel_of_many_files_is_read(wheel):
    path = wheel({f"demo/f{n}.py": b"" for n in range(8000)})

    assert len(read(path).files) == 8000


def mutated(data, chance):
    """Return the bytes with some damage; the directory and its numbers are hit most."""
    data = bytearray(data)
    directory = data.index(b"PK\x01\x02")
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(directory if chance.random() < 0.7 else 0, len(data))
        size = chance.choice((1, 1, 2, 4))
        data[at : at + size] = chance.choice(
            (b"\0" * size, b"\xff" * size, chance.randbytes(size), b"")
        )
    if chance.random() < 0.1:
        del data[chance.randrange(1, len(data)) :]
    return bytes(data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(5))
def test_any_damaged_wheel_is_read_or_refused(wheel, seed):
    chance, path = random.Random(seed), wheel({"demo/a.py": b"a = 1\n", "demo/b.so": b"\0" * 50})
    data = path.read_bytes()
    before, taken, told = read(path), 0, []
    for _ in range(200):
        path.write_bytes(mutated(data, chance))
        try:
            text = read(path)
        except PatchqError as refused:
            told.append((refused.what, refused.why, refused.mend))
        else:
            taken += 1
            assert {p: d for p, d, _ in text.files}.items() <= {
                p: d for p, d, _ in before.files
            }.items()
    assert 0 < taken < 200
    assert all(map(all, told))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_damaged_wheel_on_a_server_is_read_or_refused(wheel, site):
    chance, path = random.Random(3), wheel({"demo/a.py": b"a = 1\n", "demo/b.so": b"\0" * 50})
    data = path.read_bytes()
    with Session(Settings(timeout=5.0, retries=0)) as session:
        for number in range(30):
            site.offer(f"/{number}.whl", mutated(data, chance))
            try:
                url = f"{site.url}/{number}.whl"
                with ranges.RemoteFile(session, lambda url=url: url) as file:
                    wheels.read(file, path.name, "demo")
            except (PatchqError, ranges.ChangedError):
                continue


@pytest.mark.slow
def test_the_verb_says_a_bomb_in_three_parts_and_leaves_nothing(wheel, tmp_path):
    data = zlib.compress(b"")
    path = wheel({f"demo/m{n}.py": data for n in range(200)})
    announce(path, 8 << 20, name=b"demo/m", packed=8 << 10)
    cache = tmp_path / "cache"

    done = subprocess.run(
        [sys.executable, "-m", "patchq", "fetch", str(path)],
        capture_output=True,
        text=True,
        env={"PATCHQ_CACHE": str(cache), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )

    assert done.returncode == 1
    assert "would be more than 536870912 bytes" in done.stderr
    assert "mend: get the wheel" in done.stderr
    assert not list(cache.rglob("*.git"))


def test_a_wheel_whose_end_is_far_behind_its_zip_is_refused(tmp_path):
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo/a.py", b"")
    path.write_bytes(path.read_bytes() + bytes(70_000))

    assert refusal(path)


def test_a_member_without_a_name_is_refused(wheel, rezip):
    path = wheel({"demo/a.py": b"", "QQ": b""})
    rezip(path, b"QQ", b"\0Q", 2)

    assert "control character" in refusal(path)
