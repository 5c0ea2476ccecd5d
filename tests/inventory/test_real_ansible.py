"""Inventories of Ansible's, as the real ansible-inventory lists them."""

import json
import os

import pytest

from patchq.errors import UsageError
from patchq.inventory import files
from patchq.inventory.values import Environment
from tests import fleet_lab
from tests.inventory import ansible_lab

pytestmark = pytest.mark.slow

INI = """\
bare ansible_connection=local

[blackwell]
gpu[01:03] ansible_user=root ansible_port=2222
gpu04 ansible_host=10.0.0.4 ansible_become=true ansible_user="{{ who }}"

[rack:children]
blackwell

[rack:vars]
ansible_python_interpreter=/opt/vllm/bin/python
ansible_ssh_common_args="-J bastion"
"""
YAML = """\
all:
  vars: {ansible_user: deploy}
  children:
    blackwell:
      hosts:
        gpu01: {ansible_become: yes, ansible_become_user: vllm}
        pod1: {ansible_connection: docker}
"""
LISTING = {
    "cloud": {"hosts": ["i-1", "i-2"], "vars": {"ansible_port": 22}},
    "_meta": {"hostvars": {"i-1": {"ansible_host": "192.0.2.1"}}},
}


@pytest.fixture(scope="module")
def environ():
    return {**os.environ, "PATH": f"{ansible_lab.programs()}:/usr/bin:/bin"}


@pytest.fixture
def load(environ, tmp_path):
    return lambda *named: files.load(tmp_path, environ, tmp_path / "config", named)


def test_an_ini_inventory(load, tmp_path):
    (tmp_path / "inventory.ini").write_text(INI)

    found = load("inventory.ini")

    assert set(found.hosts) == {"bare", "gpu01", "gpu02", "gpu03", "gpu04"}
    assert found.groups["rack"].hosts == ("gpu01", "gpu02", "gpu03", "gpu04")
    assert found.groups["ungrouped"].hosts == ("bare",)
    one = found.find("gpu02")
    assert (one.settings.user, one.settings.port) == ("root", 2222)
    assert one.settings.environment == Environment("/opt/vllm/bin/python")
    assert str(one.origins["user"]) == f"{tmp_path}/inventory.ini [gpu02]"
    assert found.find("bare").argv() == ("sh", "-c")
    assert "ansible_user is no plain text" in found.find("gpu04").problem.what
    assert "ansible_ssh_common_args for gpu01, gpu02" in found.each[0].notes[0]


def test_a_yaml_inventory(load, tmp_path):
    (tmp_path / "fleet.yml").write_text(YAML)

    found = load("fleet.yml")

    assert found.groups["blackwell"].hosts == ("gpu01", "pod1")
    assert found.find("gpu01").settings.become == "vllm"
    assert found.find("pod1").argv() == tuple("docker exec -i -u deploy pod1 sh -c".split())


def test_a_dynamic_inventory(load, tmp_path):
    script = tmp_path / "cloud"
    script.write_text(f"#!/bin/sh\ncat <<'E'\n{json.dumps(LISTING)}\nE\n")
    script.chmod(0o755)

    found = load("cloud")

    assert found.groups["cloud"].hosts == ("i-1", "i-2")
    assert found.find("i-1").address == "192.0.2.1"
    assert found.find("i-2").settings.port == 22


def test_hosts_toml_names_several_and_adds_to_their_groups(load, tmp_path):
    (tmp_path / "inventory.ini").write_text(INI)
    (tmp_path / "more.yml").write_text("blackwell: {hosts: {gpu09: {}}}\n")
    (tmp_path / "hosts.toml").write_text(
        'ansible = ["inventory.ini", "more.yml"]\n[groups.blackwell]\nwanted = ["q"]\n'
        '[hosts.gpu04]\nuser = "root"\n'
    )

    found = load()

    assert found.groups["blackwell"].hosts == ("gpu01", "gpu02", "gpu03", "gpu04", "gpu09")
    assert found.find("gpu09").settings.wanted == ("q",)
    assert found.find("gpu04").problem is None
    assert found.find("gpu04").settings.user == "root"


@pytest.mark.parametrize(
    ("name", "text"), [("bad.yml", "a: [b\n"), ("bad", "#!/bin/sh\nexit 3\n"), ("bad.ini", "[x\n")]
)
def test_one_that_ansible_cannot_read_is_an_error_and_not_empty(load, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (tmp_path / name).chmod(0o755 if name == "bad" else 0o644)

    with pytest.raises(UsageError, match="Ansible cannot read") as caught:
        load(name)

    assert "parse" in caught.value.why


def test_a_verb_reaches_the_hosts_of_ansibles_groups(environ, world, pattern):
    with fleet_lab.fleet(3, pattern.site) as lab:
        lines = [
            f"{name} ansible_host={host.address} ansible_port={lab.port} ansible_user=someone"
            for name, host in zip(("a1", "a2", "b1"), lab.hosts.values(), strict=True)
        ]
        text = "[a]\n{}\n{}\n[b]\n{}\n[both:children]\na\nb\n".format(*lines)
        (world.root / "inventory.ini").write_text(text)

        done = world.run(
            *("push", "-a", "-H", "@both,!a2", "--inventory", "inventory.ini"),
            *("--target", fleet_lab.SITE, "--queue", world.queue),
            environ={"PATH": environ["PATH"], "HOME": lab.home.environ["HOME"]},
        )

        sizes = [(one.tree / "demo/data.txt").stat().st_size for one in lab.hosts.values()]
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [
        ["a1", "done"],
        ["b1", "done"],
    ]
    assert sizes == [19, 14, 19]
