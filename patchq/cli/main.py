"""`patchq`: the table of verbs, and the one place where an exception becomes an exit code.

A verb's module is imported when the verb is called: ``--help`` loads click and
this table, no more.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from patchq import __version__
from patchq.cli.plain import plain
from patchq.errors import ExitCode, Interrupted, PatchqError, QuiltError
from patchq.report import SCHEMA

# What a shell sets that asks for what may follow (`patchq.cli.completing`).
COMPLETE = "_PATCHQ_COMPLETE"
# Heading -> verb -> (module, one line). The order is the order of --help.
VERBS: dict[str, dict[str, tuple[str, str]]] = {
    "Make patches": {
        "new": ("making", "Begin a patch on top of those that are on"),
        "add": ("making", "Give files to the top patch, to be edited"),
        "remove": ("making", "Take files out of the top patch"),
        "edit": ("making", "Give files to the top patch and open them in an editor"),
        "refresh": ("making", "Write the top patch anew from what was edited"),
        "fold": ("importing", "Put a patch from stdin into the top patch"),
        "fork": ("arranging", "Go on with a copy of the top patch"),
        "revert": ("making", "Undo edits that are not in the patch yet"),
        "header": ("headers", "Show or change the header of a patch"),
        "shell": ("shelling", "Run a command; what it changes goes into the top patch"),
        "sketch": ("make", "Draft the post-condition that a patch implies"),
    },
    "Arrange the queue": {
        "init": ("beginning", "Make a queue for an installed distribution"),
        "queues": ("arrange", "List the queues in sight and their releases"),
        "import": ("importing", "Bring patches from elsewhere into the series"),
        "rename": ("arranging", "Give a patch another name"),
        "delete": ("arranging", "Take a patch out of the series"),
        "float": ("ordering", "Move a patch up, above those that are on"),
        "sink": ("ordering", "Move a patch down, below another or to the bottom"),
        "export": ("exchange", "Give the series to git, to mail, or as one diff"),
        "lint": ("arrange", "Judge a queue's series on its pristine releases"),
    },
    "Move along it": {
        "push": ("move", "Apply the next patch, N of them, up to one, or all"),
        "pop": ("move", "Take off the top patch, N of them, down to one, or all"),
        "goto": ("move", "Push or pop until a patch is on top"),
        "undo": ("move", "Take back the environment's last transaction"),
        "recover": ("move", "Finish or undo an interrupted transaction"),
    },
    "Look": {
        "status": ("look", "Say what is installed and which patches it has"),
        "series": ("look", "Name the patches of the series"),
        "applied": ("look", "Name the applied patches"),
        "unapplied": ("look", "Name the patches that are not applied"),
        "top": ("look", "Name the top patch"),
        "next": ("look", "Name the next patch to apply"),
        "previous": ("look", "Name the patch below the top"),
        "files": ("looking", "Name the files that a patch touches"),
        "patches": ("looking", "Name the patches that touch a file"),
        "diff": ("looking", "Show what a patch changes, or what is in no patch yet"),
        "show": ("looking", "Show a patch: its place, header, sketch and diff"),
        "annotate": ("looking", "Show which patch brought each line of a file"),
        "snapshot": ("looking", "Remember a plain tree, for diff --snapshot"),
        "grep": ("searching", "Search the files of a plain tree"),
        "graph": ("looking", "Draw which patches need which"),
        "overlap": ("look", "Show which patches touch the same lines"),
        "log": ("look", "Show the environment's receipts"),
        "check": ("look", "Judge the post-conditions on what is there"),
    },
    "Follow upstream": {
        "fetch": ("follow", "Read a release's pristine text from the index"),
        "rebase": ("follow", "Carry a series to another release"),
        "forecast": ("follow", "Say what each patch would meet on many releases"),
        "range-diff": ("follow", "Show how the series of two releases differ"),
    },
    "Reach hosts": {
        "hosts": ("hosts", "Show which hosts a selection means, and from where"),
        "audit": ("reach", "Say in a word how each environment stands"),
        "capture": ("restoring", "Make a patch of what was edited by hand"),
        "restore": ("restoring", "Put edited files back as they should be"),
    },
    "In your shell": {
        "completion": ("completing", "Print the completion script of a shell"),
    },
}
HOME = {verb: module for verbs in VERBS.values() for verb, (module, _) in verbs.items()}

# quilt(1): a prefix that is unique among these keeps quilt's meaning.
QUILT = """
    add annotate applied delete diff edit files fold fork graph grep header import init mail
    new next patches pop previous push refresh remove rename revert series setup shell
    snapshot top unapplied upgrade
""".split()

# Verbs of quilt that patchq has not, and what is there instead.
_ELSEWHERE = {
    "mail": "patchq export --mbox FILE writes the mails, and git send-email sends them",
    "setup": "unpack the sources with the packager's own tool, then: patchq push -a --tree DIR",
    "upgrade": "its records have one format only; there is nothing to upgrade",
}


class Verbs(click.Group):
    """A group that lists verbs under headings, loads them late and takes prefixes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(HOME)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in HOME:
            return None
        try:
            module = importlib.import_module(f"patchq.cli.{HOME[name]}")
        except KeyboardInterrupt as error:  # the verb did not begin
            raise Interrupted(
                "interrupted; nothing was changed",
                why="^C came before the verb began",
                mend="run it again",
            ) from error
        command: click.Command = module.COMMANDS[name]
        if COMPLETE in os.environ:
            from patchq.cli import completing

            completing.equip(name, command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs that begin as what is typed, and options."""
        lines = {verb: line for some in VERBS.values() for verb, (_, line) in some.items()}
        fits = [
            CompletionItem(verb, help=line)
            for verb, line in lines.items()
            if verb.startswith(incomplete)
        ]
        return [*fits, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, HOME))
        for title, verbs in VERBS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(verb.ljust(width), line) for verb, (_, line) in verbs.items()]
                )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, [full_verb(args[0]), *args[1:]])


def full_verb(word: str) -> str:
    """Return the verb that `word` is, or is an unambiguous prefix of.

    Raises:
        click.UsageError: no verb or several begin so.
    """
    if word in HOME or word.startswith("-"):
        return word
    quilts = [verb for verb in QUILT if verb.startswith(word)]
    fits = quilts if len(quilts) == 1 else [verb for verb in HOME if verb.startswith(word)]
    if len(fits) == 1 and fits[0] in HOME:
        return fits[0]
    if len(fits) > 1:
        raise click.UsageError(f"'{word}' is ambiguous: {', '.join(sorted(fits))}.")
    if fits and fits[0] in _ELSEWHERE:
        raise click.UsageError(f"patchq has no verb '{fits[0]}': {_ELSEWHERE[fits[0]]}.")
    if fits:
        raise click.UsageError(f"'{fits[0]}' is a verb of quilt that patchq does not have yet.")
    raise click.UsageError(f"No such verb '{word}'; 'patchq --help' lists them.")


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 failed, 2 nothing to do, 3 conflict (nothing was changed), "
    "4 host failed, 5 finding, 64 usage, 70 bug, 130 interrupted.",
)
@click.version_option(__version__, prog_name="patchq")
def cli() -> None:
    """Keep a queue of patches on installed Python packages, here and over SSH."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return what the shell is told."""
    if COMPLETE in os.environ:
        return _complete(os.environ[COMPLETE])
    args = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in args
    try:
        code = cli.main(args, prog_name="patchq", standalone_mode=False)
    except QuiltError as error:
        if error.brief and not as_json:
            click.echo(plain(error.what), err=True)
            return error.exit_code
        return _say(as_json, error.what, error.why, error.mend, error.exit_code)
    except PatchqError as error:
        return _say(as_json, error.what, error.why, error.mend, error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return ExitCode.USAGE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "patchq"
        return _say(as_json, error.format_message(), "", f"{command} --help", ExitCode.USAGE)
    except (click.Abort, KeyboardInterrupt):
        return _say(as_json, "interrupted", "", "", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except Exception:
        return _bug(as_json, args)
    return int(code or 0)


def script() -> None:
    """Be the console script."""
    sys.exit(main())


def _complete(instruction: str) -> int:
    """Answer a shell; what can not be told is no message on a line that is being typed."""
    from patchq.cli import completing

    try:
        return completing.answer(cli, instruction)
    except Exception:
        return ExitCode.FAILED


def _say(as_json: bool, what: str, why: str, mend: str, code: ExitCode) -> int:
    if as_json:
        error = {"what": what, "why": why, "mend": mend}
        click.echo(
            json.dumps({"schema": SCHEMA, "error": error, "exit_code": int(code)}, indent=1)
        )
    parts = [f"patchq: {what}"]
    parts += ["  why: " + "\n       ".join(why.split("\n"))] if why else []
    parts += [f"  mend: {mend}"] if mend else []
    click.echo(plain("\n".join(parts)), err=True)
    return code


def _bug(as_json: bool, args: list[str]) -> int:
    import platform

    from patchq.cli import places

    text = (
        f"patchq {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"command: patchq {' '.join(args)}\n\n{traceback.format_exc()}"
    )
    path = places.cache() / "last-bug.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        where = f"the report is in {path}"
    except OSError:
        where = text
    why = text.rstrip().rsplit("\n", 1)[-1]
    return _say(as_json, f"a bug in patchq; {where}", why, "send that report to us", ExitCode.BUG)
