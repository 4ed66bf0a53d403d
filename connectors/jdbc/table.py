"""Table names, quoted or not, and the filters that select tables."""

import fnmatch
import re
from dataclasses import dataclass

from standalone import ConfigError, regex_compiles


@dataclass(frozen=True, order=True)
class Table:
    name: str
    schema: str | None = None
    catalog: str | None = None

    @property
    def parts(self):
        return tuple(part for part in (self.catalog, self.schema, self.name) if part)

    @property
    def full(self):
        """The name in a source partition."""
        return ".".join(self.parts)

    def __str__(self):
        return self.full


def split(name, quotes):
    """Split a name at its dots. `quotes` are the pairs of characters that quote a part, which may then contain dots."""
    parts, at, part = [], 0, ""
    while at < len(name):
        pair = next((pair for pair in quotes if name.startswith(pair[0], at)), None)
        if pair is not None and not part:
            end = at + 1
            while (end := name.find(pair[1], end)) >= 0 and name[end + 1 : end + 2] == pair[1]:
                end += 2
            if end < 0:
                raise ConfigError(f"The table name {name} has an unclosed quote.")
            part = name[at + 1 : end].replace(pair[1] * 2, pair[1])
            at = end + 1
        elif name[at] == ".":
            parts.append(part)
            part, at = "", at + 1
        else:
            part, at = part + name[at], at + 1
    return [*parts, part]


class Choice:
    """The filters that select the tables to read.

    table.whitelist and table.blacklist have names with or without schema, case-insensitive; table.include.list and table.exclude.list have
    regular expressions for full names.
    """

    def __init__(self, config):
        self._white, self._black = ({each.lower() for each in config[f"table.{name}list"]} for name in ("white", "black"))
        self._include, self._exclude = ([_java(each) for each in config[f"table.{name}.list"]] for name in ("include", "exclude"))

    def take(self, table):
        names = {table.full.lower(), table.name.lower(), ".".join(table.parts[-2:]).lower()}
        if self._white:
            return bool(names & self._white)
        if self._black:
            return not names & self._black
        if self._include and not self._fits(self._include, table):
            return False
        return not self._fits(self._exclude, table)

    @staticmethod
    def _fits(patterns, table):
        return any(pattern.fullmatch(table.full) or pattern.fullmatch(".".join(table.parts[-2:])) for pattern in patterns)


def _java(pattern):
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise ConfigError(f"'{pattern}' is not a regular expression: {error}") from error


def like(pattern, name):
    """Return whether a name matches a LIKE pattern. None matches all names, an empty pattern only a missing name."""
    if pattern is None:
        return True
    if pattern == "":
        return not name
    return fnmatch.fnmatchcase(name or "", re.sub(r"([\[\]*?])", r"[\1]", pattern).replace("%", "*").replace("_", "?"))


def patterns_compile(name, value):
    """Regular expressions as in Java."""
    for each in value or ():
        regex_compiles(name, each)
