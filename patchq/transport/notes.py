"""What a run has to say beside its outcomes, told once for all hosts."""

from __future__ import annotations

from pathlib import Path

_NAMED = 8


class Notes:
    """Notes of one run, folded over its hosts."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}
        self._unheeded: dict[tuple[str, ...], dict[str, None]] = {}

    def say(self, text: str) -> None:
        """Add a note, once."""
        self._said[text] = None

    def unheeded(self, host: str, names: tuple[str, ...]) -> None:
        """Note options of ssh_config that apply to a host and that patchq does not honour."""
        if names:
            self._unheeded.setdefault(names, {})[host] = None

    def skipped(self, path: Path) -> None:
        """Note a key file that needs a touch for every connection."""
        self.say(
            f"{path} is a key on a security key, which patchq's own SSH does not use; "
            "ssh(1) does: -H 'command:ssh HOST'"
        )

    def lines(self) -> list[str]:
        """Return all notes."""
        folded = [
            f"ssh_config sets {', '.join(names)} for {_few(hosts)}, which patchq's own SSH "
            "does not honour; ssh(1) does: -H 'command:ssh HOST'"
            for names, hosts in self._unheeded.items()
        ]
        return [*self._said, *folded]


def _few(hosts: dict[str, None]) -> str:
    named = [*hosts][:_NAMED]
    rest = len(hosts) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")
