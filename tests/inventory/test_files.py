"""Where inventories are found, and what stands in the way of reading one."""

import os

import pytest

from patchq.errors import UsageError
from patchq.inventory import files


@pytest.fixture
def load(tmp_path):
    """Load what is in sight of ``work/deep``, with a user's folder ``config``."""
    (tmp_path / "work/deep").mkdir(parents=True)
    (tmp_path / "config").mkdir()

    def load(*named, cwd="work/deep", **environ):
        environ = {"PATH": "/usr/bin:/bin", **environ}
        found = files.load(tmp_path / cwd, environ, tmp_path / "config", named)
        return [os.path.relpath(one.file, tmp_path) for one in found.each], found

    return load


def write(path, host):
    path.write_text(f"[hosts.{host}]\n")
    return path


def test_the_nearest_upwards_comes_first_then_the_named_then_the_users(load, tmp_path):
    write(tmp_path / "hosts.toml", "far")
    write(tmp_path / "work/hosts.toml", "near")
    one, two = write(tmp_path / "a.toml", "a"), write(tmp_path / "b.toml", "b")
    write(tmp_path / "config/hosts.toml", "mine")

    names, found = load(PATCHQ_HOSTS=f"{one}{os.pathsep}{two}{os.pathsep}")

    assert names == ["work/hosts.toml", "a.toml", "b.toml", "config/hosts.toml"]
    assert found.hosts == ("near", "a", "b", "mine")


def test_a_file_counts_once(load, tmp_path):
    path = write(tmp_path / "work/hosts.toml", "near")

    assert load(PATCHQ_HOSTS=str(path))[0] == ["work/hosts.toml"]


def test_nothing_in_sight_is_nothing(load):
    assert load()[0] == []


def test_what_is_named_stands_for_all_in_sight(load, tmp_path):
    write(tmp_path / "work/hosts.toml", "near")
    write(tmp_path / "work/deep/other.toml", "other")

    assert load("other.toml")[0] == ["work/deep/other.toml"]


@pytest.mark.parametrize(
    ("named", "environ", "text"),
    [
        (("flet.toml",), {}, ""),
        ((), {"PATCHQ_HOSTS": "flet.toml"}, ""),
        ((), {}, 'ansible = ["work/deep/flet.toml"]\n'),
    ],
)
def test_a_named_file_that_is_not_there_names_the_nearest(load, tmp_path, named, environ, text):
    write(tmp_path / "work/deep/fleet.toml", "a")
    (tmp_path / "hosts.toml").write_text(text)

    with pytest.raises(UsageError, match=r"there is no inventory .*flet\.toml") as caught:
        load(*named, **environ)

    assert "fleet.toml" in caught.value.mend


@pytest.mark.parametrize("text", [b"[hosts.a\n", b"x = '\xff'\n", b"[" * 5000])
def test_what_is_no_toml_is_an_error_with_the_file(load, tmp_path, text):
    (tmp_path / "hosts.toml").write_bytes(text)

    with pytest.raises(UsageError, match=r"hosts\.toml cannot be read") as caught:
        load()

    assert caught.value.why


def test_a_file_that_anybody_can_write_is_not_taken_unless_it_is_named(load, tmp_path):
    path = write(tmp_path / "work/hosts.toml", "a")
    path.chmod(0o666)

    with pytest.raises(UsageError, match="anybody can write it") as caught:
        load()

    assert caught.value.mend.startswith(f"PATCHQ_HOSTS={path}")
    (tmp_path / "work/deep/x").mkdir()
    path.rename(tmp_path / "named.toml")
    assert load(PATCHQ_HOSTS=str(tmp_path / "named.toml"))[0] == ["named.toml"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_is_not_taken(load, tmp_path):
    path = write(tmp_path / "work/hosts.toml", "a")
    os.chown(path, 1, -1)

    with pytest.raises(UsageError, match="another user owns it"):
        load()


def test_an_inventory_of_ansibles_needs_ansible(load, tmp_path):
    (tmp_path / "inventory.ini").write_text("a\n")
    (tmp_path / "hosts.toml").write_text('ansible = ["inventory.ini"]\n')

    with pytest.raises(UsageError, match="Ansible is not here") as caught:
        load(PATH=str(tmp_path))

    assert "ansible-inventory reads it" in caught.value.why
    assert "pip install ansible-core" in caught.value.mend


@pytest.mark.parametrize(
    ("script", "why"),
    [("echo broken >&2; exit 3", "broken"), ("exit 4", "ended with 4"), ("echo hm", "no JSON")],
)
def test_what_ansible_says_of_its_failure_is_told(load, tmp_path, script, why):
    program = tmp_path / "ansible-inventory"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (tmp_path / "inventory.ini").write_text("a\n")

    with pytest.raises(UsageError, match="Ansible cannot read") as caught:
        load("inventory.ini", cwd=".", PATH=f"{tmp_path}:/usr/bin:/bin")

    assert why in caught.value.why
    assert f"-i {tmp_path}/inventory.ini --list" in caught.value.mend
