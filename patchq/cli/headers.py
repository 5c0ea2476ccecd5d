"""The verb that shows and changes what stands above a patch's diffs."""

from __future__ import annotations

import datetime
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patchq.cli import editor
from patchq.cli.making import one
from patchq.cli.move import dry_run, ground
from patchq.cli.run import outcomes, run
from patchq.cli.target import Target, target_options
from patchq.errors import UsageError

if TYPE_CHECKING:
    from patchq.editing.heading import Clean


@click.command(short_help="Show or change the header of a patch")
@click.argument("patch", required=False)
@click.option("-a", "how", flag_value="append", help="Append what stands on stdin.")
@click.option("-r", "how", flag_value="replace", help="Replace it by what stands on stdin.")
@click.option("-e", "how", flag_value="edit", help="Open it in $EDITOR.")
@click.option("--backup", is_flag=True, help="Keep the old version as PATCH~.")
@click.option("--strip-diffstat", "diffstat", is_flag=True, help="Leave diffstats out.")
@click.option(
    "--strip-trailing-whitespace", "whitespace", is_flag=True, help="Strip the ends of lines."
)
@click.option(
    "--dep3", is_flag=True, help="Say what it lacks by DEP-3; with -e: begin with its fields."
)
@dry_run
@target_options
def header(
    patch: str | None,
    how: str | None,
    backup: bool,
    diffstat: bool,
    whitespace: bool,
    dep3: bool,
    dry_run: bool,
    **values: Any,
) -> int:
    """Show the header of the top patch, or of PATCH, on or not; -a, -r and -e change it.

    The diffs below it stay byte for byte. With --dep3 the header is held against Debian's
    rules for patch headers: exit code 1 where a field is missing or malformed.

    \b
    Examples:
      patchq header 10-pi
      echo 'Forwarded: https://example.org/pull/7' | patchq header -a 10-pi
      EDITOR=nano patchq header -e --dep3
    """
    from patchq.editing import heading

    target = one(values)
    _fits(how, dep3)
    clean = heading.Clean(diffstat, whitespace)
    if how is None and dep3:
        return run(target, lambda aim: heading.lint(aim, patch))
    if how is None:
        return run(target, lambda aim: heading.show(aim, patch, clean))
    if how == "edit":
        old, new = _edited(target, patch, dep3)
        change = _Change("replace", old, new, clean)
    else:
        change = _Change(how, None, sys.stdin.buffer.read(), clean)
    verb = "append" if how == "append" else ""
    return run(
        target,
        lambda aim: heading.change(aim, ground(dry_run, aim), patch, change, verb, backup),
        writing=True,
    )


def _fits(how: str | None, dep3: bool) -> None:
    if dep3 and how not in (None, "edit"):
        raise UsageError(
            "--dep3 goes with -e, or alone",
            why="with -e an empty header begins with DEP-3's fields; alone it is judged",
            mend="patchq header --dep3   # after the change",
        )


class _Change:
    """A header that is to be put in the place of another; `old` is what was edited."""

    def __init__(self, how: str, old: bytes | None, new: bytes, clean: Clean) -> None:
        self.how, self.old, self.new, self.clean = how, old, new, clean

    def __call__(self, header: bytes) -> bytes:
        """Return the new header.

        Raises:
            UsageError: the header is not the one that was edited.
        """
        if self.old not in (None, header, header + b"\n"):
            raise UsageError(
                "the header was changed while it was edited here",
                why="somebody else wrote to the patch meanwhile",
                mend="patchq header -e   # again, on what is there now",
            )
        if self.how == "append":
            return self._appended(header)
        return self.clean(self.new)

    def _appended(self, header: bytes) -> bytes:
        """Return a header with the text at its end, once.

        Where it is there already a run was cut short, and this one is to finish it.
        """
        text = self.clean(self.new)
        text += b"" if text.endswith(b"\n") else b"\n"  # as `headers.joined` ends it
        above = header.removesuffix(text)
        there = above != header and (not above or above.endswith(b"\n"))
        if there and text.strip() and self.clean(header) == header:
            return header
        return self.clean(header + self.new)


def _edited(target: Target, patch: str | None, dep3: bool) -> tuple[bytes, bytes]:
    """Return a patch's header, and what the user's editor made of it."""
    from patchq import gitbranch
    from patchq.editing import heading
    from patchq.queue import dep3 as fields

    found = outcomes(target, lambda aim: heading.show(aim, patch, heading.Clean()))
    (done,) = found.outcomes
    if done.error is not None:
        raise done.error
    assert done.report is not None
    shown = done.report.lines
    old = "".join(f"{line}\n" for line in shown).encode("utf-8", "surrogateescape")
    today = datetime.date.today()
    start = fields.template(gitbranch.identity(), today) if dep3 and not old else old
    with tempfile.TemporaryDirectory(prefix="patchq-header-") as folder:
        file = Path(folder, f"{Path(str(done.report.document['patch'])).name}.header")
        file.write_bytes(start)
        editor.open_in([str(file)])
        return old, file.read_bytes()


COMMANDS: dict[str, Any] = {"header": header}
