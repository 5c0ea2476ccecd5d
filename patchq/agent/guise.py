"""In whose guise root works in another user's tree.

Whoever owns a folder can put a link in its place at any moment, also between a check and
what was checked for, and root would follow it anywhere. So where all that a request is about
belongs to one other user, root acts as that user until the request is answered: the kernel
then refuses whatever that user could not have done without patchq. Where owners are mixed, a
new file could not keep its owner, and root stays root.
"""

from __future__ import annotations

import contextlib
import os
from typing import Dict, Iterable, Iterator, List, Tuple

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
# Groups that root had before: none while it is itself.
_before: List[Tuple[int, List[int]]] = []


def take(sites: List[str]) -> bool:
    """Act as the one user, other than root, who owns folders of `sites`; False for none."""
    owners = {(info.st_uid, info.st_gid) for info in map(os.stat, sites) if info.st_uid}
    if os.geteuid() != 0 or len({uid for uid, _ in owners}) != 1:
        return False
    uid, gid = min(owners)
    mine = [os.path.realpath(site) for site in sites if os.stat(site).st_uid == uid]
    _before.append((os.getegid(), os.getgroups()))
    try:
        gid, groups = _groups(uid, gid)
        os.setgroups(groups)
        os.setegid(gid)
        os.seteuid(uid)
        if not any(_shut(site, uid) for site in mine):
            return True
    except OSError:  # a container that has no such user, or /proc that hides
        pass
    regain()
    return False


def fits(site: str, paths: Iterable[str]) -> bool:
    """Return whether all that is at `paths` of a site, and on the way, is the acting user's."""
    seen: Dict[str, None] = dict.fromkeys(paths)
    return os.stat(site).st_uid == os.geteuid() and all(_own(site, path) for path in seen)


def regain() -> None:
    """Be root again, where root acts as another."""
    if _before:
        os.seteuid(0)
        gid, groups = _before[0]
        os.setegid(gid)
        os.setgroups(groups)
        _before.clear()


@contextlib.contextmanager
def off() -> Iterator[None]:
    """Be root for what is nowhere in the user's tree."""
    uid = os.geteuid()
    if not _before:
        yield
        return
    os.seteuid(0)
    try:
        yield
    finally:
        os.seteuid(uid)


def _groups(uid: int, gid: int) -> Tuple[int, List[int]]:
    """Return the main group of a user and all groups, as a login would give them."""
    import pwd

    try:
        known = pwd.getpwuid(uid)
    except KeyError:
        return gid, [gid] if gid else []
    return known.pw_gid, os.getgrouplist(known.pw_name, known.pw_gid)


def _shut(folder: str, uid: int) -> bool:
    """Return whether another user's folder keeps the acting user away from a tree.

    Then that user cannot meddle there, nor can root in this guise do anything.
    """
    way = ""
    for part in folder.split("/")[:-1]:
        way += part + "/"
        if os.stat(way).st_uid == uid:
            return False  # what is below is the user's to open
        if not os.access(way, os.X_OK, effective_ids=True):
            return True
    return False


def _own(site: str, path: str) -> bool:
    """Return whether a path and its folders below a site belong to the acting user.

    Names are looked up in folders that are held open: nothing is followed that could
    make what is another's seem to be here.
    """
    uid, groups = os.geteuid(), {os.getegid(), *os.getgroups()}
    handle = os.open(site, _FOLDER)
    try:
        for part in path.split("/"):
            info = os.stat(part, dir_fd=handle, follow_symlinks=False)
            if info.st_uid != uid or info.st_gid not in groups:
                return False
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
    except OSError:  # it ends here: a file, a link, nothing
        pass
    finally:
        with contextlib.suppress(OSError):
            os.close(handle)
    return True
