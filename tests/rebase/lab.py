"""A queue and the releases that it is carried between: real wheels, a real store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from patchq.engine import textdiff
from patchq.queue import store as queues
from patchq.rebase import beginning, road
from patchq.rebase.beginning import Places
from patchq.rebase.road import Done
from patchq.rebase.step import Step
from patchq.releases import fetch
from tests import world

Text = Mapping[str, str | None]


def patch(before: Text, after: Text, header: str = "Description: a test\n\n") -> str:
    """Return the patch file that turns one set of texts into another."""
    out = [header.encode()]
    for path in dict.fromkeys([*before, *after]):
        one, other = before.get(path), after.get(path, before.get(path))
        sides = (None if text is None else text.encode() for text in (one, other))
        out.append(textdiff.unified(*sides, path))
    return b"".join(out).decode()


@dataclass
class Lab:
    """A folder with the queue `q` for `demo`; releases are added one by one."""

    root: Path
    queue: Path = field(init=False)
    cache: Path = field(init=False)
    state: Path = field(init=False)

    def __post_init__(self) -> None:
        self.queue, self.cache, self.state = (self.root / n for n in ("q", "cache", "state"))
        self.queue.mkdir()
        self.settings('distribution = "demo"\nsummary = "A test"\n')

    def settings(self, text: str) -> None:
        """Write queue.toml."""
        (self.queue / "queue.toml").write_text(text)

    def release(self, version: str, files: Mapping[str, str]) -> None:
        """Fetch a release with these files."""
        wheel = world.wheel(self.root, dict(files), version=version)
        fetch.fetch(str(wheel), cache=self.cache / "releases")

    def series(
        self,
        version: str,
        patches: Mapping[str, str],
        sketches: Mapping[str, str] | None = None,
        lines: str | None = None,
    ) -> None:
        """Write the series for a release, without a lock."""
        folder, post = self.queue / version, self.queue / "post"
        folder.mkdir()
        post.mkdir(exist_ok=True)
        for name, text in patches.items():
            (folder / name).write_text(text)
        for stem, text in (sketches or {}).items():
            (post / f"{stem}.pyi").write_text(text)
        (folder / "series").write_text(
            "".join(f"{name}\n" for name in patches) if lines is None else lines
        )

    @property
    def places(self) -> Places:
        """The queue as it is on disk now, and the folders of this lab."""
        return Places(queues.open(self.queue), self.cache, self.state)

    def rebase(
        self, onto: str, source: str | None = None, *, again: bool = False, dry: bool = False
    ) -> tuple[list[Step], Done]:
        """Rebase until it ends or waits; return its steps and how far it came."""
        asked = beginning.begin(self.places, onto, source, replace_it=again or dry, partial=again)
        with road.walking(self.places, asked) as walk:
            return self._go(walk, dry)

    def go_on(self, *, force: bool = False, skip: bool = False) -> tuple[list[Step], Done]:
        """Continue, or skip, and go on."""
        asked = self.places.folder.load()
        assert asked is not None
        with road.walking(self.places, asked) as walk:
            first = []
            if skip:
                first = [walk.skip()]
            elif asked.waiting is not None:
                first = [walk.resolve(force=force)]
            steps, done = self._go(walk, dry=False)
            return [*first, *steps], done

    @staticmethod
    def _go(walk: road.Walk, dry: bool) -> tuple[list[Step], Done]:
        steps = list(walk.go(dry=dry))
        if dry or (steps and steps[-1].word.stuck):
            waiting = steps[-1] if not dry else None
            return steps, Done(walk.progress, waiting=waiting)
        return steps, walk.end()

    def files(self) -> dict[str, bytes]:
        """Return every file of the queue."""
        return {
            str(path.relative_to(self.queue)): path.read_bytes()
            for path in sorted(self.queue.rglob("*"))
            if path.is_file()
        }
