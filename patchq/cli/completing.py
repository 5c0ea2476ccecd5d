"""Completion in bash, zsh and fish: the scripts are click's, the values are patchq's.

A script has the shell run `patchq` with ``_PATCHQ_COMPLETE`` at each key; `main` hands that
to `answer`.
"""

from __future__ import annotations

import os
import shlex
from typing import Any

import click
from click import shell_completion

from patchq.cli import candidates
from patchq.cli.run import json_option, show
from patchq.report import Report

VARIABLE = "_PATCHQ_COMPLETE"
SHELLS = ("bash", "zsh", "fish")

# The values of parameters, by their names; a file or a folder is the shell's to complete.
_VALUES = {
    **dict.fromkeys(("queue",), candidates.queues),
    **dict.fromkeys(("release", "onto", "source", "old", "new"), candidates.releases),
    **dict.fromkeys(("patch", "upto", "below", "only", "combine"), candidates.patches),
    **dict.fromkeys(("host", "from_host", "spec"), candidates.hosts),
}
_FILES = {
    **dict.fromkeys(("add", "edit", "patches", "annotate", "restore"), candidates.installed),
    **dict.fromkeys(("remove", "revert", "diff"), candidates.patched),
}
_PATHS = {
    **dict.fromkeys(("python", "inventory", "html", "mbox", "prometheus", "file"), False),
    **dict.fromkeys(("command", "words"), False),
    **dict.fromkeys(("target", "tree", "into", "folder"), True),
}

# As click's, but for what bash takes for the end of a word: `@rack1`, `me@host`, `--queue=q`.
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line=${COMP_LINE:0:COMP_POINT} kind value
    local ends=${COMP_WORDBREAKS//[^@=:]/} word cut=
    word=${line##*[[:space:]]}
    [[ -n $ends ]] && cut=${word%%"${word##*[$ends]}"}
    COMPREPLY=()
    while IFS=',' read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$cut"}") ;;
        esac
    done < <(COMP_WORDS=$line %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class Bash(shell_completion.ShellComplete):
    """Completion for bash >= 4.4, by the line as it was typed."""

    name = "bash"
    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one at the cursor, and that one."""
        line = os.environ["COMP_WORDS"]
        try:
            words = shlex.split(line)
        except ValueError:  # a quote is open
            words = line.replace("'", " ").replace('"', " ").split()
        incomplete = "" if line[-1:].isspace() else words.pop()
        return words[1:], incomplete

    def format_completion(self, item: shell_completion.CompletionItem) -> str:
        """Return an item as the script reads it."""
        return f"{item.type},{item.value}"


shell_completion.add_completion_class(Bash)


def answer(cli: click.Command, instruction: str) -> int:
    """Answer a shell that asks for what may follow; `instruction` is the variable's value."""
    return shell_completion.shell_complete(cli, {}, "patchq", VARIABLE, instruction)


def equip(verb: str, command: click.Command) -> None:
    """Let the parameters of a verb know their values."""
    for parameter in command.params:
        name = parameter.name or ""
        values = _FILES.get(verb) if name == "file" else _VALUES.get(name)
        if parameter.type is not click.STRING or (verb, name) == ("fetch", "release"):
            continue
        if values is not None:
            parameter.type = candidates.Value(values)
        elif name in _PATHS:
            parameter.type = click.Path(file_okay=not _PATHS[name])


@click.command(short_help="Print the completion script of a shell")
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
def completion(shell: str, as_json: bool) -> int:
    """Print the script that lets bash (>= 4.4), zsh or fish complete patchq's words.

    Verbs, options, patches, queues, releases, files and the hosts of an inventory are
    completed. All of it is read from files here; no host is asked.

    \b
    Examples:
      eval "$(patchq completion bash)"      # in ~/.bashrc
      eval "$(patchq completion zsh)"       # in ~/.zshrc, after compinit
      patchq completion fish > ~/.config/fish/completions/patchq.fish
    """
    made = shell_completion.get_completion_class(shell)
    assert made is not None
    verbs = click.get_current_context().find_root().command
    script = made(verbs, {}, "patchq", VARIABLE).source()
    lines = tuple(script.strip("\n").split("\n"))
    return show(
        Report(lines, (), {"verb": "completion", "shell": shell, "script": script}), as_json
    )


COMMANDS: dict[str, Any] = {"completion": completion}
