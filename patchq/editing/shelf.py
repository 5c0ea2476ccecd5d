"""A series while patches come into it: who may, where they stand, whose header they have.

Nothing is written here; what comes out is an `Edit`. The rules and the words are quilt's
(scripts ``import``): a patch stands above the top one that is on, and in the place of one of
its name only if that is asked for and it is not on.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from patchq.conversation import desk
from patchq.conversation.desk import Desk
from patchq.engine import apply, cuts, diff, lines
from patchq.engine.landing import Tree
from patchq.errors import PatchqError, QuiltError, UsageError
from patchq.model import Patch
from patchq.queue import arrangement, editing, patchfile, reading
from patchq.queue import series as series_file
from patchq.queue.series import SeriesEntry, SeriesFile


class Shelf:
    """The series of a release; `force` replaces patches, `keep` says whose header stays.

    `keep` is quilt's ``-d``: the old one (o), all (a), the new one (n), "" to be asked.
    """

    def __init__(
        self, at: Desk, release: str, listed: SeriesFile, *, force: bool = False, keep: str = ""
    ) -> None:
        self.at, self.release, self.listed = at, release, listed
        self.force, self.keep = force, keep
        self.files: dict[str, bytes | None] = {}
        self.replaced: list[str] = []
        held = at.seen.applied
        self.last = held[-1].patch if held else None

    def folder(self) -> Path:
        """Return where the patches of the series are."""
        return self.at.seen.queue.folder / self.release

    def admit(self, name: str, source: Path | None, again: str) -> None:
        """Check that a patch of this name may come in; `again` is the command that replaces it.

        Raises:
            PatchqError: one of that name is on, or there and not to be replaced.
        """
        _checked(name)
        if any(one.patch == name for one in self.at.seen.applied):
            raise QuiltError(
                f"Patch {name} is applied",
                why="what is on is not replaced under the files that it changed",
                mend=f"patchq pop, until {name} is off; or: patchq import -P ANOTHER-NAME ...",
            )
        there = reading.read(self.folder() / name)
        same = source is not None and there is not None and source.samefile(self.folder() / name)
        if name in self.names:
            if same:
                raise QuiltError(
                    f"Patch {name} already exists in series.",
                    why=f"{source} is that patch",
                    mend="patchq series",
                )
            if not self.force:
                raise QuiltError(
                    f"Patch {name} exists. Replace with -f.",
                    why=f"{self.folder()}/series has it",
                    mend=again,
                )
        elif there is not None and not same and not self.force:
            raise QuiltError(
                f"Patch {name} exists. Replace with -f.",
                why=f"{self.folder() / name} is there, though the series does not have it",
                mend=again,
            )

    @property
    def names(self) -> Sequence[str]:
        """The patches of the series, bottom to top."""
        return [one.name for one in self.listed.entries]

    def put(self, entry: SeriesEntry, text: bytes) -> None:
        """Take a patch in: in the place of the one of its name, else above the last one.

        Raises:
            PatchqError: the headers differ, and it was not said which stays.
        """
        name = editing.patch(self.release, entry.name)
        there = reading.read(self.folder() / entry.name)
        if entry.name in self.names:
            self.replaced.append(entry.name)
            text = text if there is None else self._merged(there, text)
            if not self.at.seen.tree:
                self.listed = arrangement.optioned(self.listed, entry.name, 1, False)
        else:
            self.listed = arrangement.inserted(self.listed, entry, self.last)
            self.last = entry.name
        if text != there:
            self.files[name] = text

    def below(self, name: str, read: editing.Read) -> Tree:
        """Return the files that a patch of this name will meet: `read` has the pristine ones.

        Raises:
            PatchqError: a patch below does not fit.
        """
        names = self.names
        end = 0 if self.last is None else names.index(self.last) + 1
        end = names.index(name) if name in names else end
        files: dict[str, apply.File | None] = {}

        def tree(path: str) -> apply.File | None:
            return files[path] if path in files else read(path)

        for entry in self.listed.entries[:end]:
            done = apply.apply_patch(self._patch(entry), tree)
            if isinstance(done, apply.PatchRejected):
                raise PatchqError(
                    f"{entry.name} below does not fit on {self.release}",
                    why=done.message,
                    mend=f"patchq lint --queue {self.at.seen.queue.folder}",
                )
            files.update(done.after)
        return tree

    def edit(self) -> editing.Edit:
        """Return what is to be written."""
        queue = desk.queue_at(self.at, self.release)
        return editing.Edit(queue, self.release, self.listed, dict(self.files))

    def _patch(self, entry: SeriesEntry) -> Patch:
        text = self.files.get(editing.patch(self.release, entry.name))
        if text is None:
            text = patchfile.read(self.folder() / entry.name, entry.name)
        header, diffs = diff.parse(text, name=entry.name, strip=entry.strip)
        return Patch(entry.name, text, header, diffs, entry.strip, entry.reverse)

    def _merged(self, old: bytes, new: bytes) -> bytes:
        """Return the new patch with the header that is to stay."""
        heads = _header(old), _header(new)
        keep = self.keep or ("n" if not heads[0] or heads[0] == heads[1] else "")
        keep = keep or ("o" if not heads[1] else "")
        if not keep:
            was, now = (lines.decode(head).removesuffix("\n").split("\n") for head in heads)
            shown = list(difflib.unified_diff(was, now, lineterm=""))[2:]
            which = "Please use -d {o|a|n} to specify which patch header(s) to keep."
            raise QuiltError(
                "\n".join(("Patch headers differ:", *shown, which)),
                why="o is the old one, n the new one, a is all of both",
                mend="patchq import -f -d n FILE",
            )
        if keep == "n":
            return new
        return heads[0] + (b"---\n" + new if keep == "a" else new[len(heads[1]) :])


def _header(text: bytes) -> bytes:
    """Return all above the first diff."""
    rows = lines.split(text)
    found = cuts.cut(rows, source="the patch")
    return b"".join(rows[: found[0].start]) if found else text


def _checked(name: str) -> None:
    """Check that a patch can go by a name."""
    if any(char.isspace() for char in name):
        raise UsageError(
            f"Patch name '{name}' invalid: cannot contain spaces.",
            why="in a series the name ends where white space begins",
            mend="patchq import -P NAME.patch FILE",
        )
    if name == "series":
        raise UsageError(
            "No patch can be named 'series' as this would conflict with the series file",
            why="it lies in the same folder",
            mend="patchq import -P NAME.patch FILE",
        )
    series_file.parse(lines.encode(f"{name}\n"), name="the patch's name")
