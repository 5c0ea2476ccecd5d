"""What a commit comes to while its paths are gone through: collected here, entry by entry."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from patchq.agent.environment import Environment
from patchq.agent.journal import Entry


class Draft:
    """Collects entries while the paths are gone through."""

    def __init__(self, here: Environment, request: Mapping[str, Any]) -> None:
        self.here = here
        self.request = request
        kept = here.state or {}
        self.generation = kept.get("generation", 0) + 1
        self.originals: Dict[str, Any] = dict(kept.get("originals", {}))
        self.bytecode: Dict[str, Any] = dict(kept.get("bytecode", {}))
        self.folders: List[str] = list(kept.get("folders", ()))
        self.entries: List[Entry] = []
        self.contents: Dict[str, bytes] = {}
        self.pristine: Dict[str, bytes] = {}
        self.mtimes: Dict[str, int] = {}
        self.copied: Dict[str, Optional[str]] = {}
        self.rows: Dict[str, Optional[bytes]] = {}
        self.drop: List[str] = []
        self.notes: List[str] = []

    def name(self) -> str:
        """Return a name in originals/ for the entry that is added next."""
        return "%d-%d" % (self.generation, len(self.entries))

    def add(self, **fields: Any) -> None:
        """Add an entry; its names in stage/ are its number's."""
        number = len(self.entries)
        if fields["after"]["kind"] != "absent" and not fields.pop("stays", False):
            fields["new"] = "%d.new" % number
        if fields["before"]["kind"] not in ("absent", "folder") or fields.get("keep"):
            fields["old"] = "%d.old" % number
        self.entries.append(Entry(**fields))
