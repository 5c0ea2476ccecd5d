"""The options that say which hosts a verb means, and how to get in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from patchq.cli import places
from patchq.errors import UsageError

if TYPE_CHECKING:
    from patchq import fleet
    from patchq.cli.selecting import Selection
    from patchq.transport.become import Become

JOBS = 32
OPTIONS = (
    click.option(
        "--inventory",
        metavar="FILE",
        multiple=True,
        help="A hosts.toml, or an inventory of Ansible's, in the place of those in sight.",
    ),
    click.option(
        "-j",
        "--jobs",
        type=click.IntRange(1, 1000),
        metavar="N",
        default=JOBS,
        help=f"Reach so many hosts at a time; {JOBS} if not given.",
    ),
    click.option("--sudo", is_flag=True, help="Work as root on the hosts, by sudo."),
    click.option("--sudo-user", metavar="USER", help="Work as USER on the hosts, by sudo."),
    click.option("-K", "--ask-sudo-password", is_flag=True, help="Ask for sudo's password, once."),
    click.option(
        "--sudo-password-fd", type=int, metavar="FD", help="Read sudo's password from there."
    ),
    click.option(
        "--accept-new",
        is_flag=True,
        help="Accept and remember the key of a host that has none in known_hosts.",
    ),
)


@dataclass(frozen=True, slots=True)
class Reach:
    """How to get into the hosts of a run."""

    jobs: int
    sudo: bool
    user: str | None
    ask: bool
    handle: int | None
    accept_new: bool
    inventory: tuple[str, ...] = ()

    @classmethod
    def take(cls, values: dict[str, Any], *, remote: bool) -> Reach:
        """Take `OPTIONS` out of a command's values.

        Raises:
            UsageError: one of them is given where no host is named.
        """
        names = ("jobs", "sudo", "sudo_user", "ask_sudo_password", "sudo_password_fd")
        reach = cls(*(values.pop(name) for name in (*names, "accept_new", "inventory")))
        if not remote and reach.become:
            raise UsageError(
                "sudo is for hosts, and none is named",
                why="here you can start patchq itself as another user",
                mend="sudo patchq VERB, or: patchq VERB -H HOST --sudo",
            )
        return reach

    @property
    def become(self) -> bool:
        """True where the agent is to work as another user."""
        return bool(self.sudo or self.user or self.ask or self.handle is not None)

    def options(self, python: str | None, selection: Selection, *, writing: bool) -> fleet.Options:
        """Return what the fleet is to know; asks for a password where that is wanted."""
        from patchq import fleet
        from patchq.transport.acquaintance import Acquaintance

        password = self._password()
        become = self.become_of(None, password)
        ways = {
            host: selection.way(host, python, self.become_of(known.settings.become, password))
            for host, known in selection.known.items()
        }
        known = Acquaintance(places.agents())
        return fleet.Options(
            python, self.jobs, writing, become, self.accept_new, ways=ways, known=known
        )

    def become_of(self, said: bool | str | None, password: str | None = None) -> Become | None:
        """Return whom the agent is to be on a host of which the inventory says `said`."""
        from patchq.transport.become import Become

        if self.sudo or self.user:
            return Become(self.user, password)
        if said is None:
            return Become(None, password) if self.become else None
        return Become(None if said is True else said, password) if said else None

    def _password(self) -> str | None:
        if self.handle is not None:
            return _read(self.handle)
        if not self.ask:
            return None
        import getpass

        if not sys.stdin.isatty():
            raise UsageError(
                "sudo's password cannot be asked for",
                why="there is no terminal",
                mend="patchq VERB -H HOST --sudo-password-fd 3 3< FILE",
            )
        return getpass.getpass("sudo's password on the hosts: ", stream=sys.stderr)


def _read(handle: int) -> str:
    """Return the first line of what a file descriptor gives."""
    try:
        with open(handle, encoding="utf-8", errors="surrogateescape", closefd=False) as file:
            return file.readline().rstrip("\n")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"sudo's password cannot be read from file descriptor {handle}",
            why=str(error),
            mend="patchq VERB -H HOST --sudo-password-fd 3 3< FILE",
        ) from error
