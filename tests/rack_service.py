"""What a rack's hosts have installed: `demo` with a server as vLLM's is, and its queue.

The server answers on port 8000 with what its code says of a circle, and writes a line for
each of its processes: who it is, and its number. Its engine starts a worker anew that ended.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests import world
from tests.agent import process_lab

PORT = 8000
OLD, NEW = "3", "3.14"
SERVICE = f"""\
import http.server
import multiprocessing
import os
import sys
import threading

from demo import server
from demo.shapes import Circle


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(Circle(1).area()).encode())

    def log_message(self, *args):
        pass


def engine(method, told):
    server.retitle("VLLM::EngineCore")
    told.put(("engine", os.getpid()))
    context = multiprocessing.get_context(method)

    def keep(rank):
        while True:
            child = context.Process(target=worker, args=(rank, told))
            child.start()
            child.join()

    for rank in range(2):
        threading.Thread(target=keep, args=(rank,)).start()


def worker(rank, told):
    server.retitle("VLLM::Worker_TP%d" % rank)
    told.put(("worker%d" % rank, os.getpid()))
    multiprocessing.Event().wait()


def main():
    method, place, title = (sys.argv + [""])[1:4]
    context = multiprocessing.get_context(method)
    told = context.Queue()
    context.Process(target=engine, args=(method, told)).start()
    answering = http.server.HTTPServer(("0.0.0.0", {PORT}), Answer)
    threading.Thread(target=answering.serve_forever).start()
    if title:
        server.retitle(title)
    told.put(("server", os.getpid()))
    while True:
        line = "%s %d\\n" % told.get()
        with open(place, "a") as file:
            file.write(line)


if __name__ == "__main__":
    main()
"""
FILES = {
    **world.FILES,
    "demo/server.py": process_lab.SERVER.decode(),
    "demo/service.py": SERVICE,
    "demo-1.0.dist-info/entry_points.txt": "[console_scripts]\ndemo-serve = demo.service:main\n",
}
# The patch of a rollout that needs what not every host has.
SPEED = """\
Description: Measure with what is faster

--- a/demo/units.py
+++ b/demo/units.py
@@ -1,2 +1,4 @@
+import speedups
+
 metre = 1
-foot = 0.3048
+foot = 0.3048 * speedups.UNIT
"""
NEEDED = "speedups.py"


def make(root: Path) -> world.World:
    """Return a world whose wheel has the server, and whose queue is locked."""
    root.mkdir()
    of = world.World(root)
    archive = world.wheel(root, dict(FILES))
    done = of.run("fetch", archive, "--into", of.site)
    assert done.returncode == 0, done.stderr
    of.write({**world.PATCHES, "40-speed.patch": SPEED}, world.SKETCHES)
    done = of.run("lint", "--queue", of.queue, "--write")
    assert (of.series / "series.lock").is_file(), done.stdout + done.stderr
    return of


def pushed(of: world.World) -> dict[str, bytes]:
    """Return the files that a push on this machine makes of the distribution's."""
    shutil.rmtree(of.site)
    (archive,) = of.root.glob("*.whl")
    assert of.run("fetch", archive, "--into", of.site).returncode == 0
    assert of.here("push", "-a").returncode == 0
    return {path: data for path, data in of.tree().items() if path.startswith("demo/")}
