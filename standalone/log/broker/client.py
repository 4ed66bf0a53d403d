"""Who is at the other end of a connection: its listener, its certificate, its login."""

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
    """Owned by the owner's thread. `exchange` is a login on its way."""

    def __init__(self, listener):
        self.listener = listener
        self.principal = f"User:{ANONYMOUS}"
        self.is_known = not listener.wants_login
        self.ends_ms = None  # when its login is over
        self.exchange = None
        self.sends_tokens = False

    def step(self, token):
        """What to answer to a token of the login. LoginError: it is refused."""
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
    """What `ssl.principal.mapping.rules` says, as a function of a subject. ConfigError: it cannot be read."""
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
    """The subject of what ssl's `getpeercert` gives, as Java writes it: the most special part first."""
    parts = [
        "+".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in together)
        for together in reversed(certificate.get("subject", ()))
    ]
    return ",".join(parts)


def _escaped(value):
    return re.sub(r'([,+"\\<>;]|^[ #]| $)', r"\\\1", value)
