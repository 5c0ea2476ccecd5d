"""A small world for the verbs: a wheel, a queue for it, a tree it is installed in.

Everything is real: the wheel is a wheel, the queue is files, patchq is the
installed command in a process of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

FILES = {
    "demo/__init__.py": 'from .shapes import Circle\n\n__all__ = ["Circle"]\n',
    "demo/shapes.py": (
        "from .units import metre\n"
        "\n"
        "\n"
        "class Circle:\n"
        "    def __init__(self, radius):\n"
        "        self.radius = radius\n"
        "\n"
        "    def area(self):\n"
        "        return 3 * self.radius**2 * metre\n"
        "\n"
        "\n"
        "class Square:\n"
        "    def __init__(self, side):\n"
        "        self.side = side\n"
        "\n"
        "    def area(self):\n"
        "        return self.side**2 * metre\n"
    ),
    "demo/units.py": "metre = 1\nfoot = 0.3048\n",
    "demo/data.txt": "one\ntwo\nthree\n",
}

PI = """\
Description: Use pi for the area of a circle

--- a/demo/shapes.py
+++ b/demo/shapes.py
@@ -1,3 +1,5 @@
+from math import pi
+
 from .units import metre
 
 
@@ -6,7 +8,7 @@ class Circle:
         self.radius = radius
 
     def area(self):
-        return 3 * self.radius**2 * metre
+        return pi * self.radius**2 * metre
 
 
 class Square:
"""
FOOT = """\
Description: Squares in feet

diff --git a/demo/shapes.py b/demo/shapes.py
--- a/demo/shapes.py
+++ b/demo/shapes.py
@@ -1,6 +1,6 @@
 from math import pi
 
-from .units import metre
+from .units import foot, metre
 
 
 class Circle:
@@ -16,4 +16,4 @@ class Square:
         self.side = side
 
     def area(self):
-        return self.side**2 * metre
+        return self.side**2 * metre / foot
diff --git a/demo/more.py b/demo/more.py
new file mode 100644
--- /dev/null
+++ b/demo/more.py
@@ -0,0 +1,4 @@
+from .shapes import Circle
+
+
+UNIT = Circle(1)
"""
TEXT = """\
Description: Count to four

--- a/demo/data.txt
+++ b/demo/data.txt
@@ -1,3 +1,4 @@
 one
 two
 three
+four
"""
SKETCHES = {
    "10-pi": (
        "# in demo/shapes.py\nfrom math import pi\n\n\n"
        "class Circle:\n    def area(self):\n        return pi * self.radius**2 * ...\n"
    ),
    "20-foot": (
        "# in demo/shapes.py\nfrom .units import foot\n\n\n"
        "class Square:\n    def area(self):\n        return _ / foot\n"
    ),
}
PATCHES = {"10-pi.patch": PI, "20-foot.patch": FOOT, "30-text.patch": TEXT}


def wheel(
    folder: Path, files: dict[str, str | bytes], name: str = "demo", version: str = "1.0"
) -> Path:
    """Write a wheel of these files and return its path."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    members = {
        **{
            member: data.encode() if isinstance(data, str) else data
            for member, data in files.items()
        },
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    rows = []
    for member, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{member},sha256={digest},{len(data)}")
    members[f"{info}/RECORD"] = ("\n".join([*rows, f"{info}/RECORD,,"]) + "\n").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return path


@dataclass
class World:
    """A folder with a wheel, a queue `q` and a site made by ``fetch --into``."""

    root: Path

    @property
    def site(self) -> Path:
        return self.root / "site"

    @property
    def queue(self) -> Path:
        return self.root / "queues" / "q"

    @property
    def series(self) -> Path:
        return self.queue / "1.0"

    def run(
        self, *args: str | Path, environ: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run patchq in the world's folder; `environ` is added to the process's own."""
        environ = {
            **os.environ,
            "PATCHQ_CACHE": str(self.root / "cache"),
            "PATCHQ_QUEUES": "",
            "HOME": str(self.root),
            **(environ or {}),
        }
        environ.pop("VIRTUAL_ENV", None)
        return subprocess.run(
            [sys.executable, "-m", "patchq", *map(str, args)],
            capture_output=True,
            text=True,
            cwd=self.root,
            env=environ,
            timeout=60,
        )

    def here(self, verb: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a verb on the world's site and queue."""
        return self.run(verb, *args, "--target", self.site, "--queue", self.queue)

    def json(self, verb: str, *args: str | Path) -> dict[str, object]:
        """Run a verb and return its document."""
        document = json.loads(self.here(verb, *args, "--json").stdout)
        assert isinstance(document, dict)
        return document

    def tree(self) -> dict[str, bytes]:
        """Return every file of the site but patchq's own state."""
        return {
            str(path.relative_to(self.site)): path.read_bytes()
            for path in sorted(self.site.rglob("*"))
            if path.is_file() and ".patchq" not in path.parts
        }

    def write(self, patches: dict[str, str], sketches: dict[str, str]) -> None:
        """Write the queue's files, without a lock."""
        self.series.mkdir(parents=True, exist_ok=True)
        (self.queue / "post").mkdir(exist_ok=True)
        (self.queue / "queue.toml").write_text(
            'distribution = "demo"\nsummary = "A test"\nowner = "nobody"\n'
        )
        for name, text in patches.items():
            (self.series / name).write_text(text)
        for stem, text in sketches.items():
            (self.queue / "post" / f"{stem}.pyi").write_text(text)
        (self.series / "series").write_text("".join(f"{name}\n" for name in patches))


def make(root: Path) -> World:
    """Return a world whose queue is locked and whose site is pristine."""
    world = World(root)
    archive = wheel(root, dict(FILES))
    done = world.run("fetch", archive, "--into", world.site)
    assert done.returncode == 0, done.stderr
    world.write(PATCHES, SKETCHES)
    done = world.run("lint", "--queue", world.queue, "--write")
    assert (world.series / "series.lock").is_file(), done.stdout + done.stderr
    return world
