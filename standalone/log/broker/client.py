"""The client of a connection: its listener, certificate and login."""

import re

from standalone.errors import ConfigError
from standalone.log.broker.listeners import ANONYMOUS
from standalone.log.broker.login_error import LoginError

_SHORT = {
    "commonName": "CN",
    "organizationalUnitName": "OU",
    "organizationName": "O",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_RULE = re.compile(r"\s*(DEFAULT|RULE:((?:[^/\\]|\\.)*)/((?:[^/\\]|\\.)*)/([LU]?))\s*(?:,|$)")


class Client:
    """Used by the owner's thread only. `exchange` is a SASL exchange in progress."""

    def __init__(self, listener):
        self.listener = listener
        self.principal = f"User:{ANONYMOUS}"
        self.is_known = not listener.wants_login
        self.ends_ms = None  # when the login expires
        self.exchange = None
        self.sends_tokens = False

    def step(self, token):
        """Return the response to a SASL token; raise LoginError if the login is refused."""
        if self.exchange is None:
            raise LoginError("A login begins with a handshake.")
        answer = self.exchange.step(token)
        if self.exchange.done:
            exchange, self.exchange, self.sends_tokens = self.exchange, None, False
            principal = f"User:{exchange.user}"
            if self.is_known and principal != self.principal:
                raise LoginError("A connection stays with the user that it was opened by.")
            self.principal, self.is_known, self.ends_ms = principal, True, exchange.ends_ms
        return answer


def principal_rules(text):
    """Parse `ssl.principal.mapping.rules` into a function of a subject; raise ConfigError if it is invalid."""
    rules, at = [], 0
    while at < len(text):
        found = _RULE.match(text, at)
        if not found:
            key = "embedded.log.ssl.principal.mapping.rules"
            raise ConfigError.of({key: f"'{text[at:]}' is neither DEFAULT nor RULE:pattern/replacement/[LU]"})
        at = found.end()
        rules.append(None if found.group(1) == "DEFAULT" else (re.compile(found.group(2)), found.group(3), found.group(4)))

    def name_of(subject):
        for rule in rules:
            if rule is None:
                return subject
            pattern, replacement, case = rule
            if pattern.fullmatch(subject):
                named = pattern.sub(re.sub(r"\$(\d)", r"\\\1", replacement), subject, count=1)
                return {"L": named.lower(), "U": named.upper(), "": named}[case]
        return subject

    return name_of


def subject_of(certificate):
    """Return the subject from ssl's `getpeercert` as Java writes it: the most specific part first."""
    parts = [
        "+".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in together)
        for together in reversed(certificate.get("subject", ()))
    ]
    return ",".join(parts)


def _escaped(value):
    return re.sub(r'([,+"\\<>;]|^[ #]| $)', r"\\\1", value)
