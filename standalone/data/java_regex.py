"""Regular expressions as Java writes them, compiled to Python's: topics.regex, topic.creation.*, patterns of transforms.

What the two write differently is translated: named groups, quoting, POSIX and Unicode classes, ASCII-only `\\d \\w \\s`, Java's line
ends, flags in the midst. What Python cannot do (class intersections, `\\G`) is refused by name.
"""

import functools
import re
import sys
import unicodedata

from standalone.errors import ConfigError

_LINE_ENDS = "\\n\\r\\x85\\u2028\\u2029"
_BLANKS = " \\t\\xa0\\u1680\\u180e\\u2000-\\u200a\\u202f\\u205f\\u3000"
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": "!-/:-@\\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": " \\t-\\r",
}
_PROPERTY = re.compile(r"\\[pP](?:\{(?:\^)?(\w+)\}|(\w))")
_GROUP_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_COUNT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")


@functools.lru_cache(maxsize=256)
def compile_java(pattern):
    """A compiled `re` pattern with Java's meaning; use `fullmatch` for Java's matches(). Raises ConfigError."""
    try:
        return re.compile(_Translation(pattern).run(), re.ASCII)
    except (re.error, _Unknown) as error:
        raise ConfigError(f"'{pattern}' is not a regular expression that can be used: {error}") from None


class _Unknown(Exception):
    pass


class _Translation:
    """One pass over the pattern. Flags set in the midst hold to the end of their group: they become groups of their own."""

    def __init__(self, pattern):
        self._pattern = pattern
        self._at = 0
        self._out = []
        self._groups = [_Group(False)]

    def run(self):
        while self._at < len(self._pattern):
            self._step()
        self._close_flags()
        return "".join(self._out)

    def _step(self):
        char = self._pattern[self._at]
        if char == "\\":
            self._out.append(self._escape(inside=False))
        elif char == "[":
            self._out.append(self._set())
        elif char == "(":
            self._open()
        elif char == ")":
            self._close_flags()
            if len(self._groups) > 1:
                self._groups.pop()
            self._take(")")
        elif char == "|":
            flags = self._groups[-1].flags
            self._out.append(")" * len(flags) + "|" + "".join(f"(?{each}:" for each in flags))
            self._at += 1
        elif char == "." and not self._groups[-1].dotall:
            self._take(".", f"[^{_LINE_ENDS}]")
        elif char == "{" and not _COUNT.match(self._pattern, self._at):
            raise _Unknown(f"a '{{' at {self._at} that counts nothing: write '\\{{' for the character")
        else:
            self._take(char)

    def _take(self, text, instead=None):
        self._at += len(text)
        self._out.append(text if instead is None else instead)

    def _open(self):
        dotall = self._groups[-1].dotall
        if self._pattern.startswith("(?<", self._at) and self._pattern[self._at + 3 : self._at + 4] not in ("=", "!"):
            self._take("(?<", "(?P<")
        elif self._pattern.startswith(("(?P", "(?#"), self._at):
            raise _Unknown(f"'{self._pattern[self._at : self._at + 3]}' is not Java's")
        elif match := _GROUP_FLAGS.match(self._pattern, self._at):
            on, off, end = match.groups(default="")
            flags = "".join(each for each in on if each not in "ud") + (f"-{off}" if off else "")
            if set(on + off) - set("imsxud"):
                raise _Unknown(f"the flags of '{match[0]}'")
            dotall = (dotall or "s" in on) and "s" not in off
            self._at = match.end()
            if end == ")":
                self._groups[-1].dotall = dotall
                if flags:
                    self._groups[-1].flags.append(flags)
                    self._out.append(f"(?{flags}:")
                return
            self._out.append(f"(?{flags}:")
        elif match := re.compile(r"\((?:\?(?:<?[=!]|>))?").match(self._pattern, self._at):
            self._take(match[0])
        self._groups.append(_Group(dotall))

    def _close_flags(self):
        self._out.append(")" * len(self._groups[-1].flags))

    def _escape(self, inside):
        """The escape that stands here; `inside` a set, without brackets of its own."""
        pattern, start = self._pattern, self._at
        letter = pattern[start + 1 : start + 2]
        self._at += 2
        if letter == "":
            raise _Unknown("a backslash at the end")
        if letter == "Q":
            end = pattern.find("\\E", self._at)
            quoted = pattern[self._at : end if end >= 0 else len(pattern)]
            self._at = end + 2 if end >= 0 else len(pattern)
            return "".join(map(re.escape, quoted))
        if letter in "pP":
            return self._property(start, letter == "P", inside)
        if letter in "hH":
            return self._class(_BLANKS, letter == "H", inside)
        if match := re.compile(r"\\(?:x\{([0-9a-fA-F]+)\}|0([0-3]?[0-7]{1,2})|c(.)|e)", re.DOTALL).match(pattern, start):
            self._at = match.end()
            wide, octal, control = match.groups()
            code = int(wide, 16) if wide else int(octal, 8) if octal else ord(control) ^ 64 if control else 0x1B
            if code > sys.maxunicode:
                raise _Unknown(f"the character '{match[0]}'")
            return re.escape(chr(code))
        if inside:
            return pattern[start : self._at]
        if letter == "k" and (match := re.compile(r"\\k<(\w+)>").match(pattern, start)):
            self._at = match.end()
            return f"(?P={match[1]})"
        return {"z": "\\Z", "Z": f"(?=(?:\\r\\n|[{_LINE_ENDS}])?\\Z)", "R": f"(?:\\r\\n|[\\x0b\\f{_LINE_ENDS}])"}.get(letter, f"\\{letter}")

    def _property(self, start, negated, inside):
        match = _PROPERTY.match(self._pattern, start)
        if not match:
            raise _Unknown(f"the class at {start}")
        self._at = match.end()
        name = match[1] or match[2]
        members = _POSIX.get(name) or _category(name[2:] if name.startswith("Is") else name)
        if members is None:
            raise _Unknown(f"the class '{match[0]}'")
        return self._class(members, negated, inside)

    def _class(self, members, negated, inside):
        if not inside:
            return f"[{'^' if negated else ''}{members}]"
        if negated:
            raise _Unknown("a negated class within a set")
        return members

    def _set(self):
        """A set: Java nests and intersects them, Python cannot."""
        start = self._at
        out = ["["]
        self._at += 1
        if self._pattern.startswith("^", self._at):
            out.append("^")
            self._at += 1
        first = True
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char == "]" and not first:
                self._at += 1
                return "".join(out) + "]"
            if char == "\\":
                out.append(self._escape(inside=True))
            elif char == "[" or self._pattern.startswith("&&", self._at):
                raise _Unknown(f"a set within a set at {self._at}")
            else:
                out.append("\\" + char if char in "]|~" else char)
                self._at += 1
            first = False
        raise _Unknown(f"the set at {start} has no end")


class _Group:
    def __init__(self, dotall):
        self.dotall = dotall
        self.flags = []  # set within the group so far, each an open group of the translation


@functools.lru_cache(maxsize=None)
def _category(name):
    """The members of a Unicode category (L, Lu, Nd, …) as ranges of a set; None if there is no such category."""
    ranges, begun = [], None
    for code in range(sys.maxunicode + 2):
        is_member = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(name)
        if is_member and begun is None:
            begun = code
        elif not is_member and begun is not None:
            ranges.append(f"\\U{begun:08x}-\\U{code - 1:08x}")
            begun = None
    return "".join(ranges) or None
