"""R15 on fetched releases: upstream since, rewritten in; judged once."""

import json

import pytest

from patchq.engine import sketch
from patchq.releases.since import since
from patchq.releases.store import Store
from tests import world as worlds

PI = worlds.FILES["demo/shapes.py"].replace("from .units", "from math import pi\n\nfrom .units")
PI = PI.replace("3 * self", "pi * self") + "# in upstream's words\n"
MOVED = PI.replace("from math import pi\n\n", "import math\n").replace("pi *", "math.pi *")


@pytest.fixture
def newer(world):
    """A function that fetches a release with another `shapes.py`, and lays it out."""

    def make(version: str, shapes: str, into: bool = False):
        files = {**worlds.FILES, "demo/shapes.py": shapes}
        archive = worlds.wheel(world.root, files, version=version)
        site = world.root / f"site-{version}"
        done = world.run("fetch", archive, *(["--into", site] if into else []))
        assert done.returncode == 0, done.stderr
        return site

    return make


def asked(world, release: str, **more):
    text = worlds.SKETCHES["10-pi"].encode()
    with Store("demo", world.root / "cache" / "releases") as store:
        parsed = sketch.load(text, name="post/10-pi.pyi")
        return since(parsed, text, release, store, world.root / "cache", **more)


def test_the_first_release_that_has_it_counts(world, newer):
    newer("1.1", PI)
    newer("1.2", PI)
    newer("1.10", MOVED)

    assert asked(world, "1.0") is None
    assert str(asked(world, "1.1")) == "upstream since 1.1"
    assert str(asked(world, "1.2")) == "upstream since 1.1"
    assert str(asked(world, "1.10")) == "upstream since 1.1, rewritten in 1.10"
    assert str(asked(world, "1.2")) == "upstream since 1.1"  # as it was kept


def test_a_release_that_was_not_fetched_is_read_where_it_is(world):
    assert asked(world, "1.1") is None
    assert str(asked(world, "1.1", live={"demo/shapes.py": PI.encode()}.get)) == (
        "upstream since 1.1"
    )


def check(world, site, *more: str):
    return world.run("check", "--target", site, "--queue", world.queue, *more)


@pytest.mark.slow
def test_check_says_since_when_a_release_without_series_has_it(world, newer):
    site = newer("1.1", PI, into=True)

    done = check(world, site)

    assert done.stdout.startswith("10-pi holds (2 of 2 claims), upstream since 1.1\n20-foot ")
    assert done.returncode == 1


@pytest.mark.slow
def test_check_takes_no_rewritten_release_for_a_failure(world, newer):
    newer("1.1", PI)
    site = newer("1.2", MOVED, into=True)

    done = check(world, site, "10-pi")
    document = json.loads(check(world, site, "10-pi", "--json").stdout)

    assert done.stdout == "10-pi rewritten (0 of 2 claims), upstream since 1.1, rewritten in 1.2\n"
    assert done.returncode == document["exit_code"] == 0
    assert document["patches"][0]["upstream"] == {"since": "1.1", "rewritten": "1.2"}


@pytest.mark.slow
def test_check_names_what_it_does_not_ask(world):
    path = world.queue / "post" / "10-pi.pyi"
    path.write_text(path.read_text() + "\n    # when <1\n    def round(self): ...\n")

    done = check(world, world.site, "10-pi")

    assert (
        "    not asked of 1.0: `def round(self): ...` in Circle (line 10, when <1)\n"
        in done.stdout
    )
