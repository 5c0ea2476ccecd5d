"""Answer ``import``: import modules in a fresh process of the environment's interpreter.

The one request that runs what the environment holds, and only where the user asks for it.
The process is the agent's own user's (the tree's owner, where root acts as that one), in its
own group, without a terminal, with neither the agent's options (``-I -S``) nor its modules:
it starts as a program of the environment does. It writes no bytecode, and what it prints is
told only in part. What it started ends with it, but for what left its group.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Tuple

from patchq.agent.environment import locate, user
from patchq.agent.facts import RefusalError

if TYPE_CHECKING:
    import subprocess

# Seconds for all modules together; a frame's answer has 300.
DEADLINE = 240.0
# Characters of a traceback and of what was printed that are told, the last ones.
_ROOM = 2000
# Bytes of what is told on the private pipe; modules have some 100 each.
_MOST = 1 << 22
_LOOK = 0.05

_CODE = """
import importlib, json, os, sys, traceback
me, out = os.getpid(), os.fdopen(int(sys.argv[1]), "w")
site, names, sys.argv = sys.argv[2], sys.argv[3:], ["-c"]
sys.path[:1] = [site] if site else []
for name in names:
    told = None
    try:
        importlib.import_module(name)
    except BaseException as error:
        told = [type(error).__name__, str(error)[-500:], traceback.format_exc()[-2000:]]
    if os.getpid() != me:
        os._exit(0)
    print(json.dumps([name, told]), file=out, flush=True)
    if told is not None:
        break
os._exit(0)
"""


def answer(
    request: Mapping[str, Any], deadline: float = DEADLINE
) -> Tuple[Dict[str, Any], Dict[str, bytes]]:
    """Answer with the modules that were imported, and why the first that failed did."""
    here = locate(request)
    if here.installed is None:
        raise here.refusal or RefusalError(
            "not-installed", "there is nothing to import", "no dist-info", "install it"
        )
    if os.geteuid() == 0:
        _check_owners(here.site)
    modules: List[str] = list(request["modules"])
    site = here.site if request.get("target") else ""
    (told, tell), (shown, show) = os.pipe(), os.pipe()
    with open(told, "rb"), open(shown, "rb"):
        with open(tell, "wb"), open(show, "wb"):
            child = _start([str(tell), site, *modules], tell, show)
        rows, printed, late = _watch(child, told, shown, time.monotonic() + deadline)
    what = "no end after %g s" % deadline if late else _ended(child.returncode)
    return _told(_rows(rows, modules), modules, what, printed), {}


def _check_owners(site: str) -> None:
    """Refuse to run as root what another user can write, as far as the folder's entries say."""
    with os.scandir(site) as entries:
        found = [
            (site, os.stat(site)),
            *((e.path, e.stat(follow_symlinks=False)) for e in entries),
        ]
    for path, info in found:
        if info.st_uid != 0:
            raise RefusalError(
                "not-permitted",
                "root does not run what another user can write",
                "%s is %s's, and not all of %s is" % (path, user(info.st_uid), site),
                "patchq VERB --sudo-user %s" % user(info.st_uid),
            )


def _start(words: List[str], tell: int, show: int) -> "subprocess.Popen[bytes]":
    import subprocess  # heavy, and of use here only

    return subprocess.Popen(
        [sys.executable, "-B", "-c", _CODE, *words],
        stdin=subprocess.DEVNULL,
        stdout=show,
        stderr=subprocess.STDOUT,
        cwd="/",
        env=_environ(),
        close_fds=True,
        pass_fds=(tell,),
        start_new_session=True,
        preexec_fn=_stay,
    )


def _environ() -> Dict[str, str]:
    """Return the process's environment: the acting user's home, where that is not one's own."""
    environ = dict(os.environ)
    if os.getuid() != os.geteuid():
        import pwd

        with contextlib.suppress(KeyError):
            known = pwd.getpwuid(os.geteuid())
            environ.update(HOME=known.pw_dir, USER=known.pw_name, LOGNAME=known.pw_name)
    return environ


def _stay() -> None:
    """Be the user that the agent acts as for good: what is run must not become root again."""
    uid, gid = os.geteuid(), os.getegid()
    if os.getuid() != uid:
        os.seteuid(os.getuid())
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def _watch(
    child: "subprocess.Popen[bytes]", told: int, shown: int, until: float
) -> Tuple[bytes, bytes, bool]:
    """Read what a process tells and prints until it ends; who holds its pipes is not waited for.

    Returns what was told, the end of what was printed, and whether it was late.
    """
    rows, printed, late, open_ends = b"", b"", False, [told, shown]
    ended = False
    while True:
        ready = select.select(open_ends, [], [], 0 if ended else _LOOK)[0]
        for handle in ready:
            data = os.read(handle, 1 << 16)
            if not data:
                open_ends.remove(handle)
            elif handle == shown:
                printed = (printed + data)[-4 * _ROOM :]
            else:
                rows = (rows + data)[:_MOST]
        if ended and (not ready or time.monotonic() > until):
            return rows, printed, late
        if not ended:
            late = time.monotonic() > until
            ended = late or child.poll() is not None
            if ended:
                _end(child)
                until = time.monotonic() + 1


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the process and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _ended(code: int) -> str:
    if code < 0:
        return "the process was ended by signal %d" % -code
    return "the process ended with %d" % code


def _rows(told: bytes, modules: List[str]) -> Dict[str, Any]:
    """Return the error of each module, None for none, as far as what was told makes sense."""
    rows: Dict[str, Any] = {}
    for line in told.split(b"\n"):
        with contextlib.suppress(ValueError, TypeError):  # who imports may write there, too
            name, error = json.loads(line)
            if name in modules and (error is None or [*map(type, error)] == [str] * 3):
                rows.setdefault(name, error)
    return rows


def _told(
    rows: Mapping[str, Any], modules: List[str], ended: str, printed: bytes
) -> Dict[str, Any]:
    """Return what came of it: ``imported``, and ``failed`` with module, error and traceback."""
    failed = None
    for module in modules:
        error = rows.get(module, ["ended", ended, ""])
        if error is not None:
            failed = {"module": module, "error": error[0], "text": error[1], "trace": error[2]}
            break
    imported = [name for name in modules if name in rows and rows[name] is None]
    text = printed.decode("utf-8", "replace")[-_ROOM:]
    return {"imported": imported, "failed": failed, "printed": text if failed else ""}
