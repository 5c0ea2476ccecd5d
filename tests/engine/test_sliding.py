"""Diffs are laid out as git lays them out, byte for byte."""

import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.engine import textdiff

TWO = "def one():\n    if a:\n        b()\n\n\ndef two():\n    if a:\n        c()\n"


def hunks(text: bytes) -> bytes:
    """Return the hunks without the names of files; headings are ours."""
    start = text.find(b"\n@@ ")
    lines = text[start + 1 :].split(b"\n") if start >= 0 else []
    return b"\n".join(line.split(b" @@")[0] if line[:2] == b"@@" else line for line in lines)


def by_git(folder, before: bytes, after: bytes) -> bytes:
    for name, text in (("a", before), ("b", after)):
        (folder / name).write_bytes(text)
    said = subprocess.run(
        ["git", "diff", "--no-index", "--no-color", "--", "a", "b"],
        cwd=folder,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)},
    )
    assert said.returncode in (0, 1), said.stderr
    return hunks(said.stdout)


def test_a_function_that_is_put_in_is_shown_whole():
    more = TWO + "\n\ndef three():\n    if a:\n        c()\n\n\ndef four():\n    pass\n"
    before = more.replace("def three():\n    if a:\n        c()\n\n\n", "")

    text = textdiff.unified(before.encode(), more.encode(), "x").decode()

    assert "+def three():\n+    if a:\n+        c()\n+\n+\n def four():" in text


LINES = st.sampled_from(
    ["", "    ", "a", "b", "    a", "    b", "        a", "\ta", ")", "    )", "}", "  }"]
)


@pytest.mark.slow
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(LINES, max_size=30), st.lists(st.tuples(st.integers(0, 30), LINES), max_size=6))
def test_any_text_is_compared_as_git_compares_it(tmp_path, base, edits):
    changed = list(base)
    for at, line in edits:
        if at % 3 == 0 and changed:
            del changed[at % len(changed)]
        else:
            changed.insert(min(at, len(changed)), line)
    before, after = ("".join(f"{line}\n" for line in some).encode() for some in (base, changed))

    ours = hunks(textdiff.unified(before, after, "x")) if before != after else b""

    assert ours == by_git(tmp_path, before, after)
