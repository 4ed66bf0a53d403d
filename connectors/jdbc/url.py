"""Parse connection.url: the `jdbc:` URLs of Java configurations.

    jdbc:postgresql://host:5432/db?user=u&password=p      jdbc:postgresql:db      several hosts, separated by commas
    jdbc:mysql://u:p@host:3306/db    jdbc:mariadb://host/db
    jdbc:sqlite:path    jdbc:sqlite::memory:    jdbc:sqlite:/path?foreign_keys=on
    jdbc:sqlserver:…    jdbc:oracle:thin:@…     mssql+pymssql://u:p@host/db, or another URL of SQLAlchemy: dialects/generic.py

A URL may contain a password: errors and logs use `Location.shown`, which has none, and `Location.masked(text)` removes it from other messages.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from standalone import ConfigError

POSTGRESQL, MYSQL, SQLITE, SQLALCHEMY = "postgresql", "mysql", "sqlite", "sqlalchemy"
_ALIKE = {"mariadb": MYSQL}
_PORTS = {POSTGRESQL: 5432, MYSQL: 3306}
_SECRET = re.compile(r"pass|pwd|secret|token|key", re.IGNORECASE)
_HIDDEN = "[hidden]"


@dataclass(frozen=True)
class Location:
    """A parsed URL. `kind` is its protocol (mysql for mariadb); `properties` are for the driver."""

    kind: str
    hosts: tuple = ()
    database: str = ""
    user: str | None = None
    password: str | None = None
    properties: dict = field(default_factory=dict)
    protocol: str = ""  # if it is not jdbc: and the kind

    @property
    def shown(self):
        """The database in messages, without user, password and properties."""
        hosts = ",".join(f"{host}:{port}".rstrip(":") for host, port in self.hosts)
        return f"{self.protocol or f'jdbc:{self.kind}:'}{f'//{hosts}/' if hosts else ''}{self.database}"

    def masked(self, text):
        """Return the text without the secrets of the URL and connection.password."""
        secrets = [self.password, *(value for name, value in self.properties.items() if _SECRET.search(name))]
        for secret in filter(None, secrets):
            for form in {secret, quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1]}:
                text = text.replace(form, _HIDDEN) if len(form) > 2 else text
        return text


def parse(url, user=None, password=None, extra=None):
    """Return the Location of a URL. `user`, `password` and `extra` properties of the configuration override the URL. Raises ConfigError."""
    scheme, separator, _ = url.strip().partition("://")
    if separator and not scheme.lower().startswith("jdbc:") and scheme.lower() not in (*_PORTS, *_ALIKE, SQLITE):  # those need jdbc:
        return _of_sqlalchemy(url.strip(), user, password, extra)
    protocol, rest = _protocol(url)
    kind = _ALIKE.get(protocol, protocol)
    if kind == SQLITE:
        path, properties = _query(rest)
        return Location(kind, (), path or ":memory:", properties={**properties, **(extra or {})})
    if kind not in _PORTS:
        return _other(kind, url.strip(), user, password, extra)
    if kind == MYSQL and not rest.startswith("//"):
        rest = rest[rest.find("//") :] if "//" in rest else rest  # jdbc:mariadb:sequential://…
    rest, properties = _query(rest)
    properties.update(extra or {})
    if rest.startswith("//"):
        authority, _, database = rest[2:].partition("/")
    else:
        authority, database = "", rest.lstrip("/")
    login, _, hosts = authority.rpartition("@")
    name, _, secret = login.partition(":")
    return Location(
        kind,
        tuple(_host(each, _PORTS[kind]) for each in (hosts or "localhost").split(",")),
        unquote(database),
        user or properties.pop("user", None) or unquote(name) or None,
        password or properties.pop("password", None) or unquote(secret) or None,
        {name: value for name, value in properties.items() if name not in ("user", "password")},
    )


def _of_sqlalchemy(url, user, password, extra):
    parts = urlsplit(url)
    try:
        hosts = ((parts.hostname, parts.port or ""),) if parts.hostname else ()
    except ValueError as error:
        raise ConfigError.of({"connection.url": f"is not a valid SQLAlchemy URL: {error}"}) from None
    secret = password or (unquote(parts.password) if parts.password else None)
    return Location(SQLALCHEMY, hosts, parts.path.lstrip("/"), user, secret, {"url": url, **(extra or {})}, f"{parts.scheme}:")


def _other(kind, url, user, password, extra):
    """Keep the URL for SQLAlchemy; find its password only to mask it."""
    found = re.search(r"[;?&]password=([^;&]*)|/([^/@:]+)@", url, re.IGNORECASE)
    secret = password or (found and (found[1] or found[2])) or None
    return Location(kind, (), "", user, secret, {"url": url, **(extra or {})})


def _protocol(url):
    found = re.match(r"jdbc:([a-z0-9]+):", url.strip(), re.IGNORECASE)
    if not found:
        raise ConfigError.of({"connection.url": "must begin with jdbc: and a protocol, for example jdbc:postgresql://host:5432/database"})
    return found[1].lower(), url.strip()[found.end() :]


def _query(rest):
    rest, _, query = rest.partition("?")
    return rest, dict(parse_qsl(query, keep_blank_values=True))


def _host(text, port):
    found = re.fullmatch(r"(\[[^\]]+\]|[^:]*)(?::(\d+))?", text.strip())
    if not found:
        raise ConfigError.of({"connection.url": "has a host that is not host, host:port or [IPv6 address]:port"})
    return found[1].strip("[]") or "localhost", int(found[2] or port)
