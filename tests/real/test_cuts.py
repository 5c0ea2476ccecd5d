"""Links that are cut around a commit: no host is ever said to be what it is not."""

import hashlib
import json
import os

import pytest

from tests import netns_lab
from tests.netns_lab import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make network namespaces"),
]
HEALED = ("before", "during", "after")
DEAD = ("during-dead", "after-dead")


@pytest.fixture
def net(world):
    """Hosts named for when their links are cut.

    "before" is cut while the host is asked what it has, "during" between two renames, "after"
    when all is done and the answer is not sent; "brief" as "during", and healed at once. The
    others are healed when patchq has lost them, "-dead" are not. "unplugged" is cut from the
    beginning, and everything on "frozen" stops between two renames.
    """
    names = ["well", "brief", "unplugged", "frozen", *HEALED, *DEAD]
    with netns_lab.net(names, world) as found:
        yield found


def test_every_host_is_said_to_be_what_it_is_however_its_link_is_cut(net):
    # One long story: patchq looks for the lost ones for a minute.
    nodes = net.nodes
    for node in nodes.values():
        _wait_where(node)
    nodes["unplugged"].cut()

    with net.start("push", "-a", "--json") as process:
        _break_links(net, process)
        for name in HEALED:
            until(lambda node=nodes[name]: not net.linked(process, node), process)
            nodes[name].heal()
        out, _ = process.communicate()
    files = {name: _files(node) for name, node in nodes.items()}
    document = json.loads(out)
    errors = {one["host"]: one["error"] for one in document["hosts"] if "error" in one}

    assert _outcomes(document) == {
        "well": "done",
        "brief": "done",
        "unplugged": "unreachable",
        "frozen": "unknown",
        "before": "failed",
        "during": "done",
        "after": "done",
        "during-dead": "unknown",
        "after-dead": "unknown",
    }
    assert process.returncode == document["exit_code"] == 4
    assert "had not been asked to change anything" in errors["before"]["what"]
    assert [errors[name]["mend"] for name in DEAD] == [f"patchq status -H {n}" for n in DEAD]
    # A commit goes on to its end behind a cut link; what is frozen cannot.
    assert [name for name in nodes if files[name] == "old"] == ["unplugged", "before"]
    assert [name for name in nodes if files[name] == "mixed"] == ["frozen"]

    for node in nodes.values():
        node.heal()
        node.runs()
        node.go_on()
    until(lambda: not any((node.state / "journal.go").exists() for node in nodes.values()))
    # A link that was down has its neighbours to find first.
    until(lambda: "unreachable" not in net.run("applied", "--json").stdout)
    again = net.run("push", "-a", "--json")

    missing = dict.fromkeys(("unplugged", "before"), "done")
    assert _outcomes(json.loads(again.stdout)) == dict.fromkeys(nodes, "nothing to do") | missing
    assert again.returncode == 0
    assert not any(node.agents for node in nodes.values())


def _wait_where(node):
    """Let the host's agent wait where its link shall be cut."""
    if node.name == "before":
        node.waits("demo/shapes.py", "openat", "enter")
    elif node.name.startswith("after"):
        node.waits(".patchq/demo/journal.go", "unlink", "exit")
    elif node.name not in ("well", "unplugged"):
        node.waits(".patchq/demo/stage/1.new", "rename", "enter")


def _break_links(net, process):
    """Cut each link, and freeze a host, once its agent is where it waits."""
    todo = [net.nodes[name] for name in ("brief", "frozen", *HEALED, *DEAD)]

    def broken():
        for node in [node for node in todo if node.waiting]:
            todo.remove(node)
            if node.name == "frozen":
                node.stop(listener=False)
                continue
            node.cut()
            if node.name == "brief":
                node.heal()
        return not todo

    until(broken, process)


def _files(node):
    """Return whether a host's files are "old", "new" or "mixed"."""
    shapes, data = ((node.site / "demo" / name).read_text() for name in ("shapes.py", "data.txt"))
    marks = {(node.site / "demo/more.py").exists(), "foot" in shapes, "four" in data}
    return "mixed" if len(marks) > 1 else "new" if True in marks else "old"


def _outcomes(document):
    return {one["host"]: one["outcome"] for one in document["hosts"]}


@pytest.fixture
def large(world):
    """A world whose push is large, and does not compress to little."""
    lines = [hashlib.sha512(b"%d" % number).hexdigest() for number in range(2000)]
    text = "".join(f"+{line}\n" for line in lines)
    patch = f"--- /dev/null\n+++ b/demo/large.txt\n@@ -0,0 +1,{len(lines)} @@\n{text}"
    world.write({"10-large.patch": f"Description: Large\n\n{patch}"}, {})
    done = world.run("lint", "--queue", world.queue, "--write")
    assert (world.series / "series.lock").is_file(), done.stderr
    return world


def test_link_cut_while_the_commit_travels_is_no_change(large):
    with netns_lab.net(["gpu1"], large) as net:
        node = net.nodes["gpu1"]
        node.slow("256kbit")
        with net.start("push", "-a") as process:
            until(lambda: node.received > 150_000, process)
            node.cut()
            until(lambda: not net.linked(process, node), process)
            there = node.state.exists()
            node.slow("100mbit")
            node.heal()
            _, err = process.communicate()

        assert not there
        assert "nothing was changed" in err
        assert process.returncode == 4
        assert net.run("push", "-a").returncode == 0


def test_slow_link_carries_a_large_commit(large):
    with netns_lab.net(["gpu1"], large) as net:
        net.nodes["gpu1"].slow("256kbit")

        done = net.run("push", "-a")

    assert done.returncode == 0, done.stderr
