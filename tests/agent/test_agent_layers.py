"""Which trees go with their container: real mounts, in a mount namespace of their own."""

import pytest

from tests.agent import agent_lab, process_lab

OVERLAY = "mount -t overlay -o lowerdir={low},upperdir={up},workdir={work} none {there}"


@pytest.fixture
def places(tmp_path):
    """A tree in an image's layer, and folders for what is above it."""
    found = {name: tmp_path / name for name in ("low", "up", "work", "there", "volume")}
    for folder in found.values():
        folder.mkdir()
    for base in (found["low"], found["volume"]):
        agent_lab.make_site(base / "site" if base.name == "low" else base)
    return found


def ephemeral(places, *mounts):
    """Return what an agent says of the tree, within a namespace that has these mounts."""
    line = " && ".join([*(mount.format(**places) for mount in mounts), 'exec "$@"'])
    within = ["unshare", "-m", "sh", "-c", line, "sh"]
    return process_lab.asked(places["there"] / "site", within)["ephemeral"]


def test_a_containers_own_layer_is_ephemeral(places):
    assert ephemeral(places, OVERLAY)


def test_a_volume_in_a_container_is_not(places):
    assert not ephemeral(places, OVERLAY, "mount --bind {volume} {there}/site")


def test_a_bind_mount_of_a_containers_own_layer_is(places):
    bind = "mount --bind {there}/site {volume} && mount --bind {volume} {there}/site"

    assert ephemeral(places, OVERLAY, bind)


def test_layers_that_are_all_read_only_are_not(places):
    low = places["volume"].parent / "low2"
    low.mkdir()
    read_only = f"mount -t overlay -o lowerdir={{low}}:{low} none {{there}}"

    assert not ephemeral(places, read_only)


def test_a_tree_on_a_disk_is_not(places):
    assert not ephemeral(places, "mount --bind {low} {there}")
