"""Which environment a request is about: its folder, its dist-info, its state.

Nothing here writes. What forbids to change the environment as a whole is found
here (`Environment.refusal`); what forbids to replace one path is in
`patchq.agent.obstacles`.
"""

from __future__ import annotations

import os
import stat
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from patchq.agent import facts, folders, forms, guise, installed, protocol, state
from patchq.agent.facts import RefusalError
from patchq.agent.installed import Installed


class Environment(NamedTuple):
    """One site-packages folder as a request names it; `home` is the state's folder."""

    distribution: str
    site: str
    real: str
    home: str
    installed: Optional[Installed]
    refusal: Optional[RefusalError]
    others: Dict[str, str]
    mounted: Dict[str, Tuple[str, str]]
    state: Optional[Dict[str, Any]]

    def at(self, path: str) -> str:
        """Return the absolute path of a site-relative one."""
        return self.site + "/" + path


def locate(request: Mapping[str, Any]) -> Environment:
    """Return the environment of a request; what forbids to change it is its `refusal`."""
    distribution, target = request["distribution"], request.get("target")
    reason = forms.distribution(distribution)
    if reason is not None:
        raise RefusalError(
            "unsafe-name",
            "no distribution can be called %.80r" % (distribution,),
            "%s; letters, digits and inner - _ . make one (PEP 503)" % reason,
            "correct the name",
        )
    paths = list(request.get("paths") or [entry["path"] for entry in request.get("entries", ())])
    for path in paths:
        _check(path)
    guise.regain()
    sites = _sites(target)
    if guise.take(sites):
        here = _found(request, sites, paths)
        if guise.fits(here.site, _touched(here, paths)):
            return here
        guise.regain()
    return _found(request, sites, paths)


def _touched(here: Environment, paths: List[str]) -> Iterator[str]:
    """Yield what a request may change: paths, state, RECORD."""
    yield from paths
    yield from (here.state or {"originals": ()})["originals"]
    yield state.home(here.distribution)
    if here.installed is not None:
        yield here.installed.folder + "/RECORD"


def _found(request: Mapping[str, Any], sites: List[str], named: List[str]) -> Environment:
    distribution, target, paths = request["distribution"], request.get("target"), list(named)
    home = state.home(distribution)
    states, refusal = _states(sites, home)
    for kept in states.values():
        paths += list((kept or {"originals": ()})["originals"])
    plain = bool(request.get("tree"))
    owners = installed.plain(sites) if plain else installed.find(sites, distribution, paths)
    chosen = owners.chosen
    site = chosen.site if chosen else next(iter([*states, *sites]), "")
    explicit = bool(target or request.get("explicit"))
    if not plain:
        refusal = refusal or installed.refusal(owners, distribution, sites, bool(target), explicit)
    mounted = facts.mounts()
    if chosen is not None and refusal is None:
        refusal = _exposed(site, home) or _unfit(chosen, home, mounted)
    return Environment(
        distribution,
        site,
        os.path.realpath(site) if site else "",
        os.path.join(site, home),
        chosen,
        refusal,
        owners.others,
        mounted,
        states.get(site),
    )


def _as_owner(record: os.stat_result) -> Optional[str]:
    """Return what to do where RECORD is another user's or another group's, None where not."""
    if record.st_uid != os.geteuid():
        option = "--sudo" if record.st_uid == 0 else "--sudo-user %s" % user(record.st_uid)
        return "patchq VERB %s on a host, or as %s here" % (option, user(record.st_uid))
    if facts.foreign(record.st_uid, record.st_gid) is not None:
        return "let an administrator make its group one of yours (chgrp -R)"
    return None


def user(uid: Optional[int] = None) -> str:
    """Return the name of a user, of the one that the agent runs as where none is given."""
    import pwd

    uid = os.getuid() if uid is None else uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "uid %d" % uid


def with_patches(target: Optional[str], kept: str = "state.json") -> List[str]:
    """Return the distributions that have a state, or another file of ours, beside the packages."""
    found = []
    for site in _sites(target):
        folder = os.path.join(site, state.FOLDER)
        for name in sorted(os.listdir(folder)) if facts.is_folder(folder) else ():
            known = forms.distribution(name) is None
            if known and os.path.isfile(os.path.join(folder, name, kept)):
                found.append(name)
    return found


def _sites(target: Optional[str]) -> List[str]:
    if not target:
        return folders.site_folders()
    if not facts.is_folder(target):
        raise RefusalError(
            "no-target",
            "there is no folder %s" % target,
            "--target names a folder that holds installed packages",
            "check the path",
        )
    return [os.path.abspath(target)]


def _states(
    sites: List[str], home: str
) -> Tuple[Dict[str, Optional[Dict[str, Any]]], Optional[RefusalError]]:
    """Return the state of each folder that has one of ours, and why one cannot be read."""
    found: Dict[str, Optional[Dict[str, Any]]] = {}
    refusal = None
    for site in sites:
        if facts.is_folder(os.path.join(site, home)):
            try:
                found[site] = state.load(os.path.join(site, home))
            except RefusalError as error:
                found[site], refusal = None, error
    return found, refusal


def _check(path: object) -> None:
    reason = protocol.unsafe(path) if isinstance(path, str) else "it is no text"
    if reason is not None:
        raise RefusalError(
            "unsafe-path",
            "the path %r is refused" % (path,),
            "a path must stay inside the package's own files; %s" % reason,
            "correct the patch",
        )


def _exposed(site: str, home: str) -> Optional[RefusalError]:
    """Return an error where some can write into the state that cannot write into the site."""
    info, why = os.stat(site), None
    own = os.path.join(site, state.FOLDER)
    for folder in (own, os.path.join(site, home)):
        found = facts.status(folder)
        if found is None or info.st_mode & 0o022 or not stat.S_ISDIR(found.st_mode):
            continue
        if found.st_uid not in (info.st_uid, os.geteuid(), 0):
            why = "%s belongs to %s" % (folder, user(found.st_uid))
        elif found.st_mode & 0o002:
            why = "anybody can write into %s" % folder
    if why is None:
        return None
    mend = "see who did that, then: chown -R %s %s; chmod -R go-w %s"
    return RefusalError(
        "not-writable",
        "the state in %s is not safe" % own,
        why,
        mend % (user(info.st_uid), own, own),
    )


def _unfit(
    chosen: Installed, home: str, mounted: Dict[str, Tuple[str, str]]
) -> Optional[RefusalError]:
    """Return why the state or RECORD could not be written, or None."""
    site, own = chosen.site, os.path.join(chosen.site, state.FOLDER)
    info = os.stat(site)
    why = None
    mend = "as the owner or as an administrator: install -d -m %o -o %s %s" % (
        info.st_mode & 0o7777,
        user(),
        own,
    )
    for folder in (os.path.join(site, home), own):
        if facts.is_link(folder):
            why, mend = (
                "%s is a symbolic link" % folder,
                "remove it; patchq keeps its state in a folder",
            )
        elif facts.is_folder(folder):
            real = os.path.realpath(folder)
            if os.stat(folder).st_dev != info.st_dev or real in mounted:
                why, mend = "%s is a mount point of its own" % folder, "unmount it"
            why = why or facts.unwritable(folder)
            break
    else:
        why = why or facts.unwritable(site)
    if why is None and chosen.record is not None:
        dist_info = os.path.join(site, chosen.folder)
        own_record = os.lstat(os.path.join(dist_info, "RECORD"))
        chattr = facts.flags(os.path.join(dist_info, "RECORD"))
        why = facts.unwritable(dist_info) or facts.foreign(own_record.st_uid, own_record.st_gid)
        why = why or ("RECORD is %s (chattr)" % chattr if chattr else None)
        mend = "run patchq as the user that owns %s" % dist_info
    if why is None:
        return None
    if chosen.record is not None:
        mend = _as_owner(os.lstat(os.path.join(site, chosen.folder, "RECORD"))) or mend
    return RefusalError("not-writable", "patchq cannot keep its state in %s" % site, why, mend)
