"""`patchq forecast`: one word for each patch on each release of an index."""

import json

import pytest

from tests import world as worlds

pytestmark = pytest.mark.slow


@pytest.fixture
def index(world):
    """A folder of wheels: a release where 10 conflicts, one that has all of 30, one like 1.0."""
    links = world.root / "links"
    links.mkdir()
    files = dict(worlds.FILES)
    worlds.wheel(links, files, version="1.1")
    files["demo/data.txt"] += "four\n"
    worlds.wheel(links, files, version="1.2")
    files["demo/shapes.py"] = files["demo/shapes.py"].replace("3 *", "3.14159 *")
    worlds.wheel(links, files, version="2.0")
    worlds.wheel(links, files, version="2.1rc1")
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(links)}


def forecast(world, index, *args):
    return world.run("forecast", "demo", *args, "--queue", world.queue, environ=index)


def test_a_table_says_what_each_patch_would_meet(world, index):
    done = forecast(world, index, ">=1.1")

    assert done.stdout == (
        "     10-pi     20-foot     30-text\n"
        "1.1  exact     exact       exact\n"
        "1.2  exact     exact       upstream\n"
        "2.0  conflict  structural  upstream\n"
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in world.queue.iterdir()) == ["1.0", "post", "queue.toml"]


def test_asked_again_it_says_the_same_and_a_changed_patch_is_judged_anew(world, index):
    first = forecast(world, index, "==1.2")
    kept = sorted((world.root / "cache" / "forecast").iterdir())
    times = [path.stat().st_mtime_ns for path in kept]

    again = forecast(world, index, "==1.2")

    assert again.stdout == first.stdout
    assert [path.stat().st_mtime_ns for path in kept] == times
    text = world.series / "30-text.patch"
    text.write_text(text.read_text().replace("+four", "+vier"))
    assert "upstream" not in forecast(world, index, "==1.2").stdout


def test_why_is_said_on_demand_and_in_the_document(world, index):
    said = forecast(world, index, "==1.2", "-v").stdout
    document = json.loads(forecast(world, index, "==1.2", "--json").stdout)

    assert "\n1.2 (from 1.0)\n30-text.patch: upstream (the merge brings nothing" in said
    (release,) = document["releases"]
    assert (release["release"], release["from"]) == ("1.2", "1.0")
    assert [step["word"] for step in release["steps"]] == ["exact", "exact", "upstream"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ((">=9",), 64, "no release of demo answers to '>=9'"),
        (("nonsense",), 64, "is not a requirement"),
    ],
)
def test_what_cannot_be_asked_is_an_error_in_three_parts(world, index, args, code, said):
    done = forecast(world, index, *args)

    assert done.returncode == code
    assert said in done.stderr
    assert "  mend: " in done.stderr
