"""The names that every module has without a line of its own, by Python's version."""

from __future__ import annotations

_SINCE_3_8 = frozenset(
    """
    ArithmeticError AssertionError AttributeError BaseException BlockingIOError
    BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError
    ConnectionError ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError
    Ellipsis EnvironmentError Exception False FileExistsError FileNotFoundError
    FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning
    IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt
    LookupError MemoryError ModuleNotFoundError NameError None NotADirectoryError
    NotImplemented NotImplementedError OSError OverflowError PendingDeprecationWarning
    PermissionError ProcessLookupError RecursionError ReferenceError ResourceWarning
    RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning
    SystemError SystemExit TabError TimeoutError True TypeError UnboundLocalError
    UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError UnicodeWarning
    UserWarning ValueError Warning ZeroDivisionError __build_class__ __debug__ __import__ abs
    all any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex
    copyright credits delattr dict dir divmod enumerate eval exec exit filter float format
    frozenset getattr globals hasattr hash help hex id input int isinstance issubclass iter
    len license list locals map max memoryview min next object oct open ord pow print property
    quit range repr reversed round set setattr slice sorted staticmethod str sum super tuple
    type vars zip WindowsError
    __name__ __doc__ __file__ __spec__ __loader__ __package__ __path__ __builtins__ __cached__
    __annotations__ __dict__
    """.split()
)
_LATER = {
    (3, 10): frozenset({"EncodingWarning", "aiter", "anext"}),
    (3, 11): frozenset({"BaseExceptionGroup", "ExceptionGroup"}),
    (3, 13): frozenset({"PythonFinalizationError", "_IncompleteInputError"}),
}


def names(python: str | None = None) -> frozenset[str]:
    """Return the builtins, and the names a module is born with, of Python ``x.y``.

    None: those that any supported Python has.

    Example:
        >>> "aiter" in names("3.9"), "aiter" in names("3.10"), "aiter" in names()
        (False, True, True)
    """
    version = tuple(int(part) for part in python.split(".")[:2]) if python else None
    later = (found for since, found in _LATER.items() if version is None or since <= version)
    return _SINCE_3_8.union(*later)
