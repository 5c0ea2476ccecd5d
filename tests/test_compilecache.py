"""What a push says of vLLM's torch.compile cache."""

from __future__ import annotations

import pytest

from patchq import compilecache

COMPILED = b"import torch\n\n\n@support_torch_compile\nclass Model:\n    pass\n"
PLAIN = (
    b"from vllm.compilation.decorators import support_torch_compile  # @support_torch_compile\n"
)
FILES = {"vllm/models/a.py": COMPILED, "vllm/config.py": PLAIN, "vllm/compilation/b.py": COMPILED}


def lines(*paths: str, version: str = "0.16.0") -> tuple[str, ...]:
    found = compilecache.effect(version, paths, FILES.get)
    assert found is not None
    return found.lines()


def test_the_file_of_a_compiled_class_changes_the_key():
    (line,) = lines("vllm/models/a.py")

    assert line == (
        "torch.compile cache: models of vllm/models/a.py compile anew at their next start, and"
        " all that were traced through it; the rest stays valid"
    )


def test_of_other_files_only_a_run_can_tell():
    (line,) = lines("vllm/config.py", "vllm/gone.py", "vllm/data.json")

    assert line == (
        "torch.compile cache: models that were traced through any of the 2 files compile anew"
        " at their next start; the rest stays valid"
    )


def test_both_are_told_in_a_line():
    (line,) = lines("vllm/config.py", "vllm/models/a.py", "vllm/models/a.py")

    assert line.endswith("traced through it or the other file; the rest stays valid")


def test_what_compiles_is_in_no_key():
    first, second = lines("vllm/compilation/b.py", "vllm/models/a.py")

    assert "does not see vllm/compilation/b.py; remove torch_compile_cache" in first
    assert "models/a.py compile anew" in second


def test_nothing_is_said_where_no_source_is_touched():
    assert lines("vllm/data.json") == ()


@pytest.mark.parametrize("version", ["0.13.0", "0.34.0", "1.0", "nightly"])
def test_nothing_is_said_of_releases_whose_rule_nobody_read(version):
    assert compilecache.effect(version, FILES, FILES.get) is None


@pytest.mark.parametrize("version", ["0.14.1", "0.16.0+cu130", "0.33.0"])
def test_releases_in_which_the_rule_was_read_are_spoken_of(version):
    found = compilecache.effect(version, FILES, FILES.get)

    assert found is not None
    assert found.to_json() == {
        "compiled": ["vllm/models/a.py"],
        "traced": ["vllm/config.py"],
        "compilers": ["vllm/compilation/b.py"],
    }


def test_many_files_are_not_all_named():
    paths = [f"vllm/models/{number}.py" for number in range(5)]
    found = compilecache.effect("0.16.0", paths, lambda path: COMPILED)

    assert found is not None
    assert "0.py, vllm/models/1.py, vllm/models/2.py and 2 more compile" in found.lines()[0]
