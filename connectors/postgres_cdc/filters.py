"""Filters of schemas, tables, columns and logical messages."""

import re

from standalone import ConfigError


class Names:
    """Matches names that fully match an include pattern, or no exclude pattern; all names without patterns."""

    def __init__(self, include, exclude):
        self._include = _compiled(include)
        self._exclude = _compiled(exclude)

    def take(self, *names):
        """Whether any of the thing's names is included."""
        if self._include is not None:
            return any(pattern.fullmatch(name) for pattern in self._include for name in names)
        return not any(pattern.fullmatch(name) for pattern in self._exclude or () for name in names)


def _compiled(patterns):
    return [_pattern(each.strip()) for each in patterns] if patterns else None


def _pattern(text):
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:  # Java syntax that Python does not support
        raise ConfigError(f"The regular expression {text!r} is not supported: {error}") from None


class Filters:
    def __init__(self, config):
        self._schemas, self._tables, self._columns = (
            Names(config[f"{kind}.include.list"], config[f"{kind}.exclude.list"]) for kind in ("schema", "table", "column")
        )
        self._prefixes = Names(config["message.prefix.include.list"], config["message.prefix.exclude.list"])
        self._snapshot = Names(config["snapshot.include.collection.list"], None)
        self._no_builtin = config["table.ignore.builtin"]

    def table(self, schema, name):
        if self._no_builtin and (schema.startswith("pg_") or schema == "information_schema"):
            return False
        return self._schemas.take(schema) and self._tables.take(f"{schema}.{name}")

    def snapshot(self, schema, name):
        return self._snapshot.take(f"{schema}.{name}")

    def column(self, schema, table, name):
        return self._columns.take(f"{schema}.{table}.{name}")

    def message(self, prefix):
        return self._prefixes.take(prefix)


class OfTables:
    """`pattern:value;pattern:value`: values for tables whose schema.table matches."""

    def __init__(self, text, between=";"):
        entries = [each.rpartition(":") for each in (text or "").split(between) if each.strip()]
        self._entries = [(_compiled([pattern])[0], what.strip()) for pattern, _, what in entries]

    def of(self, schema, table):
        return next((what for pattern, what in self._entries if pattern.fullmatch(f"{schema}.{table}")), None)
