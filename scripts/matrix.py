"""Print the tables of docs/hosts.md from a real sshd, real users, shells and interpreters.

Run it as root, as ``.venv/bin/python scripts/matrix.py [shells|logins]``; two minutes.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import hostile, shell_lab, shell_matrix, world


def main() -> int:
    """Print what was asked for; 1 where a cell failed."""
    asked = sys.argv[1:] or ["shells", "logins"]
    faults: list[object] = []
    with tempfile.TemporaryDirectory() as folder:
        of = world.make(Path(folder))
        if "shells" in asked:
            with shell_lab.house() as house:
                cells = shell_matrix.run(house, of)
            print(shell_matrix.table(cells), end="\n\n")
            faults += [cell for cell in cells if cell.fault]
        if "logins" in asked:
            with hostile.ground(of) as ground:
                results = asyncio.run(hostile.start_up_files(ground))
                results += asyncio.run(hostile.accounts(ground))
            print(hostile.table(results))
            faults += [(result, result.faults) for result in results if result.faults]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
