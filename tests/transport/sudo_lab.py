"""A real sudo: a throwaway user with a password, and what sudoers says of him."""

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests import ssh_lab

# Has what shells, sudo and prompts read in their own way.
PASSWORD = "pa ss!$word'\"%p\\é"


@dataclass
class Sudoer:
    """A user of this machine, his home, and the file of sudoers that is about him."""

    name: str
    home: Path
    file: Path

    def may(self, *rules: str) -> None:
        """Say what he may; every rule is about him: ``ALL=(ALL) NOPASSWD: ALL``."""
        text = "".join(f"{rule.format(user=self.name)}\n" for rule in rules)
        self.file.touch(0o440)
        self.file.write_text(text)
        subprocess.run([ssh_lab.tool("visudo"), "-qcf", str(self.file)], check=True)

    @property
    def argv(self) -> list[str]:
        """A command that runs a line as he, with no terminal: what a login by SSH does."""
        user = [ssh_lab.tool("setpriv"), f"--reuid={self.name}", "--regid=nogroup"]
        environ = ["env", "-i", f"HOME={self.home}", f"PATH={ssh_lab.PATH}", "LANG=C.UTF-8"]
        return [*user, "--clear-groups", *environ, "sh", "-c"]


@contextlib.contextmanager
def sudoer(home: Path, shell: str = "sh"):
    """Keep a user who has `PASSWORD` and may nothing by sudo yet."""
    ssh_lab.tool("sudo")
    assert os.getuid() == 0, "only root can make a user and say what sudo lets him do"
    with ssh_lab.account(home, shell) as (name, path):
        chpasswd = [ssh_lab.tool("chpasswd"), "-c", "SHA256"]
        subprocess.run(chpasswd, input=f"{name}:{PASSWORD}\n", text=True, check=True)
        file = Path("/etc/sudoers.d") / f"patchq-lab-{name}"
        try:
            yield Sudoer(name, path, file)
        finally:
            file.unlink(missing_ok=True)
