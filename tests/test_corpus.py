"""scripts/corpus.py on a corpus of our own, and its judge."""

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
sys.path.append(str(SCRIPTS))

import corpus_judge  # noqa: E402


@pytest.mark.parametrize(
    ("result", "truth", "grade"),
    [
        ("x = 1\n", "x = 1\n", "exact"),
        ("x = 'a'  # b\n", 'x = "a"\n', "tree"),
        ("from a import c, b\n", "from a import b, c\n", "order"),
        ("import b\nimport a\n", "import a\nimport b\n", "order"),
        ("f(a=1, b=2)\n", "f(b=2, a=1)\n", "order"),
        ("x = {'a': 1, 'b': 2}\n", "x = {'b': 2, 'a': 1}\n", "order"),
        ("__all__ = ['b', 'a']\n", "__all__ = ['a', 'b']\n", "order"),
        ("def b(): 1\ndef a(): 2\n", "def a(): 2\ndef b(): 1\n", "order"),
        ("x = [1, 2]\n", "x = [2, 1]\n", "wrong"),
        ("b()\na()\n", "a()\nb()\n", "wrong"),
        ("x = (\n", "x = 1\n", "wrong"),
    ],
)
def test_a_result_is_graded_by_how_near_it_is_to_the_truth(result, truth, grade):
    assert corpus_judge.grade(result, truth) == grade


def case(stratum: str, **texts: str) -> dict[str, str]:
    return {"id": stratum, "stratum": stratum, "path": "x.py", **texts}


def test_a_corpus_is_scored_by_stratum(tmp_path):
    cases = [
        case("clean", base="a\n\nb\n", theirs="a\n\nc\n", target="d\n\nb\n", truth="d\n\nc\n"),
        case(
            "conflict",
            base="from a import b, f\n",
            theirs="from a import b, d, f\n",
            target="from a import b, e, f\n",
            truth="from a import b, d, e, f\n",
        ),
        case("conflict-adapted", base="x = 1\n", theirs="x = 2\n", target="x = 3\n", truth="y\n"),
        case("same-change", base="x\n", theirs="y\n", target="y\nz\n", truth="y\nz\n"),
    ]
    file = tmp_path / "corpus.jsonl.xz"
    file.write_bytes(lzma.compress("".join(json.dumps(one) + "\n" for one in cases).encode()))

    command = [sys.executable, SCRIPTS / "corpus.py", file, "-v", "--no-rivals"]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    mine = done.stdout.split("### patchq")[1]
    assert "| conflict | 1 | 1 | 0 | 0 | 0 | 0 | 0 |" in mine
    assert "| conflict-adapted | 1 | 0 | 0 | 0 | 0 | 0 | 1 |" in mine
    assert "| clean | 1 | 1 | 0 | 0 | 0 | 0 | 0 |" in mine
    assert "already upstream: 1 of 1 known" in mine
    assert "conflict-adapted conflict-adapted patchq: conflict conflict" in done.stdout
