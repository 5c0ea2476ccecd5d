"""The verbs that make a patch: new, add, remove, edit, revert, refresh."""

from __future__ import annotations

from typing import Any

import click

from patchq.cli.move import dry_run, ground
from patchq.cli.paths import paths_of
from patchq.cli.run import Target, run, target_of, target_options
from patchq.errors import UsageError

patch_option = click.option("-P", "patch", metavar="PATCH", help="Not the top patch, but this.")
names = click.argument("file", nargs=-1, required=True, metavar="FILE...")


def one(values: dict[str, Any]) -> Target:
    """Return the target of a verb that edits; it is one environment.

    Raises:
        UsageError: several hosts are named.
    """
    target = target_of(values)
    if target.several:
        raise UsageError(
            "a patch is made in one environment",
            why=f"{len(target.hosts)} hosts are named",
            mend="make it on one, then: patchq push -a -H HOST,HOST...",
        )
    return target


@click.command(short_help="Begin a patch on top of those that are on")
@click.argument("name")
@click.option("-p", "strip", type=click.Choice(["0", "1", "ab"]), default="1", help="quilt's -p.")
@dry_run
@target_options
def new(name: str, strip: str, dry_run: bool, **values: Any) -> int:
    """Begin the patch NAME on top; it is empty until it is refreshed.

    Where the queue has no series for the installed release yet, one is made.

    \b
    Example:
      patchq new 10-fix.patch --queue queues/mine
    """
    from patchq.editing import making

    number = 0 if strip == "0" else 1
    return run(
        one(values),
        lambda aim: making.new(aim, ground(dry_run, aim), name, number),
        writing=True,
    )


@click.command(short_help="Give files to the top patch, to be edited")
@names
@patch_option
@click.option("-f", "force", is_flag=True, help="Take edits along that belong to a patch below.")
@dry_run
@target_options
def add(
    file: tuple[str, ...], patch: str | None, force: bool, dry_run: bool, **values: Any
) -> int:
    """Give files to the top patch. Edit them then, and refresh it.

    A file that was edited before is no trap: what it was is known from the release. Each
    file gets a place of its own on the disk, so that no edit reaches an installer's cache.

    \b
    Examples:
      patchq add vllm/config/speculative.py
      patchq add --tree . src/main.c
    """
    from patchq.editing import making

    target = one(values)
    paths = paths_of(target, file)
    return run(
        target,
        lambda aim: making.add(aim, ground(dry_run, aim), paths, patch, force),
        writing=True,
    )


@click.command(short_help="Take files out of the top patch")
@names
@patch_option
@dry_run
@target_options
def remove(file: tuple[str, ...], patch: str | None, dry_run: bool, **values: Any) -> int:
    """Take files out of the top patch; they are again as the patches below leave them.

    \b
    Example:
      patchq remove vllm/config/speculative.py
    """
    from patchq.editing import making

    target = one(values)
    paths = paths_of(target, file)
    return run(
        target,
        lambda aim: making.remove(aim, ground(dry_run, aim), paths, patch),
        writing=True,
    )


@click.command(short_help="Undo edits that are not in the patch yet")
@names
@patch_option
@dry_run
@target_options
def revert(file: tuple[str, ...], patch: str | None, dry_run: bool, **values: Any) -> int:
    """Undo what was edited in files of the top patch since it was refreshed.

    \b
    Example:
      patchq revert vllm/config/speculative.py
    """
    from patchq.editing import making

    target = one(values)
    paths = paths_of(target, file)
    return run(
        target,
        lambda aim: making.revert(aim, ground(dry_run, aim), paths, patch),
        writing=True,
    )


@click.command(short_help="Give files to the top patch and open them in an editor")
@names
@target_options
def edit(file: tuple[str, ...], **values: Any) -> int:
    """Add files to the top patch, where they are not in it, and open them in $EDITOR.

    On a host the files are brought here, edited, and put back.

    \b
    Example:
      EDITOR=nano patchq edit vllm/config/speculative.py
    """
    from patchq.cli import editor

    target = one(values)
    return editor.edit(target, paths_of(target, file))


@click.command(short_help="Write the top patch anew from what was edited")
@click.argument("patch", required=False)
@click.option("-p", "strip", type=click.Choice(["0", "1", "ab"]), help="quilt's form of a diff.")
@click.option("-u", "unified", is_flag=True, help="A unified diff; it is always one.")
@click.option("-U", "context", type=click.IntRange(0), default=3, help="Lines of context.")
@click.option(
    "-z",
    "fork",
    is_flag=False,
    flag_value="",
    metavar="[NAME]",
    help="The edits become a new patch above the top one.",
)
@click.option("-f", "force", is_flag=True, help="Also where patches above have its files.")
@click.option("--no-index", "no_index", is_flag=True, help="No Index: lines.")
@click.option("--no-timestamps", is_flag=True, help="No times in the diff; there never are.")
@click.option("--sort", is_flag=True, help="Sort the files by name.")
@click.option("--diffstat", is_flag=True, help="Put a diffstat into the header.")
@click.option(
    "--strip-trailing-whitespace",
    "whitespace",
    is_flag=True,
    help="Strip white space at the ends of new lines.",
)
@click.option("--backup", is_flag=True, help="Keep the old version as PATCH~.")
@click.option("--only-added", is_flag=True, help="Leave edits of files that no patch has.")
@dry_run
@target_options
def refresh(patch: str | None, dry_run: bool, **values: Any) -> int:
    """Write the top patch anew, or PATCH, from what its files are now.

    The header stays as it is. Files that were edited and that no patch has go in, too,
    and are named. With -n the patch is shown and nothing is written.

    \b
    Examples:
      patchq refresh
      patchq refresh -z20-second.patch
    """
    from patchq.editing import formed, refreshing

    strip = values.pop("strip")
    how = formed.How(
        strip=strip,
        context=values.pop("context"),
        index=not values.pop("no_index"),
        sort=values.pop("sort"),
        diffstat=values.pop("diffstat"),
        whitespace=values.pop("whitespace"),
        backup=values.pop("backup"),
        force=values.pop("force"),
        take=not values.pop("only_added"),
        fork=values.pop("fork"),
    )
    for name in ("unified", "no_timestamps"):
        values.pop(name)
    return run(
        one(values),
        lambda aim: refreshing.refresh(aim, ground(dry_run, aim), patch, how),
        writing=True,
    )


COMMANDS = {
    "new": new,
    "add": add,
    "remove": remove,
    "edit": edit,
    "revert": revert,
    "refresh": refresh,
}
