r"""How deeply a Python text is nested, told in linear time before a parser sees it.

libcst's parser (1.9) has no limit of its own: a text that nests without end
overflows the C stack and takes the process along, and some texts take it hours.
So a text is bounded here first. Tokens are cut as libcst cuts them (a nested
f-string is code too); where its tokenizer would stop, the text is refused as well,
since nothing behind that point was counted.

Measured with libcst 1.9 on a stack of 8 MiB, the smallest that overflowed: 1,000
nested brackets, 500 f-strings, 650 `lambda a=`, 3,200 `**`, `a if b else`, `.a` or
calls behind each other, 6,400 unary operators or `elif`. By the weights below
`LIMIT` is a quarter of that or less: no mixture of them overflowed 2 MiB. Patterns
of `case` and targets of `del` are tried in more than one way at every bracket,
which is counted as `work`; so is depth.
"""

from __future__ import annotations

import functools
import re

DEEP = "nested too deeply to be read safely"
BROKEN = "cut short in a string, or a bracket closes that was never opened"
LIMIT = 1_000
# Python's own frames per level are many: a sketch is nested less than a file may be.
SKETCH_LIMIT = 300
_WORK = 20_000_000
# Depth that every program has, and whose work is not counted.
_FREE = 60
_BRACKET, _LAMBDA, _INDENT, _DOT, _STRING = 8, 8, 16, 2, 0.25
_CLOSED = {")": 2, "}": 2, "]": 4}
# How many ways a bracket of a pattern is tried, at each level.
_WAYS = {"case": 6, "del": 3}
# Between tokens that count: blanks, comments, lines of no more than them, numbers, names.
_PASSED = r"""
    [ \t\f]+ | \\\n | \#[^\n]* | \n (?= [ \t\f]* (?: \#[^\n]* )? \n )
  | 0[xX][\da-fA-F_]+ | 0[oO][0-7_]+ | 0[bB][01_]+
  | (?: \d[\d_]* (?: \.[\d_]* )? | \.\d[\d_]* ) (?: [eE][+-]?\d[\d_]* )? [jJ]?
  | (?! (?: and|or|not|in|is|if|elif|else|for|lambda|await|case|del )(?![\w\x80-\U0010ffff]) )
    (?! [bBuUrRfFtT]{1,2}['"] )
    [A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*
"""
# What follows the pieces always fits, so none is ever given back: linear without possessive
# quantifiers, which CPython 3.11.0 to 3.11.4 match wrongly. By the hundred: each costs memory.
_TOKEN = rf"""
    (?: {_PASSED} ){{0,100}}
    (?: (?P<more> {_PASSED} )
      | (?P<line> \n (?P<indent> [ \t\f]* ) (?P<joined>\\)? )
      | (?P<fstring> (?: (?P<raw>[rR])[fFtT] | [fFtT](?P<raw2>[rR])? ) (?P<quote>\"\"\"|'''|"|') )
      | (?P<string> (?: [bB]?[rR] | [rR][bB] | [bBuU] )? (?P<mark>\"\"\"|'''|"|') )
      | (?P<word> [A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]* )
      | (?P<open> [(\[{{] ) | (?P<close> [)\]}}] ) | (?P<comma> , ) | (?P<semicolon> ; )
      | (?P<colon> : ) | (?P<atom> \.\.\. ) | (?P<dot> \. ) | (?P<broken> \\ )
      | (?P<operator> . ) | (?P<end> \Z ) )
"""
# What a string holds before its end, by its quotes; by the hundred, too.
_HELD = {
    "'": r"[^'\\\n]+",
    '"': r'[^"\\\n]+',
    "'''": r"[^'\\]+ | '(?!'')",
    '"""': r'[^"\\]+ | "(?!"")',
}
# What may follow `case` where it is a name like any other.
_NAMED = re.compile(r"[ \t\f]*(?:\\\n[ \t\f]*)*[=.,:;)\]]")
_SPECIAL = re.compile(r"""['"\\{}]""")
_ESCAPED = frozenset("\n\\'\"abfnrtvx0123456789NuU")


def trouble(text: str, *, limit: int = LIMIT) -> str | None:
    """Return why libcst must not be given a text, None if it may.

    Example:
        >>> trouble("x = [[1], -2]"), trouble("x = " + "-" * 100_000 + "1")
        (None, 'nested too deeply to be read safely')
    """
    scan = _Scan("\n" + re.sub("\r\n?", "\n", text), limit)
    try:
        scan.run()
    except _Stop as stop:
        return str(stop)
    return None


@functools.cache
def _token() -> re.Pattern[str]:
    """Return the pattern of a token: compiled (20 ms) only by who reads a text."""
    return re.compile(_TOKEN, re.VERBOSE | re.DOTALL)


@functools.cache
def _held(quote: str) -> re.Pattern[str]:
    return re.compile(rf"(?: {_HELD[quote]} | \\. ){{0,100}}", re.VERBOSE | re.DOTALL)


class _Stop(Exception):
    """What the text cannot be read for; nothing behind it was counted."""


class _Frame:
    """What is open: a bracket, or the logical line.

    A tree is no higher than its `links` (operators) and its highest operand;
    `base` is what is open around it, `widest` the highest of what commas closed.
    """

    __slots__ = ("base", "chain", "lambdas", "links", "loops", "most", "widest")

    def __init__(self, base: float) -> None:
        self.base = base
        self.links = self.most = self.chain = self.widest = 0.0
        # `for` of a comprehension, and `lambda` without its colon: no comma ends them.
        self.loops = self.lambdas = 0

    @property
    def height(self) -> float:
        return self.links + max(self.most, self.chain) + self.loops


class _FString:
    """An f-string that is open, as libcst's FStringNode."""

    __slots__ = ("brackets", "quote", "raw", "specs")

    def __init__(self, quote: str, raw: bool) -> None:
        self.quote, self.raw = quote, raw
        self.brackets = self.specs = 0


class _Scan:
    """One text while it is read; `ways`: how often brackets of this line are tried again."""

    def __init__(self, text: str, limit: int) -> None:
        self.text, self.limit = text, limit
        self.frames = [_Frame(0)]
        self.strings: list[_FString] = []
        # Column, and how many `elif` the statement that is open there has.
        self.indents = [[0, 0]]
        # Depth of the statements around this line.
        self.around = 0
        self.work, self.ways, self.fresh = 0.0, 1, True

    def run(self) -> None:
        """Read the whole text. Raises: _Stop."""
        at, token = 0, _token()
        while at < len(self.text):
            if self.strings and self.strings[-1].brackets <= self.strings[-1].specs:
                at = self._content(self.strings[-1], at)
                continue
            found = token.match(self.text, at)
            assert found is not None
            assert found.lastgroup is not None
            at = found.end()
            if found["more"]:
                continue
            if found["line"]:
                self._line(found["indent"], joined=bool(found["joined"]))
                at -= bool(found["joined"])
            elif found["fstring"]:
                self.strings.append(_FString(found["quote"], bool(found["raw"] or found["raw2"])))
                self._open("")
            else:
                if found["string"]:
                    at = self._behind(found["mark"], at)
                self._token(found.lastgroup, found[found.lastgroup], at)

    def _behind(self, quote: str, at: int) -> int:
        """Return the place behind a string whose quotes open before `at`. Raises: _Stop."""
        while (found := _held(quote).match(self.text, at)) and found.end() > at:
            at = found.end()
        if not self.text.startswith(quote, at):
            raise _Stop(BROKEN)
        return at + len(quote)

    def _token(self, kind: str, text: str, at: int) -> None:
        frame = self.frames[-1]
        if self.fresh:
            self._first(text, at)
        match kind:
            case "word" | "operator" | "colon":
                if text == "lambda":
                    frame.lambdas += 1
                elif text == "for":
                    frame.loops += 1
                self._link(_LAMBDA if text == "lambda" else 1)
                if kind == "colon":
                    self._colon(frame)
            case "open":
                self._open(text)
            case "close":
                self._close(text)
            case "comma" | "semicolon":
                if not frame.lambdas:
                    frame.widest = max(frame.widest, frame.height)
                    frame.links = frame.most = frame.chain = 0
            case "dot" | "string":
                frame.chain += _DOT if kind == "dot" else _STRING
                self._add(_DOT)
            case "broken":
                raise _Stop(BROKEN)

    def _first(self, text: str, at: int) -> None:
        """Take in the first token of a logical line."""
        self.fresh = False
        level = self.indents[-1]
        level[1] = level[1] + 1 if text == "elif" else level[1] if text == "else" else 0
        self.ways = 1
        if text == "del" or (text == "case" and not _NAMED.match(self.text, at)):
            self.ways = _WAYS[text]
        if text == "elif":
            self.around += 1

    def _line(self, indent: str, *, joined: bool) -> None:
        """Begin a line; a backslash behind its indent hides that from the tokenizer."""
        if len(self.frames) > 1:
            return
        self.fresh = True
        if not joined:
            column = len(indent.rpartition("\f")[2].expandtabs())
            while self.indents[-1][0] > column:
                self.indents.pop()
            if self.indents[-1][0] < column:
                self.indents.append([column, 0])
        self.around = sum(_INDENT + elifs for _, elifs in self.indents)
        self.frames[0] = _Frame(0)
        self._add(0)

    def _open(self, text: str) -> None:
        outer = self.frames[-1]
        self.frames.append(_Frame(outer.base + outer.height + _BRACKET))
        if text and self.strings:
            self.strings[-1].brackets += 1
        self.work += self.ways ** len(self.frames) if self.ways > 1 else 0
        self._add(_BRACKET)

    def _close(self, text: str) -> None:
        if self.strings and text:
            string = self.strings[-1]
            string.brackets -= 1
            string.specs = string.specs if string.brackets else 0
        if len(self.frames) == 1:
            raise _Stop(BROKEN)
        inner = self.frames.pop()
        outer = self.frames[-1]
        outer.chain = max(outer.chain, inner.widest, inner.height) + _CLOSED.get(text, 2)
        self._add(2)

    def _colon(self, frame: _Frame) -> None:
        frame.lambdas -= bool(frame.lambdas)
        if self.strings and self.strings[-1].brackets - self.strings[-1].specs == 1:
            self.strings[-1].specs += 1

    def _content(self, string: _FString, at: int) -> int:
        """Read what an f-string says up to its next brace or its end; return the place."""
        text = self.text
        while found := _SPECIAL.search(text, at):
            at, sign = found.start(), found[0]
            if sign in "'\"":
                if text.startswith(string.quote, at):
                    self.strings.pop()
                    self._close("")
                    return at + len(string.quote)
                at += 1
            elif sign == "\\":
                at = self._escape(string, at + 1)
            elif string.specs or text[at + 1 : at + 2] != sign:
                if sign == "{":
                    self._open(sign)
                else:
                    self._close(sign)
                return at + 1
            else:
                at += 2
        raise _Stop(BROKEN)

    def _escape(self, string: _FString, at: int) -> int:
        following = self.text[at : at + 1]
        if string.raw:
            return at + (following in ("'", '"', "\\"))
        if string.specs:
            return at + (following not in ("{", "}"))
        if self.text.startswith("N{", at):
            return self.text.find("}", at) + 1 or len(self.text)
        return at + (following in _ESCAPED)

    def _link(self, weight: float) -> None:
        frame = self.frames[-1]
        frame.most, frame.chain = max(frame.most, frame.chain), 0
        frame.links += weight
        self._add(weight)

    def _add(self, weight: float) -> None:
        """Judge what the innermost frame has grown to."""
        frame = self.frames[-1]
        depth = frame.base + frame.height
        if depth > _FREE:
            self.work += weight * depth
        if self.around + depth > self.limit or self.work > _WORK:
            raise _Stop(DEEP)
