"""Hosts of an inventory as they are typed: what they mean, and what every verb makes of it."""

import contextlib
import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from patchq.errors import ExitCode
from tests import fleet_lab, ssh_lab
from tests.fleet_lab import SITE
from tests.transport import sudo_lab

pytestmark = pytest.mark.slow

NEW = b"one\ntwo\nthree\nfour\n"


@pytest.fixture
def fleet(world):
    """Write the world's hosts.toml, and run patchq beside it."""

    def fleet(text, *args, environ=None):
        (world.root / "hosts.toml").write_text(text)
        return world.run(
            *args, environ={"XDG_CONFIG_HOME": str(world.root / "none")} | (environ or {})
        )

    return fleet


SEEN = """\
[all]
user = "ops"

[groups.blackwell]
hosts = ["gpu[1-2]"]
environment = "/opt/vllm"
wanted = ["q"]

[hosts.gpu2]
address = "10.0.0.2"
port = 2222
become = true

[hosts.pod]
command = "docker exec -i {name} sh -c"
target = "/srv/site"
"""


def test_the_table_says_how_each_host_is_reached_and_who_says_so(fleet):
    done = fleet(SEEN, "hosts")

    rows = [re.split("  +", line) for line in done.stdout.splitlines()]
    assert rows == [
        ["HOST", "REACHED BY", "ENVIRONMENT", "WANTED", "FROM"],
        [
            "gpu2",
            "ssh -p 2222 ops@10.0.0.2, sudo",
            "/opt/vllm/bin/python",
            "q",
            "hosts.toml:9 [hosts.gpu2]",
        ],
        ["pod", "docker exec -i pod sh -c", "/srv/site", "-", "hosts.toml:14 [hosts.pod]"],
        [
            "gpu1",
            "ssh ops@gpu1",
            "/opt/vllm/bin/python",
            "q",
            "hosts.toml:4 [groups.blackwell]",
        ],
    ]
    assert done.stderr == "groups: @blackwell (2)\n3 hosts\n"
    assert done.returncode == ExitCode.DONE


def test_every_setting_is_shown_with_the_table_that_says_it(fleet):
    done = fleet(SEEN, "hosts", "-v", "@blackwell,!gpu1")

    assert done.stdout.splitlines() == [
        "gpu2",
        "  reached by      ssh -p 2222 ops@10.0.0.2, sudo",
        "  interpreter     /opt/vllm/bin/python",
        "  wanted          q",
        "  groups          blackwell",
        "  from            hosts.toml:9 [hosts.gpu2]",
        "  address by      hosts.toml:9 [hosts.gpu2]",
        "  user by         hosts.toml:1 [all]",
        "  port by         hosts.toml:9 [hosts.gpu2]",
        "  environment by  hosts.toml:4 [groups.blackwell]",
        "  become by       hosts.toml:9 [hosts.gpu2]",
        "  wanted by       hosts.toml:4 [groups.blackwell]",
    ]


def test_the_document_has_the_same(fleet, world):
    done = fleet(SEEN, "hosts", "--json", "pod", "-H", "root@gpu1:22", "--python", "/p")

    document = json.loads(done.stdout)
    assert (document["schema"], document["verb"], document["exit_code"]) == (1, "hosts", 0)
    assert document["inventories"] == [str(world.root / "hosts.toml")]
    assert document["groups"]["blackwell"]["hosts"] == ["gpu1", "gpu2"]
    one, pod = document["hosts"]
    assert (one["host"], one["ssh"], one["python"]) == ("root@gpu1:22", "ssh root@gpu1", "/p")
    assert (one["groups"], one["wanted"], one["problem"]) == (["blackwell"], ["q"], None)
    assert (pod["command"], pod["ssh"]) == (["docker", "exec", "-i", "pod", "sh", "-c"], None)
    assert pod["from"] == {
        "file": str(world.root / "hosts.toml"),
        "line": 14,
        "table": "hosts.pod",
    }
    assert pod["said"]["environment"] == pod["from"]


def test_a_host_of_ssh_config_and_one_of_nobody_say_so(fleet, world):
    (world.root / ".ssh").mkdir()
    (world.root / ".ssh/config").write_text("Include more\n")
    (world.root / ".ssh/more").write_text("\nHost web\n  HostName 10.9.9.9\n  ProxyJump b\n")

    done = fleet("", "hosts", "web,u@nobody")
    document = json.loads(fleet("", "hosts", "--json", "me@web:22,u@nobody").stdout)

    web, nobody = done.stdout.splitlines()[1:]
    assert "@10.9.9.9 through b" in web
    assert web.endswith(" .ssh/more:2")
    place = {"file": str(world.root / ".ssh/more"), "line": 2, "table": ""}
    assert [(one["source"], one["from"]) for one in document["hosts"]] == [
        ("ssh_config", place),
        ("command line", None),
    ]
    assert "ssh u@nobody " in nobody
    assert nobody.endswith("command line")


def test_a_host_that_cannot_be_reached_as_it_is_written_is_exit_code_1(fleet):
    text = '[groups.a]\nhosts = ["x"]\nport = 1\n[groups.b]\nhosts = ["x", "y"]\nport = 2\n'

    done = fleet(text, "hosts", "all")
    pushed = fleet(text, "status", "-H", "x")

    assert done.returncode == ExitCode.FAILED
    assert done.stdout.splitlines()[1].split()[:2] == ["x", "not"]
    assert "two groups say different things of 'port'" in done.stderr
    assert pushed.returncode == ExitCode.USAGE
    assert "mend: say it in [hosts.x]" in pushed.stderr


def test_no_host_at_all_is_exit_code_2(world):
    done = world.run("hosts", environ={"XDG_CONFIG_HOME": str(world.root)})

    assert (done.returncode, done.stdout) == (ExitCode.NOTHING_TO_DO, "")
    assert done.stderr == "no inventory is in sight\n0 hosts\n"


@pytest.mark.parametrize(
    ("text", "args", "says"),
    [
        (SEEN, ("hosts", "@blakwell"), "mend: patchq VERB -H @blackwell"),
        (SEEN, ("push", "-H", "gpx*"), "comes nearest"),
        (SEEN, ("status", "-H", "all,!gpu3"), "write '!gpu"),
        ("[hosts.a]\npyhton = 'x'\n", ("status", "-H", "a"), "write 'python'"),
        ("[hosts.a]\ncommand = 'ssh {nam}'\n", ("status", "-H", "a"), "correct 'command'"),
        ("[hosts.a]\naddress = '-oX'\n", ("status", "-H", "a"), "hosts.toml:1 [hosts.a]: '-oX'"),
        ("[hosts.a]\nbecome = '-x'\n", ("status", "-H", "a"), "does not name a user"),
        (SEEN, ("hosts", "--discover"), "--discover all"),
        (SEEN, ("hosts", "--inventory", "host.toml"), "hosts.toml"),
    ],
)
def test_what_is_wrong_is_a_usage_error_with_its_mend(fleet, text, args, says):
    done = fleet(text, *args)

    assert done.returncode == ExitCode.USAGE, done.stdout + done.stderr
    assert says in done.stderr


def here(world, *, name="here", target=True, more=""):
    """Return the table of a host that is this machine."""
    lines = [f"[hosts.{name}]", 'command = "sh -c"', f"python = {json.dumps(sys.executable)}"]
    lines += [f"target = {json.dumps(str(world.site))}"] if target else []
    return "\n".join([*lines, more, ""])


def test_a_verb_takes_command_interpreter_and_folder_from_the_inventory(fleet, world):
    done = fleet(here(world), "push", "-a", "-H", "here", "--queue", world.queue)

    assert done.returncode == ExitCode.DONE, done.stderr
    assert (world.site / "demo/data.txt").read_bytes() == NEW


def test_the_command_line_counts_before_the_inventory(fleet, world, tmp_path):
    text = here(world).replace(str(world.site), "/nowhere").replace(sys.executable, "/no/python")

    as_said = fleet(text, "status", "-H", "here", "--queue", world.queue)
    folder = fleet(text, "status", "-H", "here", "--queue", world.queue, "--target", world.site)
    both = fleet(
        text,
        *("status", "-H", "here", "--queue", world.queue),
        *("--target", world.site, "--python", sys.executable),
    )
    python = fleet(
        text, "status", "-H", "here", "--queue", world.queue, "--python", sys.executable
    )

    assert "/no/python" in as_said.stderr
    assert "/no/python" in folder.stderr
    assert (both.returncode, both.stderr) == (ExitCode.DONE, "")
    assert "/nowhere" not in python.stdout + python.stderr  # the interpreter's own packages


def test_an_error_of_a_host_is_about_the_name_that_the_user_has_for_it(fleet, world):
    text = here(world, target=False).replace("sh -c", "sh -c 'exit 9' --")
    (world.root / "fleet.toml").write_text(text)

    done = fleet("", "status", "-H", "here", "--inventory", "fleet.toml")

    assert done.returncode == ExitCode.HOST_FAILED
    assert "no agent answered on host here" in done.stderr


def test_a_command_to_type_names_the_host_and_the_inventory(fleet, world):
    (world.site / "demo/data.txt").write_text("mine\n")
    (world.root / "fleet.toml").write_text(here(world))

    done = fleet(
        "", "audit", "-H", "here", "--queue", world.queue, "--inventory", "fleet.toml", "--json"
    )

    (row,) = json.loads(done.stdout)["rows"]
    assert f"--inventory fleet.toml -H here --queue {world.queue} -z" in row["mend"]
    again = fleet("", *shlex.split(row["mend"])[1:])
    assert "-mine" in again.stdout or "+mine" in again.stdout


@pytest.mark.parametrize(
    ("wanted", "args", "code"),
    [
        ("", (), ExitCode.DONE),
        ("wanted = []", (), ExitCode.DONE),
        ('wanted = ["q"]', (), ExitCode.FINDING),
        ("", ("--queue", "q"), ExitCode.FINDING),
    ],
)
def test_audit_takes_what_is_wanted_from_the_inventory(fleet, world, wanted, args, code):
    done = fleet(here(world, more=wanted), "audit", "-H", "here", "--json", *args)

    (row,) = (row for row in json.loads(done.stdout)["rows"] if row["queue"] == "q")
    assert (row["word"], done.returncode) == ("missing", code)
    assert row["wanted"] is (code == ExitCode.FINDING)


def test_a_wanted_queue_of_what_is_not_installed_is_a_finding(fleet, world):
    other = world.root / "queues/other"
    other.mkdir()
    (other / "queue.toml").write_text('distribution = "absent"\nsummary = "x"\n')

    bare = fleet(here(world), "audit", "-H", "here", "--json")
    wanted = fleet(here(world, more='wanted = ["other"]'), "audit", "-H", "here", "--json")

    assert "other" not in [row["queue"] for row in json.loads(bare.stdout)["rows"]]
    rows = {row["queue"]: row for row in json.loads(wanted.stdout)["rows"]}
    assert (rows["other"]["word"], rows["other"]["wanted"]) == ("absent", True)
    assert rows["q"]["wanted"] is False
    assert (bare.returncode, wanted.returncode) == (ExitCode.DONE, ExitCode.FINDING)


def test_a_wanted_queue_that_is_not_in_sight_is_a_usage_error(fleet, world):
    done = fleet(here(world, more='wanted = ["kimi-k2.5-eagle"]'), "audit", "-H", "here")

    assert done.returncode == ExitCode.USAGE
    assert "here wants a queue kimi-k2.5-eagle, which is not in sight" in done.stderr
    assert "hosts.toml:1 [hosts.here] says so" in done.stderr
    assert "kimi-k2.5-eagle3 comes nearest" in done.stderr


def test_a_group_of_hosts_over_ssh_by_address_port_and_user(fleet, world, pattern):
    with fleet_lab.fleet(4, pattern.site) as lab:
        tables = "".join(
            f'[hosts.n{number}]\naddress = "{host.address}"\n'
            for number, host in enumerate(lab.hosts.values(), 1)
        )
        text = (
            f'[all]\nuser = "someone"\nport = {lab.port}\ntarget = "{SITE}"\n'
            f'[groups.some]\nhosts = ["n[1-3]"]\n{tables}'
        )
        environ = {"HOME": lab.home.environ["HOME"]}
        queue = ("--queue", world.queue)

        pushed = fleet(text, "push", "-a", "-H", "@some,!n2", *queue, environ=environ)
        listed = fleet(text, "applied", "-H", "all", *queue, environ=environ)
        gone = fleet(text.replace(f"port = {lab.port}", "port = 1"), "top", "-H", "n1", *queue)

        trees = [(one.tree / "demo/data.txt").read_bytes() for one in lab.hosts.values()]
    assert pushed.returncode == ExitCode.DONE, pushed.stderr
    assert [line.split()[:2] for line in pushed.stdout.splitlines()[1:]] == [
        ["n1", "done"],
        ["n3", "done"],
    ]
    assert [tree == NEW for tree in trees] == [True, False, True, False]
    assert "== n[1,3]\n10-pi.patch\n" in listed.stdout
    assert gone.returncode == ExitCode.HOST_FAILED


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make users")
def test_users_with_shells_and_interpreters_of_their_own(fleet, world):
    with contextlib.ExitStack() as stack:
        text, sites = "", []
        client = ssh_lab.Home(stack.enter_context(ssh_lab.folder()) / "client")
        for shell in ("zsh", "fish", "tcsh"):
            base = stack.enter_context(ssh_lab.folder())
            server = stack.enter_context(ssh_lab.sshd(base, client.public, shell=shell))
            client.trust(server)
            sites.append(fleet_lab.plant(world.site, server.home, linked=False))
            for path in (server.home, *server.home.rglob("*")):
                who = pwd.getpwnam(server.user)
                os.chown(path, who.pw_uid, who.pw_gid, follow_symlinks=False)
            text += f'[hosts.{shell}]\naddress = "127.0.0.1"\nport = {server.port}\n'
            text += f'user = "{server.user}"\nenvironment = "{server.home}/venv"\n'
        environ = {"HOME": client.environ["HOME"]}

        done = fleet(text, "push", "-a", "-H", "all", "--queue", world.queue, environ=environ)

        contents = [(site / "demo/data.txt").read_bytes() for site in sites]
    assert done.returncode == ExitCode.DONE, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [
        ["zsh", "done"],
        ["fish", "done"],
        ["tcsh", "done"],
    ]
    assert contents == [NEW] * 3


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a user who may use sudo")
def test_the_inventory_says_as_whom_and_the_password_comes_from_the_command_line(fleet, world):
    with ssh_lab.folder() as base, sudo_lab.sudoer(base / "home") as user:
        user.may("{user} ALL=(ALL) ALL")
        command = json.dumps(shlex.join(user.argv))
        text = f'[all]\ncommand = {command}\npython = "/usr/bin/python3"\n'
        for name, owner, become in (
            ("one", "root", "true"),
            ("two", "daemon", '"daemon"'),
            ("three", "root", "false"),
        ):
            site = shutil.copytree(world.site, base / name)
            site.chmod(0o700)
            shutil.chown(site, owner)
            text += f'[hosts.{name}]\nbecome = {become}\ntarget = "{site}"\n'
        (base / "password").write_text(sudo_lab.PASSWORD + "\n")

        shown = fleet(text, "hosts", "all").stdout
        asked = ("audit", "-H", "all", "--queue", world.queue, "--json")
        bare = fleet(text, *asked)
        argv = ["sh", "-c", 'exec 3< "$0"; exec "$@"', base / "password"]
        argv += [sys.executable, "-m", "patchq", *asked, "--sudo-password-fd", "3"]
        environ = {**os.environ, "HOME": world.root, "PATCHQ_CACHE": world.root / "cache"}
        done = subprocess.run(argv, cwd=world.root, env=environ, capture_output=True, text=True)

    ways = [re.split("  +", line)[1] for line in shown.splitlines()[1:]]
    assert [way.partition(" -c")[2] for way in ways] == [", sudo", ", sudo -u daemon", ""]
    without = {row["host"]: row for row in json.loads(bare.stdout)["rows"]}
    with_one = {row["host"]: row for row in json.loads(done.stdout)["rows"]}
    assert "a password is required" in without["one"]["error"]["why"]
    assert "a password is required" in without["two"]["error"]["why"]
    assert [with_one[name]["word"] for name in ("one", "two")] == ["missing", "missing"]
    assert with_one["three"]["word"] != "missing"


@pytest.fixture
def planted(world):
    """A home with two environments that have the distribution of the world's queue."""
    home = world.root / "theirs"
    for name in ("venv", "project/.venv"):
        site = home / name / "lib/python3.12/site-packages"
        (site / "demo-1.0.dist-info").mkdir(parents=True)
        (home / name / "bin").mkdir()
        (home / name / "bin/python").symlink_to("/usr/bin/python3")
        (home / name / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return home


def test_discover_prints_lines_that_hosts_toml_takes(fleet, world, planted):
    spec = f"command:env HOME={planted} sh -c"
    table = f"[hosts.box]\ncommand = {json.dumps(spec.removeprefix('command:'))}\n"

    both = fleet(table, "hosts", "--discover", "box", "--queue", world.queue)
    (planted / "project/.venv/pyvenv.cfg").unlink()
    (planted / "project/.venv/bin/python").unlink()
    one = fleet(table, "hosts", "--discover", "-H", "box", "--queue", world.queue)

    first, second = f"{planted}/venv", f"{planted}/project/.venv"
    assert both.stdout == (
        "[hosts.box]\n"
        f'# python = "{first}/bin/python"  # demo 1.0, in {first}/lib/python3.12/site-packages\n'
        f'# python = "{second}/bin/python"  # demo 1.0, in {second}/lib/python3.12/site-packages\n'
        "\n"
    )
    assert one.stdout == f'[hosts.box]\npython = "{first}/bin/python"  # demo 1.0\n\n'
    assert one.stderr.endswith("1 host: 1 done\n")
    listed = fleet(table + one.stdout.split("\n", 1)[1], "hosts", "box")
    assert f"{first}/bin/python" in listed.stdout


def test_discover_says_what_was_not_found(fleet, world, planted):
    spec = f"command:env HOME={planted}/nothing sh -c"

    one = fleet("", "hosts", "--discover", "-H", spec, "--queue", world.queue)
    several = fleet("", "hosts", "--discover", "-H", spec, "-H", "command:false", "--json")

    assert one.returncode == ExitCode.NOTHING_TO_DO
    assert one.stdout == ""
    assert "no interpreter with demo was found" in one.stderr
    assert several.returncode == ExitCode.HOST_FAILED
    words = [each["outcome"] for each in json.loads(several.stdout)["hosts"]]
    assert words[1] == "unreachable"


def test_discover_over_a_real_sshd_looks_as_the_one_who_logs_in(world):
    with ssh_lab.folder() as base:
        home = ssh_lab.Home(base / "client")
        with ssh_lab.sshd(base, home.public, shell="zsh") as server:
            home.add("gpu1", server)
            site = fleet_lab.plant(world.site, server.home)
            done = world.run(
                *("hosts", "--discover", "-H", "gpu1", "--queue", world.queue),
                environ=home.environ | {"PATH": os.environ["PATH"]},
            )
    assert done.stdout.splitlines()[:2] == [
        "[hosts.gpu1]",
        f'python = "{site.parents[2]}/bin/python"  # demo 1.0',
    ]
