"""What a push does to vLLM's torch.compile cache. Pure.

The rule was read in vLLM 0.16.0; 0.14.1 to 0.33.0 have the same one. The key of a folder in
``torch_compile_cache`` is a hash of the environment's variables, the configuration, torch, and
the path and text of each file that Dynamo traced (vllm/compilation/backends.py:860-898). Traced
are the file of the compiled ``forward``, and that of each function that is called within
(vllm/compilation/decorators.py:496-506). What is in ``torch_aot_compile`` is found without
them, and not used where one of their texts is another (decorators.py:245-262, 419-446). No
part of a key is the text of what compiles (vllm/compilation/): the passes are set up after the
key is made (backends.py:863, 991).

So a traced file that changes gives another key, and an old text finds its old key again. Which
files were traced is known when a model runs; certain it is only of those whose own class is
compiled (``@support_torch_compile``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_COMPILED = re.compile(rb"^@support_torch_compile\b", re.MULTILINE)
_COMPILER = "vllm/compilation/"
# The releases in which the rule was read, and those between.
_FIRST, _AFTER = (0, 14), (0, 34)


@dataclass(frozen=True, slots=True)
class Effect:
    """Touched files by what they do to the cache.

    `compiled` change a key; `traced` do where they were traced; of `compilers` no key speaks.
    """

    compiled: tuple[str, ...]
    traced: tuple[str, ...]
    compilers: tuple[str, ...]

    def to_json(self) -> dict[str, list[str]]:
        """Return the effect as ``--json`` has it."""
        return {
            "compiled": list(self.compiled),
            "traced": list(self.traced),
            "compilers": list(self.compilers),
        }

    def lines(self) -> tuple[str, ...]:
        """Return what to tell of it."""
        found = []
        if self.compilers:
            found.append(
                f"torch.compile cache: its key does not see {_named(self.compilers)}; remove"
                " torch_compile_cache and torch_aot_compile in ~/.cache/vllm (VLLM_CACHE_ROOT)"
            )
        count = len(self.traced)
        any_ = "" if count == 1 else "any of "
        others = f"{any_}the {'' if count == 1 else f'{count} '}"
        others += f"{'other ' if self.compiled else ''}file{'' if count == 1 else 's'}"
        if self.compiled:
            also = f" or {others}" if count else ""
            found.append(
                f"torch.compile cache: models of {_named(self.compiled)} compile anew at their"
                f" next start, and all that were traced through it{also}; the rest stays valid"
            )
        elif count:
            found.append(
                f"torch.compile cache: models that were traced through {others} compile anew at"
                " their next start; the rest stays valid"
            )
        return tuple(found)


def effect(
    version: str, paths: Iterable[str], text: Callable[[str], bytes | None]
) -> Effect | None:
    """Return what changes of these files do to the cache, None for other releases.

    `text` gives what a file held before, None where that is not known.

    >>> effect("0.16.0", ["vllm/a.py"], lambda path: b"@support_torch_compile\\n").compiled
    ('vllm/a.py',)
    """
    number = re.match(r"(\d+)\.(\d+)", version)
    if number is None or not _FIRST <= (int(number[1]), int(number[2])) < _AFTER:
        return None
    sources = [path for path in dict.fromkeys(paths) if path.endswith(".py")]
    compilers = tuple(path for path in sources if path.startswith(_COMPILER))
    rest = [path for path in sources if path not in compilers]
    compiled = tuple(path for path in rest if _is_compiled(text(path) or b""))
    return Effect(compiled, tuple(path for path in rest if path not in compiled), compilers)


@functools.lru_cache(maxsize=64)
def _is_compiled(text: bytes) -> bool:
    """Return whether a file has a compiled model; the hosts of a run have the same texts."""
    return _COMPILED.search(text) is not None


def _named(paths: tuple[str, ...]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
