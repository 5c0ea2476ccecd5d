"""The verbs about queues: `queues -v` says what a queue supports, and why not the rest."""

import json
import shutil

import pytest

from tests import world as worlds

pytestmark = pytest.mark.slow

MORE_DEMO = """
[patches.20-foot]
for = "<1.1"
"""


@pytest.fixture
def queue(world):
    """The world's queue, with a second series that lacks the last two patches."""
    (world.queue / "queue.toml").write_text((world.queue / "queue.toml").read_text() + MORE_DEMO)
    shutil.copytree(world.series, world.queue / "1.1")
    (world.queue / "1.1" / "series").write_text("10-pi.patch\n")
    return world.queue


def own(done) -> list[str]:
    """Return the lines about queue q, without its head."""
    lines = done.stdout.splitlines()
    end = next(at for at, line in enumerate(lines) if line.startswith("kimi"))
    return [line.strip() for line in lines[3:end]]


def test_each_patch_has_its_releases_and_the_reason_for_the_others(world, queue):
    done = world.run("queues", "-v")

    assert done.returncode == 0, done.stderr
    assert own(done)[:3] == [
        "10-pi: every release",
        "20-foot: 1.0; for <1.1 (queue.toml)",
        "30-text: 1.0; not in the series of 1.1",
    ]


def test_a_fetched_release_tells_whether_upstream_has_it(world, queue):
    pi = "from math import pi\n\n\nclass Circle:\n    def area(self):\n        "
    for version, text in (
        ("1.2", f"{pi}return 0\n"),
        ("1.3", f"{pi}return pi * self.radius**2 * 1\n"),
    ):
        files = {"demo/__init__.py": "", "demo/shapes.py": text}
        wheel = worlds.wheel(world.root, files, version=version)
        assert world.run("fetch", wheel).returncode == 0

    done = world.run("queues", "-v")
    document = json.loads(world.run("queues", "-v", "--json").stdout)

    assert own(done)[3:] == [
        "1.2: no series, and not upstream",
        "1.3: no series is needed, upstream has it",
        "10-pi: upstream since 1.3",
    ]
    (mine,) = (one for one in document["queues"] if one["name"] == "q")
    assert mine["patches"][1] == {
        "patch": "20-foot",
        "releases": ["1.0"],
        "for": "<1.1",
        "missing": [],
    }
    assert mine["elsewhere"] == [
        {"release": "1.2", "needless": False, "patches": {"10-pi": None}},
        {
            "release": "1.3",
            "needless": True,
            "patches": {"10-pi": {"since": "1.3", "rewritten": None}},
        },
    ]


def test_a_release_that_another_platform_has_otherwise_is_judged_by_its_version(world, queue):
    pi = "from math import pi\n\n\nclass Circle:\n    def area(self):\n        "
    (world.root / "other").mkdir()
    files = {"demo/shapes.py": f"{pi}return pi * self.radius**2 * 1\n"}
    first = worlds.wheel(world.root, files, version="1.3")
    second = worlds.wheel(world.root / "other", {"demo/shapes.py": ""}, version="1.3")
    second = second.rename(world.root / "other" / "demo-1.3-cp311-none-any.whl")
    for wheel in (first, second):
        assert world.run("fetch", wheel).returncode == 0

    done = world.run("queues", "-v")

    assert done.returncode == 0, done.stderr
    assert "1.3: no series is needed, upstream has it" in own(done)
    assert any(line.startswith("1.3-cp311-none-any: no series") for line in own(done))
