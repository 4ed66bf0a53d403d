"""Names of tables, with and without quotes, and which tables a connector takes."""

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
        """As it is in the key of a source partition."""
        return ".".join(self.parts)

    def __str__(self):
        return self.full


def split(name, quotes):
    """The parts of a name, which may be quoted by any of these pairs of signs: they may hold dots then."""
    parts, at, part = [], 0, ""
    while at < len(name):
        pair = next((pair for pair in quotes if name.startswith(pair[0], at)), None)
        if pair is not None and not part:
            end = at + 1
            while (end := name.find(pair[1], end)) >= 0 and name[end + 1 : end + 2] == pair[1]:
                end += 2
            if end < 0:
                raise ConfigError(f"The table name {name} has a quote that nothing closes.")
            part = name[at + 1 : end].replace(pair[1] * 2, pair[1])
            at = end + 1
        elif name[at] == ".":
            parts.append(part)
            part, at = "", at + 1
        else:
            part, at = part + name[at], at + 1
    return [*parts, part]


class Choice:
    """Which of a database's tables are read.

    Names in table.whitelist and table.blacklist are bare or full, and case does not count; table.include.list and table.exclude.list are
    regular expressions of full names.
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
    """Whether a name fits a pattern of SQL's LIKE; None fits all, and an empty pattern those without a name."""
    if pattern is None:
        return True
    if pattern == "":
        return not name
    return fnmatch.fnmatchcase(name or "", re.sub(r"([\[\]*?])", r"[\1]", pattern).replace("%", "*").replace("_", "?"))


def patterns_compile(name, value):
    """Regular expressions of Java's."""
    for each in value or ():
        regex_compiles(name, each)
