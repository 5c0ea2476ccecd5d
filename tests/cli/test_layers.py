"""A tree in a container's own layer: real mounts, in a namespace of each agent's own."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def container(world):
    """A host whose agent has the world's tree as an image's, and a layer of its own on it."""
    for name in ("up", "work"):
        (world.root / name).mkdir()
    layers = f"lowerdir={world.site},upperdir={world.root}/up,workdir={world.root}/work"
    script = world.root / "container"
    script.write_text(
        "#!/bin/sh\nexec unshare -m sh -c '"
        f'mount -t overlay -o {layers} none {world.site} && eval "$1"\' sh "$1"\n'
    )
    script.chmod(0o755)
    return ["-H", f"command:{script}"]


def test_push_and_audit_say_what_goes_with_its_container(world, container):
    before = json.loads(world.here("audit", *container, "--json").stdout)["rows"]
    pushed = world.here("push", "-a", *container)
    after = json.loads(world.here("audit", *container, "--json").stdout)["rows"]
    popped = json.loads(world.here("pop", "-a", *container, "--json").stdout)

    note = "ephemeral: the tree is in a container's own layer, and goes with the container"
    assert note in pushed.stderr.splitlines()
    assert note in popped["notes"]
    assert popped["ephemeral"] is True
    assert [row["ephemeral"] for row in before + after] == [True, True]
    assert not before[0]["why"].endswith("; ephemeral")
    assert after[0]["why"].endswith("; ephemeral")


def test_a_tree_on_a_disk_is_nothing_to_speak_of(world):
    done = world.json("push", "-a")

    assert done["ephemeral"] is False
    assert done["notes"] == []
