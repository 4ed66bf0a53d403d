"""Logins by Kerberos (SASL GSSAPI), the server's side: tickets for the log's principal, whose key is in a keytab.

    kerberos = Kerberos.of(settings)     # None if not configured; raises ConfigError if invalid
    kerberos.begin()                     # a login with the interface of logins.py

The user is the first part of the principal, or the result of sasl.kerberos.principal.to.local.rules. There is no SASL security layer, as in
Kafka: TLS encrypts the connection, or nothing does.
"""

import re

from standalone.errors import ConfigError
from standalone.log.broker.login_error import LoginError
from standalone.log.broker.security_options import PREFIX
from standalone.log.jaas import jaas_options

JAAS_KEY, RULES_KEY = PREFIX + "gssapi.sasl.jaas.config", PREFIX + "sasl.kerberos.principal.to.local.rules"
NO_SECURITY_LAYER = 1
_PRINCIPAL = re.compile(r"([^/@]+)(?:/([^/@]+))?@([^/@]+)")
_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:\[(\d+):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?/?([LU])?)\s*(?:,|$)")


class Kerberos:
    def __init__(self, principal, keytab, rules):
        """Raise ConfigError if gssapi is not installed or the keytab does not hold the principal."""
        try:
            import gssapi
        except (ImportError, OSError) as problem:
            said = f"GSSAPI needs the package gssapi (pip install 'connect-standalone[kerberos]'): {problem}"
            raise ConfigError.of({JAAS_KEY: said}) from problem
        self._gssapi = gssapi
        self._principal, self._rules = principal, rules
        try:
            name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            self._credentials = gssapi.Credentials(usage="accept", name=name, store={"keytab": f"FILE:{keytab}"})
        except gssapi.exceptions.GSSError as problem:
            raise ConfigError.of({JAAS_KEY: f"the keytab {keytab} does not serve for {principal}: {problem}"}) from problem

    @classmethod
    def of(cls, settings):
        text = settings[JAAS_KEY]
        if not text:
            return None
        try:
            options = jaas_options(text)
        except ConfigError as error:
            raise ConfigError.of({JAAS_KEY: next(iter(error.errors.values()))}) from None
        missing = [name for name in ("keyTab", "principal") if not options.get(name)]
        if missing:
            raise ConfigError.of({JAAS_KEY: f"{' and '.join(missing)} not set: the log's own key is read from a keytab"})
        principal = options["principal"]
        if not _PRINCIPAL.fullmatch(principal):
            raise ConfigError.of({JAAS_KEY: f"'{principal}' is not a principal, such as kafka/host.example.com@EXAMPLE.COM"})
        rules = Rules(settings[RULES_KEY], realm=_PRINCIPAL.fullmatch(principal).group(3))
        return cls(principal, options["keyTab"].removeprefix("file:"), rules)

    def begin(self):
        return _Login(self._gssapi, self._credentials, self._rules)


class _Login:
    """RFC 4752: Kerberos tokens until both sides are authenticated, then the security layer negotiation, which offers none."""

    def __init__(self, gssapi, credentials, rules):
        self._gssapi, self._rules = gssapi, rules
        self._context = gssapi.SecurityContext(creds=credentials, usage="accept")
        self._has_offered = False
        self.user, self.done, self.ends_ms = None, False, None

    def step(self, token):
        try:
            return self._answer(token)
        except self._gssapi.exceptions.GSSError as problem:
            raise LoginError(f"Authentication failed: the ticket is not accepted ({problem})") from problem

    def _answer(self, token):
        if self._has_offered:
            self._take_choice(self._context.unwrap(token).message)
            return b""
        if not self._context.complete:
            answer = self._context.step(token)
            if answer or not self._context.complete:
                return answer or b""
        self._has_offered = True
        return self._context.wrap(bytes([NO_SECURITY_LAYER, 0, 0, 0]), False).message

    def _take_choice(self, message):
        if len(message) < 4 or message[0] != NO_SECURITY_LAYER:
            raise LoginError("Authentication failed: the client requires a security layer, which Kafka does not support")
        principal = str(self._context.initiator_name)
        user = self._rules.name_of(principal)
        if user is None:
            raise LoginError(f"Authentication failed: no rule gives {principal} a name ({RULES_KEY})")
        if message[4:].decode(errors="replace") not in ("", principal, user):
            raise LoginError("Authentication failed: a client logs in for itself alone")
        self.user, self.done = user, True


class Rules:
    """Map principals to user names by the first rule that matches.

    `DEFAULT` gives the first part, in the log's own realm only; `RULE:[n:$1@$0](expression)s/from/to/g/L`:
    n is the number of parts before the realm; $0 is the realm, $1 and $2 the parts; /L or /U converts to lower or upper case.
    """

    def __init__(self, text, realm):
        self._realm, self._rules, at = realm, [], 0
        while at < len(text):
            found = _RULE.match(text, at)
            if not found:
                raise ConfigError.of({RULES_KEY: f"'{text[at:]}' is neither DEFAULT nor RULE:[n:string](expression)s/from/to/"})
            at = found.end()
            try:
                self._rules.append(None if found.group(1) else _Rule(*found.groups()[1:]))
            except re.error as problem:
                raise ConfigError.of({RULES_KEY: f"'{found.group()}' holds an expression that cannot be read: {problem}"}) from problem

    def name_of(self, principal):
        """Return the user name, or None if no rule matches."""
        found = _PRINCIPAL.fullmatch(principal)
        if not found:
            return None
        first, second, realm = found.groups()
        parts = [realm, first, *([second] if second else [])]
        for rule in self._rules:
            name = (first if realm == self._realm else None) if rule is None else rule.name_of(parts)
            if name is not None:
                return name
        return None


class _Rule:
    def __init__(self, count, form, fitting, old, new, everywhere, case):
        self._count, self._form, self._case = int(count), form, case
        self._fitting = re.compile(fitting) if fitting is not None else None
        self._old, self._new = re.compile(old) if old is not None else None, re.sub(r"\$(\d)", r"\\\1", new or "")
        self._times = 0 if everywhere else 1

    def name_of(self, parts):
        if len(parts) - 1 != self._count:
            return None
        made = re.sub(r"\$(\d)", lambda found: parts[int(found.group(1))] if int(found.group(1)) < len(parts) else "", self._form)
        if self._fitting is not None and not self._fitting.fullmatch(made):
            return None
        if self._old is not None:
            made = self._old.sub(self._new, made, count=self._times)
        return {"L": made.lower(), "U": made.upper(), None: made}[self._case]
