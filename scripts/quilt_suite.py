"""quilt's own tests, run on patchq on a plain tree: each passes, differs on purpose, or fails.

The scripts and the program that runs them are quilt's, from Debian's source package, and
are taken from there each time. `quilt` on their PATH is `patchq VERB --tree .`. Two things that
some scripts write out are read as parameters: the prefix of patch names (``patches/``;
patchq has none), and what to type in a message (``quilt VERB``).

tests/quilt/expected.toml says where patchq differs and why: the command, by its line in the
script, and what patchq says there. Anything else that differs is a failure, and so is a
difference that is listed and has gone.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

import quilt_source  # noqa: E402
import tomlkit  # noqa: E402

HERE = Path(__file__).parents[1]
EXPECTED = HERE / "tests/quilt/expected.toml"
WIDE = 4000  # of a report's line, so that what was printed and what was expected are told apart
_COMMAND = re.compile(r"\[([0-9]+)\] \$ (.*) -- (?:ok|failed)$")
_SUMMARY = re.compile(r"[0-9]+ commands \([0-9]+ passed, [0-9]+ failed\)$")
WRAPPER = """\
#!/bin/sh
# quilt's calling convention: options of a verb from the environment, then the verb's own.
verb=$1
shift
case $verb in
diff) set -- $QUILT_DIFF_ARGS "$@" ;;
refresh) set -- $QUILT_REFRESH_ARGS "$@" ;;
push) set -- $QUILT_PUSH_ARGS "$@" ;;
delete) set -- $QUILT_DELETE_ARGS "$@" ;;
esac
exec {python} -m patchq "$verb" --tree . "$@"
"""


@dataclass(frozen=True)
class Difference:
    """A command that prints something else than quilt does: `ours`, and `quilts`."""

    line: int
    command: str
    ours: tuple[str, ...]
    quilts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expected:
    """Where a script differs on purpose: why, the lines of the commands, and what they print.

    `arguments` are options of a verb that the user of quilt would have to give.
    """

    reason: str = ""
    skipped: bool = False
    arguments: Mapping[str, str] = field(default_factory=dict)
    ours: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What became of one script; `found` differs, `new` is what nobody expects."""

    name: str
    word: str
    commands: int
    found: tuple[Difference, ...] = ()
    new: tuple[Difference, ...] = ()
    gone: tuple[int, ...] = ()
    trouble: str = ""


def main() -> int:
    """Run the scripts that are named, or all; return the exit code."""
    parser = argparse.ArgumentParser(description="Run quilt's own tests on patchq.")
    parser.add_argument("name", nargs="*", help="scripts, without .test; all if none is named")
    parser.add_argument(
        "--write",
        action="store_true",
        help="note what patchq says now where it differs on purpose",
    )
    parser.add_argument("-v", action="store_true", help="show every difference, expected ones too")
    given = parser.parse_args()
    expected = read(EXPECTED)
    with tempfile.TemporaryDirectory(prefix="quilt-suite-") as folder:
        source = quilt_source.unpack(Path(folder))
        names = given.name or sorted(path.stem for path in source.glob("test/*.test"))
        environment = prepare(Path(folder), source, names)
        outcomes = []
        with ThreadPoolExecutor(2) as pool:
            for one in pool.map(
                lambda name: run(name, source, environment, expected, given.v), names
            ):
                outcomes.append(one)
                tell(one, expected.get(one.name, Expected()))
    if given.write:
        write(outcomes)
    if not given.name:
        for name in expected.keys() - set(names):
            print(f"expected.toml speaks of {name}, which is no script")
            return 1
    count = {word: sum(one.word == word for one in outcomes) for word in WORDS}
    print("; ".join(f"{number} {word}" for word, number in count.items()))
    return int(count["fail"] > 0)


WORDS = ("pass", "differ on purpose", "fail")


def read(path: Path) -> dict[str, Expected]:
    """Return what is expected of each script that differs."""
    out = {}
    for name, table in tomllib.loads(path.read_text()).items():
        ours = {
            int(line): tuple(text.splitlines()) for line, text in table.get("ours", {}).items()
        }
        given = table.get("arguments", {})
        out[name] = Expected(table["reason"], table.get("skipped", False), given, ours)
    return out


def write(outcomes: Iterable[Outcome]) -> None:
    """Note what patchq says in scripts that have a reason to differ."""
    document = tomlkit.parse(EXPECTED.read_text())
    for one in outcomes:
        table = document.get(one.name)
        if table is None or table.get("skipped"):
            continue
        table.pop("ours", None)
        ours = tomlkit.table()
        for diff in one.found:
            text = "".join(f"{line}\n" for line in diff.ours)
            ours.add(str(diff.line), tomlkit.string(text, multiline=text.count("\n") > 1))
        if one.found:
            table.add("ours", ours)
    EXPECTED.write_text(re.sub(r"(?<=[^\n]\n)(\[[^.\]]+\]\n)", r"\n\1", tomlkit.dumps(document)))


def prepare(folder: Path, source: Path, names: Iterable[str]) -> dict[str, str]:
    """Put `quilt` and the scripts in place; return the environment that they run in."""
    programs = folder / "bin"
    programs.mkdir()
    wrapper = programs / "quilt"
    wrapper.write_text(WRAPPER.format(python=sys.executable))
    wrapper.chmod(0o755)
    for name in names:
        script = source / f"test/{name}.test"
        script.write_bytes(adapted(script.read_bytes()))
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME", "TMPDIR", "VIRTUAL_ENV")
    }
    return {
        **kept,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(HERE),
        "PATCHQ_CACHE": str(folder / "cache"),
        "PATCHQ_STATE": str(folder / "state"),
        "LANG": "C",
        "LC_ALL": "C",
        "QUOTING_STYLE": "literal",
        "COLUMNS": str(WIDE),
        "P": "",
        "_P": "",
        "QUILT_PC": ".pc",
        "QUILT_DIFF_ARGS": "--no-timestamps",
        "QUILT_REFRESH_ARGS": "--no-timestamps",
    }


def adapted(script: bytes) -> bytes:
    """Return a script with its parameters for written-out ones in what `quilt` is to print."""
    out = []
    command = b""
    for line in script.split(b"\n"):
        if line.lstrip().startswith(b"$ "):
            command = line.lstrip()
        elif line.lstrip().startswith(b">") and re.search(rb"^\$ (.*\| )?quilt ", command):
            line = re.sub(
                rb"(patch |Patch |stored as |created as |^\s*>[ =+]*)(\.\./)?patches/",
                rb"\1",
                line,
            )
            line = re.sub(rb"([`'])quilt (\w+)", rb"\1patchq \2 --tree .", line)
        out.append(line)
    return b"\n".join(out)


def run(
    name: str,
    source: Path,
    environment: Mapping[str, str],
    expected: Mapping[str, Expected],
    verbose: bool,
) -> Outcome:
    """Run one script and compare what differs with what is expected to."""
    known = expected.get(name, Expected())
    if known.skipped:
        return Outcome(name, "differ on purpose", 0)
    words = ["perl", "./run", "-v", f"{name}.test"]
    if os.geteuid() == 0:  # the scripts count on permissions, which root passes by
        words = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *words]
    given = {f"QUILT_{verb.upper()}_ARGS": text for verb, text in known.arguments.items()}
    done = subprocess.run(
        words,
        cwd=source / "test",
        env={**environment, **given},
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    text = done.stdout.decode("utf-8", "surrogateescape")
    # Where the script runs is another folder each time.
    place = rf"({re.escape(str(source))}/test/)?{re.escape(name)}\.test\.[0-9]+"
    commands, found = differences(text, lambda line: re.sub(place, "HERE", line))
    if not _SUMMARY.search(text.strip()) or bool(found) != bool(done.returncode):
        return Outcome(name, "fail", commands, trouble=(text + done.stderr.decode())[-2000:])
    new = tuple(one for one in found if known.ours.get(one.line) != one.ours)
    gone = tuple(known.ours.keys() - {one.line for one in found})
    word = "fail" if new or gone else "differ on purpose" if found or given else "pass"
    return Outcome(name, word, commands, found, found if verbose else new, gone)


def differences(text: str, plain: Callable[[str], str]) -> tuple[int, tuple[Difference, ...]]:
    """Read the runner's report: how many commands it ran, and those that differ."""
    out: list[Difference] = []
    count, column = 0, (WIDE >> 1) - 3
    rows: list[tuple[str, str]] = []
    at: re.Match[str] | None = None
    bad = False
    for line in [*text.split("\n"), "[0] $ end -- ok"]:
        found = _COMMAND.match(line)
        if found is None:
            if at is not None and line[column + 1 : column + 3] in ("==", "!=", "=~", "!~"):
                rows.append((line[:column].rstrip(" "), line[column + 4 :]))
            continue
        if at is not None and bad:
            ours = tuple(plain(mine) for mine, _ in rows if mine != "~")
            quilts = tuple(theirs for _, theirs in rows if theirs != "~")
            out.append(Difference(int(at[1]), at[2], ours, quilts))
        count, rows, at, bad = count + 1, [], found, line.endswith("-- failed")
    return count - 1, tuple(out)


def tell(one: Outcome, known: Expected) -> None:
    """Print what became of a script."""
    print(f"{one.word:<17} {one.name}" + f": {known.reason}" * (one.word == WORDS[1]))
    if one.trouble:
        print(one.trouble)
    for diff in one.new:
        print(f"    {one.name}.test:{diff.line}: $ {diff.command}")
        for line in diff.ours:
            print(f"        patchq: {line}")
        for line in diff.quilts:
            print(f"        quilt:  {line}")
    for line in one.gone:
        print(f"    {one.name}.test:{line}: differs no more; take it out of {EXPECTED.name}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
