"""A tree with a series under the real quilt, whose output and files are compared with patchq's."""

import os
import subprocess

# Nobody's quiltrc, no colours, messages and dates as everywhere.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("QUILT")},
    "QUILT_PATCHES": "patches",
    "LC_ALL": "C",
    "TZ": "Europe/Berlin",
    "GIT_PAGER": "cat",
}


class Tree:
    """A folder in which quilt is run; `files` are its first files, by name."""

    def __init__(self, folder, files=()):
        self.folder = folder
        (folder / "patches").mkdir(parents=True, exist_ok=True)
        for name, data in dict(files).items():
            self.write(name, data)

    def write(self, name, data):
        """Put a file in place, or take it away where `data` is None."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(data)

    def run(self, *args, code=0):
        """Run quilt and return what it prints, as bytes: both streams."""
        done = subprocess.run(
            ["quilt", "--quiltrc=-", *args],
            cwd=self.folder,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == code, (args, done)
        return done.stdout

    def patch(self, name, changes, *refresh):
        """Make a patch on top: each file of `changes` gets its bytes; return the patch's text."""
        self.run("new", name)
        self.run("add", *changes)
        for path, data in changes.items():
            self.write(path, data)
        self.run("refresh", *refresh)
        return (self.folder / "patches" / name).read_bytes()
