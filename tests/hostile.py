"""What a login does that stands in the way: start-up files and accounts, tried on a real sshd.

A user's start-up file first puts a folder of canaries in front of PATH: programs named as
the words that begin the lines of what patchq sends. A canary that sings was run by a shell
that took the payload for its commands.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchq import outcome
from patchq.agent import protocol
from patchq.errors import ExitCode, PatchqError
from patchq.report import Report
from patchq.transport.channel import DEADLINES, Conversation, Deadlines, Request
from tests import shell_lab, ssh_lab, world
from tests.shell_lab import Account, House

SHELLS = ("bash", "zsh", "fish", "tcsh")
# What stays on a host whose client was killed, or is ssh(1): what the start-up file waits for.
LASTING = "`sleep` for a day"
FLOOD = "prints for ever on stderr"
# The programs of start-up files that keep a login waiting, as processes have them.
WAITING = ("cat", "sleep", "yes", "fish", "/usr/bin/fish")
# Those that say nothing until they are left: no need to wait long for that.
SILENT = ("`exec fish`", "`cat >/dev/null`", FLOOD, LASTING)
HASTY = Deadlines(sync=3, end=1)
CANARIES = ("import", "if", "from", "class", "def", "try", "data", "return", "serve.main", "self")


@dataclass(frozen=True)
class Login:
    """A start-up file, by shell; "" is for those that are not named, None for not at all."""

    title: str
    lines: dict[str, str | None]

    def line(self, shell: str) -> str | None:
        """Return the line for a shell, None where it says nothing there."""
        return self.lines.get(shell, self.lines.get(""))


def _each(title: str, line: str | None, **shells: str | None) -> Login:
    return Login(title, {"": line, **shells})


def _exec(other: str) -> Login:
    """Return the file that puts another shell in the place; its own, only once."""
    line = f"exec {other}"
    own = {
        "fish": "set -q PQ_IN; or begin; set -gx PQ_IN 1; exec fish; end",
        "tcsh": "if (! $?PQ_IN) then\nsetenv PQ_IN 1\nexec tcsh\nendif",
    }
    again = own.get(other, f'[ -n "$PQ_IN" ] || {{ export PQ_IN=1; exec {other}; }}')
    return Login(f"`exec {other}`", {"": line, other: again})


LOGINS = (
    *map(_exec, ("bash", "dash", "zsh", "tcsh", "fish")),
    _each("`cat >/dev/null`", "cat >/dev/null"),
    _each("`read x`", "read x", tcsh="set x = $<"),
    _each("`exit 0`", "exit 0"),
    _each("`exit 3`", "exit 3"),
    _each("`set -e`, then a command that fails", "set -e\nfalse", fish=None, tcsh=None),
    _each("prints for ever", "yes garbage"),
    _each(FLOOD, "sh -c 'yes garbage >&2'"),
    _each(LASTING, "sleep 86400"),
    _each("a banner of 2 MB", "head -c 2000000 /dev/zero | tr '\\0' m"),
    _each("a banner of 900 kB", "head -c 900000 /dev/zero | tr '\\0' m"),
    _each(
        "`alias python3`",
        "alias python3 false",
        bash="shopt -s expand_aliases\nalias python3=false",
        zsh="alias python3=false",
    ),
    _each(
        "`alias exec`",
        "alias exec echo",
        bash="shopt -s expand_aliases\nalias exec=echo",
        zsh="alias exec=echo",
        fish=None,
    ),
    _each(
        "a function `python3`",
        "python3() { echo no; }",
        fish="function python3; echo no; end",
        tcsh=None,
    ),
    _each(
        "a function `exec`", "exec() { echo no; }", fish="function exec; echo no; end", tcsh=None
    ),
    _each("`stty -echo`", "stty -echo"),
    _each(
        "prints when it ends",
        "trap 'echo bye' EXIT",
        fish="function bye --on-event fish_exit; echo bye; end",
        tcsh=None,
    ),
    _each("empty PATH", "PATH=", fish="set -gx PATH", tcsh="setenv PATH ''"),
    _each("no HOME", "unset HOME", fish="set -e HOME", tcsh="unsetenv HOME"),
    _each("`umask 077`", "umask 077"),
    _each("`umask 000`", "umask 000"),
    _each("files of 1 kB at most", "ulimit -f 1", tcsh="limit filesize 1"),
    _each(
        "`sleep`, only where a terminal is",
        "[ -t 0 ] && sleep 86400",
        fish="status is-interactive; and sleep 86400",
        tcsh="if ($?prompt) sleep 86400",
    ),
    _each("TMPDIR that is not there", "export TMPDIR=/no/where", tcsh="setenv TMPDIR /no/where"),
)


@dataclass(frozen=True)
class Result:
    """What came of a push.

    `word` is the outcome's; `said` the error's class, `what` and `why` its words. `left` are
    command lines of the user's that did not end when patchq did, `sang` the canaries that were
    run, `files` "old", "new", or "other".
    """

    title: str
    account: str
    client: str
    word: str
    said: str
    what: str
    why: str
    status: int
    left: tuple[str, ...]
    sang: tuple[str, ...]
    files: str

    @property
    def short(self) -> str:
        """The outcome's word and its reason in a few words, alike on every machine."""
        return "done" if self.word == "done" else f"{self.word}: {_reason(self)}"

    @property
    def faults(self) -> list[str]:
        """Whatever must never be, however hostile the login is."""
        found = [f"canaries were run: {self.sang}"] if self.sang else []
        if self.files != ("new" if self.word == "done" else "old"):
            found.append(f"{self.word}, and the files are {self.files}")
        if self.said not in ("", "NoHostAgent", "AgentError"):
            found.append(f"an error of another kind: {self.said}: {self.what}: {self.why}")
        if self.status not in (0, ExitCode.HOST_FAILED, ExitCode.FAILED):
            found.append(f"exit code {self.status}")
        return found


# What an error's text has in it, and the few words for it in a table.
_REASONS = (
    ("puts another shell", "another shell in the place"),
    ("there is no interpreter", "no interpreter"),
    ("File too large", "file too large"),
    ("MiB came", "more than 1 MiB came"),
    ("nothing of an agent came", "silent"),
)


def _reason(result: Result) -> str:
    text = f"{result.what}: {result.why}"
    for part, reason in _REASONS:
        if part in text:
            return reason
    status = re.search(r"status \d+", text)
    return status[0] if status else "other"


def table(results: list[Result]) -> str:
    """Return what each login gets, by shell, as Markdown; * where something is left running."""
    lines = [f"| the login | {' | '.join(SHELLS)} |", "|---" * (len(SHELLS) + 1) + "|"]
    for title in dict.fromkeys(result.title for result in results):
        mine = [result for result in results if result.title == title]
        by_shell = {alias: _cell(mine, alias) for alias in SHELLS}
        if not any(by_shell.values()):
            by_shell = {**by_shell, SHELLS[0]: _cell(mine, mine[0].account)}
        lines.append(f"| {title} | {' | '.join(cell or '-' for cell in by_shell.values())} |")
    return "\n".join(lines)


def _cell(results: list[Result], alias: str) -> str:
    mine = [result for result in results if result.account == alias]
    star = "*" if any(result.left for result in mine) else ""
    return " / ".join(dict.fromkeys(result.short + star for result in mine))


def options(house: House) -> str:
    """Return what sshd says of the accounts that may not do everything."""
    forced = house.base / "forced_keys"
    forced.write_text(f'command="echo backups only" {house.client.public}')
    name = {alias: account.name for alias, account in house.accounts.items()}
    return (
        f"Match User {name['forced']}\n  AuthorizedKeysFile {forced}\n"
        f"Match User {name['sftp']}\n  ForceCommand internal-sftp\n"
        "  ChrootDirectory /run/sshd\n"
    )


ACCOUNTS = {
    "nologin": "login shell `nologin`",
    "false": "login shell `/bin/false`",
    "forced": '`command="echo backups only"` in authorized_keys',
    "sftp": "`ForceCommand internal-sftp`, in a chroot",
    "homeless": "a home folder that is not there",
}


@contextlib.contextmanager
def ground(of: world.World) -> Iterator[Ground]:
    """Keep a host with all these users; ``canaries`` are in place."""
    shells = {shell: shell for shell in SHELLS}
    shells |= {"nologin": "nologin", "false": "false"}
    shells |= dict.fromkeys(("forced", "sftp", "homeless"), "bash")
    with shell_lab.house(shells, options) as house:
        yield Ground(house, of)


class Ground:
    """A host with one folder of packages per user, and canaries."""

    def __init__(self, house: House, of: world.World) -> None:
        self.house, self.of = house, of
        self.sites = {alias: house.base / "sites" / alias for alias in house.accounts}
        for alias, site in self.sites.items():
            shutil.copytree(of.site, site)
            shell_lab.own(site, house.accounts[alias].name)
        self.old = shell_lab.tree(of.site)
        self.folder, self.songs = house.base / "canaries", house.base / "songs"
        for path in (self.folder, self.songs):
            path.mkdir()
            path.chmod(0o777)
        for name in CANARIES:
            song = f"/usr/bin/touch {self.songs}/{name}.$(/usr/bin/id -un)"
            (self.folder / name).write_text(f"#!/bin/sh\n{song}\n")
            (self.folder / name).chmod(0o755)
        shutil.rmtree(house.accounts["homeless"].home)

    def prepare(self, account: Account, line: str) -> None:
        """Write a start-up file: canaries first, then the line."""
        path = {
            "fish": f"set -gx PATH {self.folder} $PATH",
            "tcsh": f"setenv PATH {self.folder}:$PATH",
        }.get(account.shell, f"export PATH={self.folder}:$PATH")
        account.rc(f"{path}\n{line}\n")

    def sung(self, account: Account) -> tuple[str, ...]:
        """Return the canaries that this user ran, and forget them."""
        found = sorted(self.songs.glob(f"*.{account.name}"))
        for path in found:
            path.unlink()
        return tuple(path.name.removesuffix(f".{account.name}") for path in found)

    def request(self) -> Request:
        """Return a request that would run a canary on many lines, were it a shell's input."""
        return Request(
            {"op": "read", "distribution": "demo", "target": "/", "paths": [], "originals": []},
            {protocol.sha256(self.song): self.song},
        )

    @property
    def song(self) -> bytes:
        """Bytes that pass through zlib as they are, with a canary's path on many lines."""
        noise, line = random.Random(3), f"\n{self.folder}/import\n".encode()
        return b"".join(noise.randbytes(97) + line for _ in range(60))

    def visit(self, alias: str) -> Conversation[Report]:
        """Send the canaries, then push."""
        yield self.request()
        return (yield from shell_lab.push(self.of, self.sites[alias]))

    def slow(self, alias: str) -> Path:
        """Return an interpreter that takes two seconds to look at a file of this user's."""
        path = self.house.base / f"slow-{alias}"
        argv = [ssh_lab.tool("strace"), "-f", "-qq", "-o", "/dev/null", "-e", "trace=openat"]
        argv += ["-P", f"{self.sites[alias]}/demo/shapes.py"]
        argv += ["-e", "inject=openat:delay_enter=2000000", "/usr/bin/python3"]
        path.write_text(f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
        path.chmod(0o755)
        return path

    def busy(self, account: Account) -> bool:
        """Return whether the user's agent runs, or what his start-up file waits for."""
        lines = ssh_lab.processes(account.name).values()
        return any(line.split()[0] in ("/usr/bin/python3", *WAITING) for line in lines)

    def files(self, alias: str) -> str:
        """Return whether the files are "old", "new", or "other"."""
        found = shell_lab.tree(self.sites[alias])
        if found == self.old:
            return "old"
        new = b"four" in found["demo/data.txt"][0] and "demo/more.py" in found
        modes = {mode for _, mode in found.values()}
        return "new" if new and modes == {0o644} else f"other: {found.keys()}, {modes}"


async def trial(ground: Ground, title: str, alias: str) -> list[Result]:
    """Push with each client, and take it back where it was done."""
    results, house = [], ground.house
    account = house.accounts[alias]
    for client in shell_lab.CLIENTS:
        word, said, what, why, status = "done", "", "", "", 0
        try:
            limits = HASTY if title in SILENT else DEADLINES
            report = await house.hold(client, alias, None, ground.visit(alias), limits)
            assert report.exit_code == 0, report
        except PatchqError as error:
            word, said = outcome.word_for(error).value, type(error).__name__
            what, why = error.what, error.why
            status = int(error.exit_code)
        left = await asyncio.to_thread(account.left, 1)
        ssh_lab.end_processes(account.name)
        files = ground.files(alias)
        lines = tuple(left.values())
        song = ground.sung(account)
        told = (word, said, what, why, status)
        results.append(Result(title, alias, client, *told, lines, song, files))
        if files != "old":
            _restore(ground, alias)
    return results


def _restore(ground: Ground, alias: str) -> None:
    site = ground.sites[alias]
    shutil.rmtree(site)
    shutil.copytree(ground.of.site, site)
    shell_lab.own(site, ground.house.accounts[alias].name)


async def start_up_files(ground: Ground, logins: Sequence[Login] = LOGINS) -> list[Result]:
    """Try each start-up file with each shell that it says something to."""
    results: list[Result] = []
    for login in logins:
        trials = []
        for alias in SHELLS:
            line = login.line(alias)
            if line is not None:
                ground.prepare(ground.house.accounts[alias], line)
                trials.append(trial(ground, login.title, alias))
        results += itertools.chain.from_iterable(await asyncio.gather(*trials))
    return results


async def accounts(ground: Ground) -> list[Result]:
    """Try each account that may not do everything."""
    trials = [trial(ground, title, alias) for alias, title in ACCOUNTS.items()]
    return list(itertools.chain.from_iterable(await asyncio.gather(*trials)))


def killed(ground: Ground, alias: str, client: str) -> list[str]:
    """Kill patchq by signal 9 once the host is at it; return what the user has left running."""
    house, account = ground.house, ground.house.accounts[alias]
    spec = alias
    if client == "command:ssh":
        spec = f"command:{shlex.join(house.client.ssh_argv(alias))}"
    argv = [sys.executable, "-m", "patchq", "push", "-a", "-H", spec]
    argv += ["--target", str(ground.sites[alias]), "--queue", str(ground.of.queue)]
    argv += ["--python", str(ground.slow(alias))]
    environ = os.environ | house.client.environ | {"PATCHQ_CACHE": str(ground.of.root / "cache")}
    with subprocess.Popen(
        argv,
        cwd=ground.of.root,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            while not ground.busy(account):
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
            process.kill()
            process.communicate()
            return list(account.left(5).values())
        finally:
            with contextlib.suppress(ProcessLookupError):  # ssh(1), where its host says nothing
                os.killpg(process.pid, signal.SIGKILL)
            ssh_lab.end_processes(account.name)
