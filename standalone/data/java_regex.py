"""Java regular expressions, compiled by the package `regex`: topics.regex, topic.creation.*, patterns of transforms.

Like Java, `regex` supports nested sets, intersections and possessive quantifiers. Differences in syntax are translated: named groups,
quoting, POSIX and Unicode classes, scripts, blocks, classes of Java's Character, ASCII-only `\\d \\w \\s` (Unicode's with `(?U)`), Java's
line terminators, flags in the middle, comments.
An unsupported construct is rejected by name.
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
    "Punct": "!-/:-@\\[-`{-\\~",
    "Graph": "!-\\~",
    "Print": " -\\~",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": " \\t-\\r",
}
_UNICODE = {  # under (?U)
    "Lower": "\\p{Lowercase}",
    "Upper": "\\p{Uppercase}",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "\\p{Alphabetic}",
    "Digit": "\\p{Nd}",
    "Alnum": "\\p{Alphabetic}\\p{Nd}",
    "Punct": "\\p{P}",
    "Graph": "[^\\p{White_Space}\\p{Cc}\\p{Cs}\\p{Cn}]",
    "Print": "[^\\p{White_Space}\\p{Cc}\\p{Cs}\\p{Cn}]\\p{Zs}",
    "Blank": "\\p{Zs}\\t",
    "Cntrl": "\\p{Cc}",
    "XDigit": "\\p{Nd}\\p{Hex_Digit}",
    "Space": "\\p{White_Space}",
}
_LETTERS = {"d": "0-9", "w": "a-zA-Z0-9_", "s": " \\t-\\r", "h": _BLANKS, "v": f"\\x0b\\f{_LINE_ENDS}"}
_UNICODE_LETTERS = {
    **_LETTERS,
    "d": "\\p{Nd}",
    "w": "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u200c\\u200d",
    "s": "\\p{White_Space}",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_BY_NUMBER = re.compile(r"\\(?:x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|0([0-3]?[0-7]{1,2})|c(.))", re.DOTALL)
_SECOND_HALF = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_PROPERTY = re.compile(r"\\[pP](?:\{([^{}^]+)\}|(\w))")
_NAMED = re.compile(r"\\N\{([^{}]+)\}")
_GROUP_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_GROUP = re.compile(r"\((?:\?(?:<?[=!]|>|<[a-zA-Z][a-zA-Z0-9]*>))?")
_COUNT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_COMMENT = re.compile(r"(?:[ \t-\r]|#[^\n\r\x85\u2028\u2029]*)+")


@functools.lru_cache(maxsize=256)
def compile_java(pattern):
    """Compile a pattern with Java's semantics, with the methods of `re`; use `fullmatch` for matches(). Raise ConfigError."""
    import regex  # loads slowly, and most workers have no such pattern

    try:
        translation = _Translation(pattern)
        text = translation.run()
        # Case folding is ASCII-only unless (?u) or (?U) is set; one letter never matches two, such as ß and ss.
        return regex.compile(f"(?-f){text}", regex.V1 if translation.knows_unicode else regex.V1 | regex.ASCII)
    except (regex.error, _Unknown, RecursionError) as error:
        raise ConfigError(f"'{pattern}' is not a supported regular expression: {error}") from None


class _Unknown(Exception):
    pass


class _Group:
    """The state within a group."""

    def __init__(self, dotall=False, comments=False, unicode=False, caseless=False, unix=False):
        self.dotall, self.comments, self.unicode, self.caseless, self.unix = dotall, comments, unicode, caseless, unix
        self.flags = []  # set within the group so far; each opens a group of the translation

    def changed(self, on, off):
        def now(flag, before):
            return (before or flag in on) and flag not in off

        return _Group(now("s", self.dotall), now("x", self.comments), now("U", self.unicode), now("i", self.caseless), now("d", self.unix))


class _Translation:
    """One pass over the pattern. A flag in the middle applies to the end of its group: it becomes a group."""

    def __init__(self, pattern):
        self._pattern = pattern
        self._at = 0
        self._out = []
        self._groups = [_Group()]
        self.knows_unicode = False
        self._names = set()  # group names

    def run(self):
        while self._at < len(self._pattern):
            self._step()
        self._close_flags()
        return "".join(self._out)

    @property
    def _here(self):
        return self._groups[-1]

    def _step(self):
        char = self._pattern[self._at]
        if self._here.comments and (match := _COMMENT.match(self._pattern, self._at)):
            self._at = match.end()
        elif char == "\\":
            self._out.append(self._outside(self._escape()))
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
            flags = self._here.flags
            self._out.append(")" * len(flags) + "|" + "".join(f"(?{each}:" for each in flags))
            self._at += 1
        elif char == ".":
            self._take(".", "(?s:.)" if self._here.dotall else "[^\\n]" if self._here.unix else f"[^{_LINE_ENDS}]")
        elif char == "{":
            if not (count := _COUNT.match(self._pattern, self._at)):
                raise _Unknown(f"a '{{' at {self._at} that is not a quantifier: write '\\{{' for the character")
            self._take(count[0])
        else:
            self._take(char, char if char in "*+?^$" else _literal(char))

    def _take(self, text, instead=None):
        self._at += len(text)
        self._out.append(text if instead is None else instead)

    def _open(self):
        if match := _GROUP_FLAGS.match(self._pattern, self._at):
            on, off, end = match.groups(default="")
            if set(on + off) - set("imsxudU"):
                raise _Unknown(f"the flags of '{match[0]}'")
            self.knows_unicode = self.knows_unicode or "u" in on or "U" in on
            kept = "".join(each for each in on if each in "im")
            dropped = "".join(each for each in off if each in "im")
            flags = kept + (f"-{dropped}" if dropped else "")
            self._at = match.end()
            inside = self._here.changed(on, off)
            if end == ")":
                inside.flags = [*self._here.flags, *([flags] if flags else [])]
                self._groups[-1] = inside
                self._out.append(f"(?{flags}:" if flags else "")
                return
            self._out.append(f"(?{flags}:")
            self._groups.append(inside)
            return
        match = _GROUP.match(self._pattern, self._at)
        if self._pattern.startswith(("?", "*"), match.end()):
            raise _Unknown(f"'{self._pattern[self._at : match.end() + 2]}' is not Java's")
        if (name := match[0][3:-1]) and match[0].endswith(">") and len(match[0]) > 3:
            if name in self._names:
                raise _Unknown(f"two groups of the name '{name}'")
            self._names.add(name)
        self._take(match[0])
        self._groups.append(self._here.changed("", ""))

    def _close_flags(self):
        self._out.append(")" * len(self._here.flags))

    # --- Escapes: each is a character, ("set", members, negated), or ("text", its meaning outside sets)

    def _outside(self, found):
        if isinstance(found, str):
            return "".join(map(_literal, found))
        kind, text, *negated = found
        return text if kind == "text" else f"[{'^' if negated[0] else ''}{text}]"

    def _escape(self):
        pattern, start = self._pattern, self._at
        letter = pattern[start + 1 : start + 2]
        self._at += 2
        if letter == "":
            raise _Unknown("a backslash at the end")
        if letter == "Q":
            end = pattern.find("\\E", self._at)
            quoted = pattern[self._at : end if end >= 0 else len(pattern)]
            self._at = end + 2 if end >= 0 else len(pattern)
            return quoted
        if letter in "pP":
            return self._property(start, letter == "P")
        if letter.lower() in _LETTERS:
            letters = _UNICODE_LETTERS if self._here.unicode else _LETTERS
            return "set", letters[letter.lower()], letter.isupper()
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if match := _BY_NUMBER.match(pattern, start):
            return self._by_number(match)
        if letter == "k" and (match := re.compile(r"\\k<(\w+)>").match(pattern, start)):
            if match[1] not in self._names:
                raise _Unknown(f"no group '{match[1]}' is before {start}")
            self._at = match.end()
            return "text", f"(?P={match[1]})"
        if match := _NAMED.match(pattern, start):
            self._at = match.end()
            return _character(match[1])
        if letter == "X":
            return "text", self._grapheme()
        if letter in "bB":
            return "text", self._boundary(letter == "B")
        known = {"z": "\\Z", "Z": f"(?=(?:\\r\\n|[{_LINE_ENDS}])?\\Z)", "R": f"(?:\\r\\n|[\\x0b\\f{_LINE_ENDS}])", "A": "\\A", "G": "\\G"}
        if letter in known:
            return "text", known[letter]
        if letter in "123456789":
            return "text", f"(?:\\{letter})"
        if letter.isascii() and letter.isalnum():
            raise _Unknown(f"bad escape \\{letter} at {start}")
        return letter

    def _by_number(self, match):
        self._at = match.end()
        wide, short, unit, octal, control = match.groups()
        if control:
            return chr(ord(control) ^ 64)
        code = int(octal, 8) if octal else int(wide or short or unit, 16)
        if unit and 0xD800 <= code < 0xDC00 and (second := _SECOND_HALF.match(self._pattern, self._at)):
            self._at = second.end()
            code = 0x10000 + (code - 0xD800 << 10) + int(second[1], 16) - 0xDC00
        if code > sys.maxunicode:
            raise _Unknown(f"the character '{match[0]}'")
        return chr(code)

    def _boundary(self, negated):
        """Java's words consist of letters and digits of all scripts and _, even without (?U)."""
        word = f"[{_UNICODE_LETTERS['w']}]" if self._here.unicode else f"[_{_category('L')}{_category('Nd')}]"
        inside, edge = f"(?<={word})(?={word})|(?<!{word})(?!{word})", f"(?<={word})(?!{word})|(?<!{word})(?={word})"
        return f"(?:{inside if negated else edge})"

    def _property(self, start, negated):
        match = _PROPERTY.match(self._pattern, start)
        if not match:
            raise _Unknown(f"the class at {start}")
        self._at = match.end()
        name = match[1] or match[2]
        members = (_UNICODE if self._here.unicode else _POSIX).get(name) or _property_members(name)
        if members is None:
            raise _Unknown(f"the class '{match[0]}'")
        if self._here.caseless and name.removeprefix("Is") in _OF_ONE_CASE:
            members = _category("Lu") + _category("Ll") + _category("Lt")
        return "set", members, negated

    def _grapheme(self):
        if self._here.caseless and not self.knows_unicode:
            raise _Unknown("\\X together with (?i): add (?u)")
        self.knows_unicode = True
        return "\\X"

    # --- Sets

    def _set(self):
        """Parse a set: members, nested sets and intersections."""
        start = self._at
        self._at += 1
        negated = self._pattern.startswith("^", self._at)
        self._at += negated
        operands, members = [], []
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if self._here.comments and (match := _COMMENT.match(self._pattern, self._at)):
                self._at = match.end()
            elif char == "]" and (members or operands):
                self._at += 1
                return f"[{'^' if negated else ''}{self._intersected(operands, members, start)}]"
            elif self._pattern.startswith("&&", self._at):
                self._at += 2
                operands.append(members)
                members = []
            elif char == "[":
                members.append(self._set())
            else:
                members.append(self._member())
        raise _Unknown(f"the set at {start} has no end")

    @staticmethod
    def _intersected(operands, members, start):
        operands = [*filter(None, operands), members]  # nothing before && means everything
        if not members:
            raise _Unknown(f"an intersection with nothing in the set at {start}")
        texts = ["".join(each) for each in operands]
        return texts[0] if len(texts) == 1 else "&&".join(f"[{text}]" for text in texts)

    def _member(self):
        """Parse a character, range or class."""
        first = self._one()
        if not isinstance(first, str):
            kind, text, *negated = first
            if kind == "text":
                raise _Unknown("a construct in a set that is not a character")
            return f"[^{text}]" if negated[0] else text
        follows = self._pattern[self._at : self._at + 2]
        if len(first) != 1 or follows[:1] != "-" or follows[1:] in ("", "]", "["):
            return "".join(map(_in_set, first))
        self._at += 1
        last = self._one()
        if not isinstance(last, str) or len(last) != 1 or last < first:
            raise _Unknown(f"an unfinished range at {self._at}")
        return f"{_in_set(first)}-{_in_set(last)}"

    def _one(self):
        if self._pattern[self._at] == "\\":
            return self._escape()
        self._at += 1
        return self._pattern[self._at - 1]


def _literal(char):
    return char if char.isalnum() and char.isascii() else _in_set(char)


def _in_set(char):
    return char if char.isascii() and char.isalnum() else f"\\U{ord(char):08x}"


# --- Character classes, as ranges of a set


_OF_ONE_CASE = ("Lu", "Ll", "Lt", "javaLowerCase", "javaUpperCase", "javaTitleCase", "Lowercase", "Uppercase", "Titlecase")
_BINARY = {  # \p{Is…}, in any case
    **{name: name for name in ("alphabetic", "ideographic", "lowercase", "uppercase", "white_space", "hex_digit", "join_control")},
    **{"whitespace": "white_space", "hexdigit": "hex_digit", "joincontrol": "join_control", "letter": "L", "titlecase": "Lt", "digit": "Nd"},
    **{"punctuation": "P", "control": "Cc", "noncharacter_code_point": "noncharacter_code_point"},
}
_OF_JAVA = {  # \p{java…}: Character.is…
    **{"LowerCase": "\\p{lowercase}", "UpperCase": "\\p{uppercase}", "Alphabetic": "\\p{alphabetic}", "Ideographic": "\\p{ideographic}"},
    **{"TitleCase": "\\p{Lt}", "Digit": "\\p{Nd}", "Letter": "\\p{L}", "LetterOrDigit": "[\\p{L}\\p{Nd}]", "Defined": "\\P{Cn}"},
    **{"SpaceChar": "\\p{Z}", "Whitespace": "[\\p{Z}\\t-\\r\\x1c-\\x1f--[\\xa0\\u2007\\u202f]]", "ISOControl": "\\p{Cc}"},
}
_OF_ITS_OWN = {"LC": "[\\p{Lu}\\p{Ll}\\p{Lt}]", "LD": "[\\p{L}\\p{Nd}]", "L1": "[\\x00-\\xff]", "all": "[\\x00-\\U0010ffff]"}
_KINDS = {"script": "Script", "sc": "Script", "block": "Block", "blk": "Block", "general_category": "gc", "gc": "gc"}


def _property_members(name):
    """Return the members of a class other than POSIX; None if unknown."""
    kind, equals, value = name.partition("=")
    if equals:
        return _members(f"\\p{{{_KINDS[kind.lower()]}={value}}}") if kind.lower() in _KINDS else None
    if name.startswith("java"):
        return _members(_OF_JAVA[name[4:]]) if name[4:] in _OF_JAVA else None
    if name.startswith("In"):
        return _members(f"\\p{{Block={name[2:]}}}")
    if name in _OF_ITS_OWN:
        return _members(_OF_ITS_OWN[name])
    if not name.startswith("Is"):
        return _category(name)
    name = name[2:]
    binary = _BINARY.get(name.lower())
    if name in _UNICODE:
        return _members(f"[{_UNICODE[name]}]")
    return _members(f"\\p{{{binary}}}") if binary else _category(name) or _members(f"\\p{{Script={name}}}")


@functools.lru_cache(maxsize=64)
def _members(expression):
    """Return the characters that a `regex` expression matches; None if it is invalid."""
    import regex

    try:
        found = regex.compile(f"(?:{expression})+", regex.V1)
    except regex.error:
        return None
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    return "".join(f"\\U{match.start():08x}-\\U{match.end() - 1:08x}" for match in found.finditer(every)) or None


def _character(name):
    try:
        return unicodedata.lookup(name)
    except KeyError:
        raise _Unknown(f"the character '{name}'") from None


def _category(name):
    """Return the members of a Unicode category (L, Lu, Nd, …); None if unknown."""
    return _members(f"\\p{{gc={name}}}") if 1 <= len(name) <= 2 and name.isalpha() else None
