"""What Ansible's variables mean for patchq."""

import pytest

from patchq.errors import UsageError
from patchq.inventory import ansible, gathered, table
from patchq.inventory.values import Environment, Origin, Settings

ORIGIN = Origin("inventory.ini")


def of(**variables):
    document = {"_meta": {"hostvars": {"h": variables}}, "ungrouped": {"hosts": ["h"]}}
    return ansible.read(document, ORIGIN).hosts["h"]


@pytest.mark.parametrize(
    ("variables", "settings"),
    [
        ({}, Settings()),
        (
            {"ansible_host": "10.0.0.1", "ansible_user": "u", "ansible_port": 22},
            Settings("10.0.0.1", "u", 22),
        ),
        ({"ansible_ssh_host": "a", "ansible_ssh_user": "u"}, Settings("a", "u")),
        ({"ansible_host": "a", "ansible_ssh_host": "old"}, Settings("a")),
        ({"ansible_ssh_port": "2222"}, Settings(port=2222)),
        ({"ansible_host": "", "ansible_user": None}, Settings()),
        (
            {"ansible_python_interpreter": "/v/bin/python"},
            Settings(environment=Environment("/v/bin/python")),
        ),
        ({"ansible_python_interpreter": "auto_silent"}, Settings()),
        ({"ansible_become": True}, Settings(become=True)),
        ({"ansible_become": "yes", "ansible_become_user": "root"}, Settings(become=True)),
        ({"ansible_become": "true", "ansible_become_user": "vllm"}, Settings(become="vllm")),
        ({"ansible_become": "no", "ansible_become_user": "vllm"}, Settings(become=False)),
        ({"ansible_become_user": "vllm"}, Settings()),
        ({"ansible_connection": "ssh"}, Settings()),
        ({"ansible_connection": "local"}, Settings(command="sh -c")),
        (
            {"ansible_connection": "community.docker.docker", "ansible_host": "vllm-0"},
            Settings("vllm-0", command="docker exec -i vllm-0 sh -c"),
        ),
        (
            {"ansible_connection": "podman", "ansible_user": "u"},
            Settings(user="u", command="podman exec -i -u u h sh -c"),
        ),
        (
            {
                "ansible_connection": "kubernetes.core.kubectl",
                "ansible_kubectl_pod": "vllm-0",
                "ansible_kubectl_namespace": "llm",
                "ansible_kubectl_container": "main",
            },
            Settings(command="kubectl -n llm exec -i vllm-0 -c main -- sh -c"),
        ),
    ],
)
def test_variables_that_say_how_to_reach_a_host_are_taken(variables, settings):
    found = of(**variables)

    assert found.settings == settings
    assert not found.problems
    assert str(found.origin) == "inventory.ini [h]"


@pytest.mark.parametrize(
    ("variables", "key", "says"),
    [
        ({"ansible_host": "{{ address }}"}, "address", "ansible_host is no plain text"),
        ({"ansible_user": {"__ansible_vault": "x"}}, "user", "ansible_user is no plain text"),
        ({"ansible_port": "ssh"}, "port", "port 'ssh' is none"),
        ({"ansible_port": 99999}, "port", "port '99999' is none"),
        ({"ansible_connection": "winrm"}, "command", "connection 'winrm' cannot be used"),
        (
            {"ansible_connection": "docker", "ansible_host": "--privileged"},
            "command",
            "cannot be used",
        ),
        ({"ansible_become": "{{ x }}"}, "become", "which is no answer"),
        (
            {"ansible_become": True, "ansible_become_method": "su"},
            "become",
            "become method 'su' is not known",
        ),
    ],
)
def test_what_patchq_cannot_use_is_an_error_of_that_host(variables, key, says):
    assert says in of(**variables).problems[key]

    listed = ansible.read({"_meta": {"hostvars": {"h": variables, "i": {}}}}, ORIGIN)
    found = gathered.gather(table.Document("hosts.toml"), listed)
    assert says in found.find("h").problem.what
    assert "[hosts.h]" in found.find("h").problem.mend
    assert found.find("i").problem is None


def test_what_hosts_toml_says_of_it_mends_that():
    listed = ansible.read({"_meta": {"hostvars": {"h": {"ansible_connection": "winrm"}}}}, ORIGIN)
    own = table.read({"hosts": {"h": {"command": "ssh h"}}}, source="hosts.toml", lines={})

    found = gathered.gather(own, listed).find("h")

    assert found.problem is None
    assert found.argv() == ("ssh", "h")


def test_groups_have_the_hosts_of_the_groups_in_them():
    found = ansible.read(
        {
            "all": {"children": ["ungrouped", "outer"]},
            "outer": {"children": ["inner", "other"], "hosts": ["o"]},
            "inner": {"hosts": ["a", "b"], "children": ["core"]},
            "core": {"hosts": ["c"], "children": ["outer"]},
            "other": {"hosts": ["b"]},
            "ungrouped": {"hosts": []},
        },
        ORIGIN,
    )

    assert set(found.groups["outer"]) == {"o", "a", "b", "c"}
    assert found.inside["inner"] == {"core", "outer", "other"}
    assert [*found.hosts] == ["o", "a", "b", "c"]
    assert "ungrouped" not in found.groups
    assert "all" not in found.groups


def test_what_is_not_taken_over_is_told_once_with_its_hosts():
    hostvars = {f"h{n}": {"ansible_ssh_common_args": "-J bastion"} for n in range(8)}

    (note,) = ansible.read({"_meta": {"hostvars": hostvars}}, ORIGIN).notes

    assert "sets ansible_ssh_common_args for h0, h1, h2, h3, h4 and 3 more" in note
    assert "ssh_config" in note


@pytest.mark.parametrize(
    "document",
    [[], None, "x", {"g": []}, {"g": {"hosts": 5}}, {"_meta": []}, {"_meta": {"hostvars": [1]}}],
)
def test_another_form_is_an_error(document):
    with pytest.raises(UsageError, match="in a form that is not known"):
        ansible.read(document, ORIGIN)
