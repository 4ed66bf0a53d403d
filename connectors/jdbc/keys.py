"""Configuration keys that source and sink share."""

import zoneinfo

from connectors.jdbc.dialects import NAMES
from standalone import HIGH, INT, LONG, LOW, MEDIUM, PASSWORD, STRING, ConfigError, Option, at_least, one_of

PROVIDER = "io.confluent.connect.jdbc.util.DefaultJdbcCredentialsProvider"
PASSING = ("connection.", "jdbc.credentials.provider.")


class AnyCase:
    """One of these words, in upper or lower case."""

    def __init__(self, *words):
        self._words = words

    def __call__(self, name, value):
        if value is not None and value not in {form for word in self._words for form in (word.upper(), word.lower())}:
            raise ConfigError(f"'{name}' must be one of {self}, found {value!r}")

    def __str__(self):
        return f"[{', '.join(self._words)}] (upper or lower case)"


def known_zone(name, value):
    """A time zone id such as Europe/Paris."""
    if value is not None:
        try:
            zoneinfo.ZoneInfo(value)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise ConfigError(f"'{name}' must be a time zone id such as UTC or Europe/Paris, found {value!r}") from None


def known_dialect(name, value):
    """A dialect name."""
    if value not in NAMES:
        AnyCase(*NAMES)(name, value)


def connection(group, *, url_default, url_dependents=()):
    """Return the connection options as {name: Option}."""
    required = {} if url_default is None else {"default": url_default}
    options = (
        Option("connection.url", STRING, HIGH, "The jdbc: URL of the database, or an SQLAlchemy URL.", group=group,
               dependents=url_dependents, **required),
        Option("connection.user", STRING, HIGH, "The database user.", default=None, group=group),
        Option("connection.password", PASSWORD, HIGH, "The password of the user.", default=None, group=group),
        Option("jdbc.credentials.provider.class", STRING, LOW, "Only the default: connection.user and connection.password.",
               default=PROVIDER, check=one_of(PROVIDER), group=group),
        Option("connection.attempts", INT, LOW, "Connection attempts before the task fails.", default=3, check=at_least(1), group=group),
        Option("connection.backoff.ms", LONG, LOW, "The pause between connection attempts.", default=10000, group=group),
        Option("dialect.name", STRING, LOW, "The dialect of the database; by default the URL decides.", default="", check=known_dialect, group=group),
    )  # fmt: skip
    return {option.name: option for option in options}


def zone(group):
    return Option(
        "db.timezone",
        STRING,
        MEDIUM,
        "The time zone of the database's timestamps without time zone.",
        default="UTC",
        check=known_zone,
        group=group,
    )


def quoting(group):
    return Option(
        "quote.sql.identifiers", STRING, MEDIUM, "Whether SQL quotes identifiers: always or never.", default="ALWAYS",
        recommend=lambda name, parsed: ["always", "never"], group=group,
    )  # fmt: skip
