"""quilt's source, from Debian, by apt's own tools and without a word in the system's settings.

The system's own sources name the mirror; a private list asks it for sources. The suites
are asked in turn, since a mirror need not have what its index names. The file that counts
is the one of `DIGEST`: what is expected of the tests is counted in its lines.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import platformdirs

VERSION = "0.68"
DIGEST = "fe8c09de03c106e85b3737c8f03ade147c956b79ed7af485a1c8a3858db38426"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
HELPER = "/usr/lib/apt/apt-helper"


def tarball() -> Path:
    """Return quilt's source as it was released; fetched once, then kept in the user's cache.

    Raises:
        SystemExit: no suite of the system's mirror has it.
    """
    kept = platformdirs.user_cache_path("patchq") / "quilt-suite" / f"quilt-{VERSION}.tar.gz"
    if not (kept.is_file() and _digest(kept) == DIGEST):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            _fetch(Path(folder), kept)
    return kept


def unpack(folder: Path) -> Path:
    """Unpack the source below a folder; return where it is."""
    subprocess.run(["tar", "-xzf", tarball(), "-C", folder, "--no-same-owner"], check=True)
    return folder / f"quilt-{VERSION}"


def _fetch(folder: Path, goal: Path) -> None:
    """Fetch the tarball from the first suite that has it."""
    mirrors = _mirrors()
    said = [] if mirrors else ["apt knows no mirror of Debian; mend: apt-get update"]
    for mirror, suite in mirrors:
        apt = _private(folder, mirror, suite)
        update = subprocess.run([*apt, "update", "-qq"], capture_output=True, text=True)
        asked = [*apt, "source", "--print-uris", "--only-source", "quilt"]
        listed = subprocess.run(asked, capture_output=True, text=True)
        # A line is: 'URI' FILE SIZE HASH
        rows = [line.split() for line in listed.stdout.splitlines() if line.startswith("'")]
        found = [row[0].strip("'") for row in rows if row[-1] == f"SHA256:{DIGEST}"]
        if not found:
            said.append(
                f"{suite}: {(update.stderr or listed.stderr).strip() or 'another version'}"
            )
            continue
        part = folder / "tarball"
        get = [HELPER, *apt[1:], "download-file", found[0], str(part), f"SHA256:{DIGEST}"]
        done = subprocess.run(get, capture_output=True, text=True)
        if done.returncode == 0 and _digest(part) == DIGEST:
            goal.write_bytes(part.read_bytes())
            return
        said.append(f"{suite}: {done.stderr.strip()}")
    raise SystemExit("\n".join((f"quilt {VERSION} can not be had from Debian:", *said)))


def _mirrors() -> list[tuple[str, str]]:
    """Return the mirror and the suite of each place to ask, the system's own suite first."""
    form = "$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)"
    ask = ["apt-get", "indextargets", "--format", form, "Created-By: Packages"]
    listed = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    out: dict[tuple[str, str], None] = {}
    for line in listed.splitlines():
        mirror, suite, component, *origin = line.split()
        if component == "main" and origin == ["Debian"] and "-" not in suite:
            out |= dict.fromkeys((mirror, name) for name in (suite, "trixie", "sid"))
    return list(out)


def _private(folder: Path, mirror: str, suite: str) -> list[str]:
    """Return apt-get with lists, sources and caches of its own below a folder."""
    place = folder / suite
    (place / "lists/partial").mkdir(parents=True, exist_ok=True)
    (place / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
    signed = f"[signed-by={KEYRING}] " if KEYRING.is_file() else ""
    (place / "sources.list").write_text(f"deb-src {signed}{mirror} {suite} main\n")
    options = {
        "Dir::Etc::SourceList": place / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": place / "lists",
        "Dir::Cache": place / "cache",
    }
    if os.geteuid() == 0:  # the folders are ours alone, which apt's own user can not enter
        options["APT::Sandbox::User"] = "root"
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["apt-get", *words]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
