"""The wheel that is read is the one that pip would install."""

import hashlib
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from patchq.releases import choice, pages
from patchq.releases.index import Session
from patchq.releases.settings import Settings


def offer(*names, **fields):
    return [pages.candidate(name, f"https://index/{name}", **fields) for name in names]


def chosen(candidates, requirement="demo", **environment):
    found = choice.choose(candidates, Requirement(requirement), **environment)
    return None if found is None else [each.filename for each in found.wheels]


@pytest.mark.parametrize(
    ("requirement", "version"),
    [("demo", "1.10"), ("demo<1.10", "1.9"), ("demo==1.9.*", "1.9.1"), ("demo==2.0rc1", "2.0rc1")],
)
def test_the_highest_version_that_the_requirement_allows(requirement, version):
    names = [f"demo-{v}-py3-none-any.whl" for v in ("1.9", "1.10", "1.9.1", "2.0rc1")]
    if requirement == "demo<1.10":
        version = "1.9.1"

    assert chosen(offer(*names), requirement) == [f"demo-{version}-py3-none-any.whl"]


def test_nothing_fits_a_version_that_is_not_there():
    assert chosen(offer("demo-1.0-py3-none-any.whl"), "demo==2") is None


def test_the_wheel_for_the_environments_python_and_platform():
    names = [
        "demo-1.0-cp310-cp310-manylinux_2_17_x86_64.whl",
        "demo-1.0-cp311-cp311-manylinux_2_17_x86_64.whl",
        "demo-1.0-cp311-cp311-manylinux2014_aarch64.whl",
        "demo-1.0-py3-none-any.whl",
        "demo-1.0-cp311-cp311-win_amd64.whl",
        "demo-1.0-cp311-cp311-macosx_11_0_arm64.whl",
    ]

    def one(**environment):
        (name,) = chosen(offer(*names), **environment)
        return name

    assert one(python="3.11", platform="linux_x86_64") == names[1]
    assert one(python="3.11.4", platform="aarch64") == names[2]
    assert one(python="3.13", platform="linux_x86_64") == names[3]
    assert one(python="3.11", platform="win_amd64") == names[4]


def test_where_no_wheel_fits_any_serves_and_it_is_said():
    names = [
        "demo-1.0-cp38-abi3-manylinux_2_31_aarch64.whl",
        "demo-1.0-cp38-abi3-manylinux_2_31_x86_64.whl",
    ]

    found = choice.choose(offer(*names), Requirement("demo"), platform="macosx_11_0_arm64")

    assert found.wheels[0].filename == names[1]
    assert found.notes == (f"no wheel fits this Python and platform; read {names[1]}",)
    assert [each.filename for each in found.others] == [names[0]]


def test_all_builds_of_the_version_highest_first():
    names = [f"demo-1.0-{b}py3-none-any.whl" for b in ("2-", "", "10-")]

    assert chosen(offer(*names)) == [names[2], names[0], names[1]]
    assert [each.release for each in offer(*names)] == ["1.0-2", "1.0", "1.0-10"]


def test_a_wheel_that_needs_another_python_is_passed_over():
    old = offer("demo-1.0-py3-none-any.whl", requires_python=">=3.6")
    new = offer("demo-2.0-py3-none-any.whl", requires_python=">=3.99")
    broken = offer("demo-0.5-py3-none-any.whl", requires_python="what?")

    assert chosen(old + new + broken) == ["demo-1.0-py3-none-any.whl"]
    assert chosen(broken) == ["demo-0.5-py3-none-any.whl"]


def test_a_yanked_wheel_only_for_a_pin():
    both = offer("demo-1.0-py3-none-any.whl") + offer("demo-2.0-py3-none-any.whl", yanked="")

    assert chosen(both) == ["demo-1.0-py3-none-any.whl"]
    assert chosen(both, "demo==2.0") == ["demo-2.0-py3-none-any.whl"]
    assert chosen(both, "demo==2.*") is None


@pytest.mark.slow
def test_pip_takes_the_same_wheel_from_a_folder(wheel, tmp_path):
    for build in ("", "1", "3"):
        wheel({"demo/a.py": build.encode()}, build=build)
    wheel({"demo/a.py": b"abi3"}, tag="cp38-abi3-manylinux_2_17_x86_64")
    wheel({"demo/a.py": b"new"}, version="0.9")
    folder = tmp_path / "wheels"
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-index", "--no-deps"]
    subprocess.run([*command, "-f", folder, "-d", tmp_path / "got", "demo"], check=True)
    (pips,) = (tmp_path / "got").iterdir()

    links = Settings(find_links=(str(folder),))
    with Session(links) as session:
        found, _ = pages.candidates(session, links, "demo")

    ours = choice.choose(found, Requirement("demo")).wheels[0].local
    assert (ours.name, digest(ours)) == (pips.name, digest(pips))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
