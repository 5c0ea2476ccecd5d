"""A locked series of three patches on three files, by hashes alone."""

from patchq.model import ABSENT, AppliedPatch, FileState, Lock, LockedPatch, PathChange, sha256


def state(text: str) -> FileState:
    return FileState(sha256(text.encode()))


A0, A1, A2, B0, B1, NEW = map(state, ("a0", "a1", "a2", "b0", "b1", "new"))
ONE = LockedPatch("one.patch", "", sha256(b"one"), None, (PathChange("p/a.py", A0, A1),))
TWO = LockedPatch(
    "two.patch",
    "",
    sha256(b"two"),
    None,
    (PathChange("p/a.py", A1, A2), PathChange("p/b.py", B0, B1)),
)
THREE = LockedPatch(
    "three.patch", "", sha256(b"three"), None, (PathChange("p/n.py", ABSENT, NEW),)
)
LOCK = Lock("demo", "1.0", "tree", (ONE, TWO, THREE))


def applied(*patches: LockedPatch, queue: str = "q") -> tuple[AppliedPatch, ...]:
    return tuple(AppliedPatch(queue, p.name, "1.0", p.patch, p.changes) for p in patches)
