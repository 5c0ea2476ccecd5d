"""Paths of a tree and the dotted names that Python imports them by."""

from __future__ import annotations


def package(path: str) -> list[str]:
    """Return the package in which a file's relative imports start.

    Example:
        >>> package("vllm/config/speculative.py"), package("vllm/config/__init__.py")
        (['vllm', 'config'], ['vllm', 'config'])
    """
    return path.split("/")[:-1]


def absolute(path: str, level: int, module: str) -> str | None:
    """Return the module that an import in the file `path` names; None beyond the top.

    Example:
        >>> absolute("vllm/config/speculative.py", 2, "utils")
        'vllm.utils'
    """
    if level == 0:
        return module
    parents = package(path)
    if level > len(parents):
        return None
    kept = parents[: len(parents) - level + 1]
    return ".".join([*kept, module] if module else kept)


def files(module: str) -> tuple[str, str]:
    """Return the two files that a module may be: the plain one and the package's.

    Example:
        >>> files("vllm.config")
        ('vllm/config.py', 'vllm/config/__init__.py')
    """
    base = module.replace(".", "/")
    return f"{base}.py", f"{base}/__init__.py"


def module(path: str) -> str:
    """Return the name that a file is imported by.

    Example:
        >>> module("vllm/config/__init__.py"), module("vllm/envs.py")
        ('vllm.config', 'vllm.envs')
    """
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
