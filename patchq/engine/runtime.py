"""Whether a module makes names of its own while it runs, so that it may have any."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patchq.engine.guards import last

_HINTS = (b"globals", b"vars", b"locals", b"exec", b"modules", b"import_module")
# What only looks at a namespace.
_READS = frozenset({"get", "keys", "items", "values", "copy", "pop"})
_LOOKS = frozenset(
    {"len", "sorted", "list", "set", "tuple", "dict", "print", "id", "getattr", "hasattr", "dir"}
    # vLLM's and TensorFlow's: it puts in the very name that it is assigned to.
    | {"getmembers", "getsource", "LazyLoader"}
)
_CHANGES = frozenset({"update", "setdefault", "__setitem__"})


def makes(tree: ast.Module, data: bytes) -> bool:
    """Return True if the text writes into its own namespace other than by statements.

    Example:
        >>> text = b"for name in names: globals()[name] = make(name)"
        >>> makes(ast.parse(text), text), makes(ast.parse("globals()['a']"), b"globals()['a']")
        (True, False)
    """
    if not any(hint in data for hint in _HINTS):
        return False
    looked: set[int] = set()
    spaces: list[int] = []
    for node in ast.walk(tree):
        if _makes(node):
            return True
        looked.update(id(one) for one in _looked_at(node))
        if _is_space(node):
            spaces.append(id(node))
    return any(one not in looked for one in spaces)


def asked(tree: ast.Module, data: bytes) -> frozenset[str]:
    """Return the names that the text asks for in a namespace before it uses them.

    Example:
        >>> text = b"if 'display' in globals(): display()"
        >>> sorted(asked(ast.parse(text), text))
        ['display']
    """
    if not any(hint in data for hint in (b"globals(", b"locals(", b"dir(", b"builtins")):
        return frozenset()
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In() | ast.NotIn()]):
                found.add(name)
            case ast.Call(func=ast.Name(id="hasattr"), args=[_, ast.Constant(value=str(name))]):
                found.add(name)
    return frozenset(found)


def _is_space(node: ast.AST) -> bool:
    """True for what gives the module's own namespace, or all modules."""
    match node:
        case ast.Call(func=ast.Name(id="globals" | "vars"), args=[]):
            return True
        case ast.Attribute(attr="modules", value=ast.Name(id="sys")):
            return True
        case ast.Subscript(value=ast.Attribute(attr="modules"), slice=ast.Name(id="__name__")):
            return True
    return False


def _makes(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="exec"), args=[_]):
            return True
        case ast.Call(func=func, args=[ast.Name(id="__name__"), *_]) if (
            last(func) == "import_module"
        ):
            return True
        case ast.Subscript(
            value=ast.Attribute(attr="modules"), slice=ast.Name(id="__name__"), ctx=ast.Store()
        ):
            return True
        case ast.Subscript(value=ast.Call(func=ast.Name(id="locals")), ctx=ast.Store()):
            return True
        case ast.Attribute(value=ast.Call(func=ast.Name(id="locals")), attr=attr):
            return attr in _CHANGES
    return False


def _looked_at(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that it only looks at."""
    match node:
        case ast.Subscript(value=value, slice=key):
            # Another module's place in `sys.modules` is no name of this one.
            if not isinstance(node.ctx, ast.Store) or isinstance(value, ast.Attribute):
                yield value
            yield key
        case ast.Compare(comparators=others):
            yield from others
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _READS:
            yield value
        case ast.Call(func=func, args=args) if last(func) in _LOOKS:
            yield from args
        case ast.For(iter=value) | ast.comprehension(iter=value):
            yield value
