"""What a header or an import names, read from libcst's trees."""

from __future__ import annotations

import libcst as cst

from patchq.engine import modules

Imported = tuple[str, str | None, str | None]


def imported(node: cst.CSTNode, path: str) -> tuple[Imported, ...]:
    """Return (module, name, as) of each name an import statement brings (R12).

    Relative modules are resolved by the file's `path`; ``import *`` is the name "*".
    """
    if isinstance(node, cst.Import):
        return tuple((dotted(alias.name), None, _as(alias)) for alias in node.names)
    if not isinstance(node, cst.ImportFrom):
        return ()
    named = dotted(node.module) if node.module else ""
    level = len(node.relative)
    module = modules.absolute(path, level, named) or "." * level + named
    if isinstance(node.names, cst.ImportStar):
        return ((module, "*", None),)
    return tuple((module, dotted(alias.name), _as(alias)) for alias in node.names)


def dotted(node: cst.BaseExpression) -> str:
    """Return a dotted name as text."""
    if isinstance(node, cst.Attribute):
        return f"{dotted(node.value)}.{node.attr.value}"
    assert isinstance(node, cst.Name)
    return node.value


def spoken(name: Imported) -> str:
    """Return an imported name as the statement that brings it."""
    module, item, alias = name
    text = f"import {module}" if item is None else f"from {module} import {item}"
    return f"{text} as {alias}" if alias else text


def parameters(node: cst.FunctionDef) -> tuple[cst.Param, ...]:
    """Return every parameter of a def, `*args` and `**kwargs` too."""
    params = node.params
    stars = (params.star_arg, params.star_kwarg)
    return (
        *params.posonly_params,
        *params.params,
        *params.kwonly_params,
        *(param for param in stars if isinstance(param, cst.Param)),
    )


def star(param: cst.Param) -> str:
    """Return the stars before a parameter."""
    return param.star if isinstance(param.star, str) else ""


def _as(alias: cst.ImportAlias) -> str | None:
    return dotted(alias.asname.name) if alias.asname else None
