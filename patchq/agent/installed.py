"""Which dist-info owns the paths, and why the environment must not be written.

Folder names are scanned and normalised, never built: a vendor's build of another
name may own the same files, and it is served.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from patchq.agent import facts, folders, protocol, record, state
from patchq.agent.facts import RefusalError

# Installers that manage what they install by RECORD; `patchq fetch --into` writes "patchq".
BY_RECORD = ("pip", "uv", "patchq")


class Installed(NamedTuple):
    """One dist-info: `folder` is its name in `site`; `record` RECORD's bytes, or None."""

    name: str
    version: str
    site: str
    folder: str
    record: Optional[bytes]
    metadata: Optional[str]
    installer: str

    def to_json(self) -> Dict[str, object]:
        """Return it as a survey's answer has it."""
        return {
            "name": self.name,
            "version": self.version,
            "dist_info": self.folder,
            "record": None if self.record is None else protocol.sha256(self.record),
            "metadata": self.metadata,
            "installer": self.installer,
        }


def plain(sites: List[str]) -> "Owners":
    """Return a plain tree as one that owns all its paths: patchq's folder is its dist-info."""
    tree = Installed("tree", "", sites[0], state.FOLDER, None, None, "patchq")
    return Owners(tree, (), {})


class Owners(NamedTuple):
    """The dist-info that a request is about, its namesakes, and other owners of its paths."""

    chosen: Optional[Installed]
    twins: Tuple[str, ...]
    others: Dict[str, str]


def find(sites: List[str], distribution: str, paths: Iterable[str]) -> Owners:
    """Return the dist-info whose RECORD lists `paths`, else the one of that name."""
    wanted = list(paths)
    tops = {path.split("/")[0].encode("utf-8", "surrogateescape") for path in wanted}
    named: List[Tuple[str, str]] = []
    listing: Dict[Tuple[str, str], List[str]] = {}
    for site in sites:
        for folder in _dist_infos(site):
            if state.normalise(_split(folder)[0]) == state.normalise(distribution):
                named.append((site, folder))
            data = facts.optional(os.path.join(site, folder, "RECORD"))
            if data is not None and any(top in data for top in tops):
                listed = [path for path in wanted if record.find(data, path) is not None]
                if listed:
                    listing[site, folder] = listed
    order = [key for key in named if key in listing] + list(listing) + named
    if len(named) > 1:
        # The first folder on sys.path is the one that is imported; in it, who has the files.
        ranks = {key: _agreement(key, listing.get(key, [])) for key in order}
        order.sort(key=lambda key: (sites.index(key[0]), -ranks[key], -_written(key)))
    if not order:
        return Owners(None, (), {})
    site, folder = order[0]
    chosen = _load(site, folder)
    twins = [os.path.join(*key) for key in named if key != order[0]]
    others = {}
    for key, listed in listing.items():
        if key != order[0] and os.path.join(*key) not in twins:
            if key[0] != site:
                twins.append(os.path.join(*key))
            others.update(dict.fromkeys(listed, key[1]))
    return Owners(chosen, tuple(dict.fromkeys(twins)), others)


def _agreement(key: Tuple[str, str], listed: List[str]) -> int:
    """Return how many of the listed files are there as this dist-info's RECORD has them."""
    data = facts.optional(os.path.join(*key, "RECORD")) or b""
    digests = {path: record.digest(data, path) for path in listed}
    return sum(
        digest is not None and facts.look(os.path.join(key[0], path))[0].sha256 == digest
        for path, digest in digests.items()
    )


def _written(key: Tuple[str, str]) -> int:
    found = facts.status(os.path.join(*key, "RECORD"))
    return found.st_mtime_ns if found is not None else 0


def refusal(
    owners: Owners, distribution: str, sites: List[str], target: bool, explicit: bool
) -> Optional[RefusalError]:
    """Return why no verb may change this distribution here, or None."""
    chosen = owners.chosen
    if chosen is None:
        return _absent(distribution, sites)
    where = os.path.join(chosen.site, chosen.folder)
    if owners.twins:
        return RefusalError(
            "installed-twice",
            "%s is installed twice" % distribution,
            "%s is the one that is imported; also found: %s" % (where, ", ".join(owners.twins)),
            _one_of(owners.twins, chosen),
        )
    if _editable(where, chosen.record or b""):
        return RefusalError(
            "editable",
            "%s is an editable install" % distribution,
            "its files are a work tree, which %s only points to" % where,
            "use git in that tree, or install the wheel",
        )
    return _unlisted(chosen, where, distribution) or (
        None if explicit else _managed(chosen, where, target)
    )


def _one_of(twins: Tuple[str, ...], chosen: Installed) -> str:
    """Return what to do about a second dist-info."""
    beside = [twin for twin in twins if os.path.dirname(twin) == chosen.site]
    if len(beside) < len(twins):
        return "uninstall one of them, or name the folder with --target"
    # `pip install --target --upgrade` and a copy over the tree leave the older one behind.
    return "rm -r %s   # if those are of a version that was replaced" % " ".join(beside)


def _unlisted(chosen: Installed, where: str, distribution: str) -> Optional[RefusalError]:
    """Return why RECORD does not tell the files of a distribution, or None."""
    data = chosen.record
    what = why = None
    if data is None:
        what = None if chosen.installer == "patchq" else "%s has no RECORD" % where
    elif not data.strip():
        what = "RECORD in %s is empty" % where
    elif any(b"\n" + start in b"\n" + data for start in _other_spellings(chosen.site)):
        what = "RECORD in %s does not name files as installers do" % where
        why = "its rows begin with / or ./ where paths count from site-packages"
    if what is None:
        return None
    why = why or "without it nobody can tell which files belong to %s" % distribution
    return RefusalError("no-record", what, why, "reinstall it with pip or uv")


def _other_spellings(site: str) -> List[bytes]:
    own = site.encode("utf-8", "surrogateescape") + b"/"
    return [quote + start for start in (own, b"./") for quote in (b"", b'"')]


def _managed(chosen: Installed, where: str, target: bool) -> Optional[RefusalError]:
    mend = "name the environment with --python or --target if you mean it"
    if chosen.installer not in BY_RECORD:
        owner = chosen.installer or _dpkg(where) or "no installer that says its name"
        return RefusalError(
            "foreign-installer",
            "%s is not managed by pip or uv" % chosen.folder,
            "it was installed by %s, which knows nothing of changed files" % owner,
            mend,
        )
    marker = None if target else folders.externally_managed()
    if marker is not None:
        return RefusalError(
            "externally-managed",
            "this Python is managed by the operating system",
            "%s exists" % marker,
            mend,
        )
    listed = _dpkg(where) or _conda(chosen)
    if listed:
        return RefusalError(
            "foreign-installer",
            "%s belongs to %s" % (where, listed),
            "its files are listed there",
            mend,
        )
    return None


def _absent(distribution: str, sites: List[str]) -> RefusalError:
    wanted = state.normalise(distribution)
    for site in sites:
        for name in os.listdir(site):
            stem, dot, kind = name.rpartition(".")
            old = dot and kind in ("egg-info", "egg-link", "egg")
            if old and state.normalise(stem.split("-")[0]) == wanted:
                return RefusalError(
                    "no-record",
                    "%s is installed without a RECORD" % distribution,
                    "found only %s" % os.path.join(site, name),
                    "reinstall it with pip or uv",
                )
    return RefusalError(
        "not-installed",
        "%s is not installed here" % distribution,
        "no dist-info of that name in %s" % (", ".join(sites) or "any site-packages folder"),
        "name another environment with --python, --target or --host",
    )


def _dist_infos(site: str) -> List[str]:
    try:
        names = sorted(os.listdir(site))
        # pip renames what it takes away to ~..., and minds nothing that is called so.
        return [one for one in names if one.endswith(".dist-info") and not one.startswith("~")]
    except FileNotFoundError:
        return []


def _split(folder: str) -> Tuple[str, str]:
    name, _, version = folder[: -len(".dist-info")].rpartition("-")
    return name, version


def _load(site: str, folder: str) -> Installed:
    where = os.path.join(site, folder)
    # uv's link mode "symlink" makes links of METADATA and its like, never of RECORD.
    metadata = facts.optional(os.path.join(where, "METADATA"), follow=True)
    fields = dict(zip(("Name", "Version"), _split(folder)))
    for line in (metadata or b"").split(b"\n"):
        key, _, value = line.partition(b":")
        if not line.strip():
            break
        if key in (b"Name", b"Version"):
            fields[key.decode()] = value.strip().decode("utf-8", "replace")
    installer = facts.optional(os.path.join(where, "INSTALLER"), follow=True) or b""
    return Installed(
        fields["Name"],
        fields["Version"],
        site,
        folder,
        facts.optional(os.path.join(where, "RECORD")),
        None if metadata is None else protocol.sha256(metadata),
        installer.strip().decode("utf-8", "replace"),
    )


def _editable(where: str, rows: bytes) -> bool:
    data = facts.optional(os.path.join(where, "direct_url.json"), follow=True)
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        if json.loads(data or b"{}").get("dir_info", {}).get("editable"):
            return True
    # Older tools leave no such note: a .pth line, or a finder, is all that there is of code.
    if b".pth" not in rows:
        return False
    names = [line.split(b",")[0] for line in rows.split(b"\n")]
    lines = any(name.endswith(b".pth") and b"/" not in name for name in names)
    return lines and not any(name.endswith(b".py") and b"/" in name for name in names)


def _dpkg(where: str) -> Optional[str]:
    """Return the Debian package that lists this dist-info; only asked where dpkg puts files."""
    lists = "/var/lib/dpkg/info"
    if not where.startswith(("/usr/", "/opt/")) or where.startswith("/usr/local/"):
        return None
    if not os.path.isdir(lists):
        return None
    line = os.fsencode("\n" + where + "\n")
    for name in os.listdir(lists):
        if name.endswith(".list") and line in facts.read(os.path.join(lists, name)):
            return "dpkg (%s)" % name[:-5]
    return None


def _conda(chosen: Installed) -> Optional[str]:
    # PREFIX/lib/pythonX.Y/site-packages → PREFIX/conda-meta
    meta = os.path.join(chosen.site, "../../../conda-meta")
    if not os.path.isdir(meta):
        return None
    line = os.fsencode("/" + chosen.folder + "/")
    start = state.normalise(chosen.name)
    for name in os.listdir(meta):
        ours = name.endswith(".json") and state.normalise(name).startswith(start)
        if ours and line in facts.read(os.path.join(meta, name)):
            return "conda (%s)" % name[:-5]
    return None
