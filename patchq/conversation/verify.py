"""`audit --verify`: every text file of a distribution, hashed there and compared here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from patchq import standing
from patchq.audit import held, verified
from patchq.conversation.view import Aim
from patchq.errors import PatchqError
from patchq.model import Sha256, Survey
from patchq.transport.channel import Conversation

if TYPE_CHECKING:
    from patchq.releases import record
    from patchq.releases.store import Store

# Not text, by their names' ends: nobody edits them by hand, and they are most of the bytes.
BINARIES = tuple(
    f".{kind}"
    for kind in """
    so a o dll dylib pyd lib exe bin cubin fatbin pyc pyo whl egg zip gz xz bz2 zst tar png jpg
    jpeg gif webp ico pdf ttf woff woff2 npy npz pt onnx safetensors gguf parquet mp3 wav mp4
    """.split()
)


def verify(
    aim: Aim, distribution: str, survey: Survey, locks: held.Locks
) -> Conversation[verified.Checked]:
    """Ask for the files that differ from RECORD, and compare with the release store.

    `locks`: those of each queue in sight, by release; they say what a patched file should be.
    """
    known: dict[str, dict[str, Sha256 | None]] = aim.shared.once("RECORDs", dict)
    reply = yield aim.request("hash", distribution, skip=list(BINARIES), known=list(known))
    ok = reply.message["ok"]
    name = ok.get("record")
    if name is not None and name not in known:
        known[name] = _digests(rows(reply.blobs.get(name), survey.site))
    seen = seen_of(ok, known[name] if name is not None else {})
    have = survey.installed
    # The store of what was asked for: a name that the host says opens nothing here.
    releases = _releases(aim, distribution, have.version) if have is not None else ()
    return verified.check(seen, held.expected(survey.stack, locks), releases)


def seen_of(ok: Mapping[str, Any], listed: verified.Digests) -> verified.Seen:
    """Return the answer to ``hash`` as a value; `listed` is what RECORD says of each file."""
    differs, added, blank = (
        {path: digest and Sha256(digest) for path, digest in ok[key].items()}
        for key in ("differs", "added", "blank")
    )
    return verified.Seen(listed, differs, added, ok["hashed"], blank, ok["more"])


def rows(data: bytes | None, site: str) -> dict[str, record.Row]:
    """Return what an environment's RECORD says of each file.

    Raises:
        PatchqError: it is none, or did not come along.
    """
    from patchq.releases import record

    why = "it did not come along"
    if data is not None:
        try:
            return record.parse(data)
        except record.RecordError as error:
            why = str(error)
    raise PatchqError(
        f"RECORD of a distribution in {site} cannot be read",
        why=why,
        mend="reinstall it with pip or uv",
    )


def _digests(rows: Mapping[str, record.Row]) -> dict[str, Sha256 | None]:
    """Return the digests of the files that are hashed: those inside, and no binaries."""
    return {
        path: Sha256(row.digest.hex())
        for path, row in rows.items()
        if row.digest is not None
        and row.algorithm == "sha256"
        and not path.startswith("/")
        and ".." not in path.split("/")
        and not path.endswith(BINARIES)
    }


def _releases(aim: Aim, distribution: str, version: str) -> tuple[verified.Release, ...]:
    """Return what the store knows of a version, a release per distinct wheel; read once a run."""

    def read() -> tuple[verified.Release, ...]:
        from patchq.releases.store import Store

        with Store(distribution, aim.cache() / "releases") as store:
            names = store.releases()
            for wanted in dict.fromkeys((version, standing.public(version))):
                mine = [name for name in names if name.partition("-")[0] == wanted]
                if mine:
                    return tuple(one for name in mine for one in _wheels(store, name))
        return ()

    return aim.shared.once(("release", distribution, version), read)


def _wheels(store: Store, release: str) -> Iterator[verified.Release]:
    from patchq.releases import record

    texts = frozenset(store.listing(release))
    for note in store.wheels(release):
        rows: dict[str, record.Row] = {}
        for name, data in store.dist_info(note).items():
            if name.endswith("/RECORD"):
                rows = record.parse(data)
        listed = {_installed(path): row for path, row in rows.items()}
        yield verified.Release(release, _digests(listed), texts)


def _installed(path: str) -> str:
    """Return where pip puts a wheel's file; ``NAME.data/scripts`` and such stay apart."""
    top, _, rest = path.partition("/")
    kind, _, inner = rest.partition("/")
    return inner if top.endswith(".data") and kind in ("purelib", "platlib") else path
