"""Rows of an audit of many hosts, as `audit --json` has them: what a page is made of."""

from __future__ import annotations

from patchq.audit.finding import Word

SERIES = ("10-aux-states.patch", "20-eagle3.patch", "30-speculative.patch", "40-token.patch")
QUEUES = ("kimi-eagle3", "mamba-fix", "sgl-router", "long-context", "metrics")
_WORDS = tuple(word.value for word in Word)


def row(host: str = "h1", word: str = "current", **more: object) -> dict[str, object]:
    """Return a row of a host that answered."""
    found: dict[str, object] = {
        "host": host,
        "queue": "q",
        "distribution": "demo",
        "version": "1.0",
        "release": "1.0",
        "word": word,
        "why": f"why it is {word}",
        "mend": None,
        "paths": [],
        "patches": list(SERIES) if word == "current" else [],
        "series": list(SERIES),
        "behind": None,
        "commit": None,
        "receipt": None,
        "ledger_broken": None,
        "record_broken": None,
        "site": "/opt/venv/lib/python3.12/site-packages",
        "python": "3.12.3",
        "environment": f"e-{host}",
        "ephemeral": False,
        "running": None,
        "refusal": None,
        "wanted": True,
    }
    return found | more


def silent(
    host: str, what: str = "nobody is there", word: str = "unreachable"
) -> dict[str, object]:
    """Return the row of a host that could not be asked."""
    error = {"what": what, "why": "no answer came", "mend": "ssh HOST"}
    return {"host": host, "word": word, "why": what, "mend": "ssh HOST", "error": error}


def receipt(number: int) -> dict[str, object]:
    """Return a last receipt; later numbers are later."""
    time = f"2026-01-{1 + number // 1440 % 28:02}T{number // 60 % 24:02}:{number % 60:02}:00Z"
    return {
        "id": f"r{number}", "time": time, "verb": "push", "who": "ops", "whence": "laptop",
        "commit": "c" * 40, "dirty": False,
    }  # fmt: skip


def running(old: int = 0, mixed: bool = False) -> dict[str, object]:
    """Return the processes of a server, `old` of which run the code from before."""
    pids = range(100, 110)
    processes = [
        {"pid": pid, "name": f"VLLM::Worker_TP{pid - 100}", "kind": "worker", "proof": "child",
         "server": 100, "state": "current", "receipt": "r1"}
        for pid in pids
    ]  # fmt: skip
    restart = list(pids)[:old]
    return {
        "processes": processes, "restart": restart, "mixed": [list(pids)] if mixed else [],
        "unreadable": 0, "unread": [], "unseen": 0, "others": 0, "hidden": False,
    }  # fmt: skip


def fleet(hosts: int, queues: int) -> list[dict[str, object]]:
    """Return the rows of a fleet in which one in seven has something, and some do not answer."""
    rows: list[dict[str, object]] = []
    for number in range(hosts):
        name = f"gpu{number + 1:04}"
        if number % 101 == 100:
            rows.append(silent(name, word=("unreachable", "failed")[number % 2]))
            continue
        for at, queue in enumerate(QUEUES[:queues]):
            odd = (number * 5 + at) % 7 == 3
            word = _WORDS[(number + at) % len(_WORDS)] if odd else "current"
            on = {"current": 4, "partial": 2, "behind": 4, "drifted": 4}.get(word, 0)
            edited = word in ("drifted", "unmanaged")
            rows.append(
                row(
                    name, word,
                    queue=queue, distribution="vllm", version="0.16.0", release="0.16.0",
                    why=f"4 patches, series 0.16.0; found on {name}",
                    mend=None if word == "current" else f"patchq diff -z -H {name}",
                    patches=list(SERIES[:on]),
                    behind=number % 5 + 1 if word == "behind" else None,
                    commit="a1" * 20 if word == "behind" else None,
                    paths=[f"vllm/model_executor/models/m{number}.py"] if edited else [],
                    receipt=receipt(number),
                    running=running(number % 4, mixed=number % 50 == 1),
                    ephemeral=number % 40 == 0,
                )
            )  # fmt: skip
    return rows
