"""Links that fail: what stands where a host's interpreter should hands the bytes on, badly.

`Wire` lays out a script that patchq takes for the interpreter of a host (``--python``), over
any transport. It starts the real agent, and cuts, stalls, delays, repeats or drowns what
goes to and from it, as `FAULTS` of its `fault` file say.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# up, down: the link is cut after so many bytes to, from the agent; stall_up, stall_down: as
# these, but nothing is cut, nothing goes on; freeze: the agent is stopped after so many
# bytes to it; chunk: bytes at a time; twice: the answer of this number is sent again;
# unasked: an answer comes before the first; before, after: what is sent for ever before,
# after the marker; flood: after the first answer; stderr: noise beside it, for ever; frame:
# the header of the first answer;
# times: connections that this is for, 0 is every one; later: the fault of the others.
SCRIPT = """\
#!{python}
import json, os, select, signal, subprocess, sys, threading
place = {place!r}
def log(*words):
    with open(place + "/log", "a") as file:
        file.write(" ".join(map(str, words)) + "\\n")
with open(place + "/fault") as file:
    fault = json.load(file)
with open(place + "/links", "a+") as file:
    file.write("x")
    file.flush()
    number = os.fstat(file.fileno()).st_size
if fault.get("times") and number > fault["times"]:
    fault = fault.get("later", {{}})
agent = subprocess.Popen(
    [{real!r}, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
    start_new_session=True,
)
for name, pid in (("agents", agent.pid), ("wires", os.getpid())):
    with open(place + "/" + name, "a") as file:
        file.write(str(pid) + "\\n")
chunk = fault.get("chunk", 1 << 16)
def out(data):
    while data:
        data = data[os.write(1, data):]
def cut():
    log("cut")
    os._exit(3)
def flood(number, data):
    try:
        while True:
            os.write(number, data)
    except OSError:
        os._exit(1)
if "stderr" in fault:
    threading.Thread(target=flood, args=(2, fault["stderr"].encode() * 4096), daemon=True).start()
if "before" in fault:
    flood(1, fault["before"].encode() * 4096)
total = {{"up": 0, "down": 0}}
answers, held, marked = 0, b"", False
def limited(way, data):
    room = fault.get(way, 1 << 60) - total[way]
    stall = fault.get("stall_" + way, 1 << 60) - total[way]
    return data[: max(0, min(room, stall))], room <= len(data), stall <= len(data)
def carry(way, source, sink):
    global marked, held, answers
    data = os.read(source, chunk)
    if not data:
        return False
    part, ends, stalls = limited(way, data)
    try:
        if way == "up":
            while part:
                part = part[os.write(sink, part[:chunk]):]
        else:
            give(part)
    except OSError:
        cut()
    total[way] += len(data)
    log(way, total[way])
    if fault.get("freeze", 1 << 60) <= total["up"]:
        agent.send_signal(signal.SIGSTOP)
    if ends:
        cut()
    if stalls:
        signal.pause()
    return True
def give(data):
    global marked, held, answers
    if not ({{"twice", "unasked", "after", "frame", "flood"}} & set(fault)):
        return out(data)
    held += data
    if not marked:
        at = held.find(b"\\0") + 26  # behind it the nonce, and a byte
        if at < 26 or len(held) < at:
            return
        out(held[:at])
        held, marked = held[at:], True
        if "after" in fault:
            flood(1, fault["after"].encode() * 4096)
        if "frame" in fault:
            out(bytes.fromhex(fault["frame"]))
            flood(1, b"x" * 4096)
        if "unasked" in fault:
            out(bytes.fromhex(fault["unasked"]))
    while len(held) >= 8:
        size = 8 + int.from_bytes(held[:4], "big") + int.from_bytes(held[4:8], "big")
        if len(held) < size:
            return
        answers += 1
        out(held[:size] * (2 if fault.get("twice") == answers else 1))
        held = held[size:]
        if "flood" in fault:
            flood(1, fault["flood"].encode() * 4096)
if fault.get("up") == 0 or fault.get("down") == 0:
    cut()
sources = [0, agent.stdout.fileno()]
while True:
    for source in select.select(sources, [], [])[0]:
        if source == 0:
            if not carry("up", 0, agent.stdin.fileno()):
                sources.remove(0)
                agent.stdin.close()
        elif not carry("down", source, 1):
            os._exit(agent.wait() & 0xFF)
"""


@dataclass(frozen=True)
class Wire:
    """One host's link: its folder, its interpreter for ``--python``."""

    place: Path
    fault: dict[str, object]

    def __post_init__(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        (self.place / "fault").write_text(json.dumps(self.fault))
        text = SCRIPT.format(python=sys.executable, place=str(self.place), real=sys.executable)
        (self.place / "python").write_text(text)
        (self.place / "python").chmod(0o755)

    @property
    def python(self) -> str:
        """What to name as the interpreter."""
        return str(self.place / "python")

    @property
    def links(self) -> int:
        """How many links there were."""
        path = self.place / "links"
        return path.stat().st_size if path.exists() else 0

    def totals(self) -> dict[str, list[int]]:
        """Return how many bytes had gone each way, at each step of a whole conversation."""
        found: dict[str, list[int]] = {"up": [], "down": []}
        for line in (self.place / "log").read_text().splitlines():
            way, _, number = line.partition(" ")
            if number:
                found[way].append(int(number))
        return found

    def agents(self) -> list[int]:
        """Return the agents that still run."""
        return self._running("agents")

    def _running(self, name: str) -> list[int]:
        path = self.place / name
        pids = [int(line) for line in path.read_text().split()] if path.exists() else []
        return [pid for pid in pids if _runs(pid)]

    def end(self) -> None:
        """End what a test froze or let stand still, each by its id."""
        for pid in (*self._running("wires"), *self.agents()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def left_alone(self) -> bool:
        """Return whether all agents end by themselves, in half a minute."""
        for _ in range(3000):
            if not self.agents():
                return True
            time.sleep(0.01)
        return False


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "State:\tZ" not in status
