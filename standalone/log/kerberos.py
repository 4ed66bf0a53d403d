"""SASL GSSAPI: Kerberos logins, with the keytab from JAAS or the system's ticket cache.

The package `gssapi` (extra `kerberos`) talks to the KDC. kafka-python's own mechanism is not used: it supports neither keytab nor principal.
"""

import itertools

from standalone.errors import ConfigError, LogFatalError, LogRetriableError
from standalone.log.broker_errors import java_class

NO_SECURITY_LAYER = 1
KDC_UNREACHABLE = (-1765328228, -1765328164)  # no KDC of the realm answers, or its name does not resolve
_caches = itertools.count()


class Kerberos:
    """One login, with the interface of kafka-python's mechanisms."""

    def __init__(self, config, options, host):
        """Raise ConfigError, LogRetriableError if no KDC answers, or LogFatalError if it refuses the login."""
        try:
            import gssapi
        except (ImportError, OSError) as problem:
            said = f"GSSAPI needs the package gssapi (pip install 'connect-standalone[kerberos]'): {problem}"
            raise ConfigError.of({"sasl.mechanism": said}) from problem
        service = config["sasl.kerberos.service.name"] or options.get("serviceName")
        if not service:
            raise ConfigError.of({"sasl.kerberos.service.name": "missing: the first part of the brokers' principal, such as kafka"})
        self._gssapi, self._service = gssapi, f"{service}@{host}"
        self._agreed = self._over = False
        self._next = self._guarded(lambda: self._begin(options))

    def _begin(self, options):
        gssapi = self._gssapi
        broker = gssapi.Name(self._service, gssapi.NameType.hostbased_service)
        credentials = gssapi.Credentials(usage="initiate", name=_principal(gssapi, options), store=_store(options))
        self._context = gssapi.SecurityContext(name=broker, creds=credentials, usage="initiate", mech=gssapi.MechType.kerberos)
        return self._context.step() or b""

    def auth_bytes(self):
        self._over = self._agreed
        return self._next

    def receive(self, data):
        if self._over:
            return
        self._next = self._guarded(lambda: self._answer_to(bytes(data)))

    def _answer_to(self, data):
        if not self._context.complete:
            return self._context.step(data) or b""
        offered = self._context.unwrap(data).message
        if not offered or not offered[0] & NO_SECURITY_LAYER:
            raise LogFatalError(f"{self._service} requires a SASL security layer, which Kafka lacks.", java_class("SaslAuthenticationException"))
        self._agreed = True
        return self._context.wrap(bytes([NO_SECURITY_LAYER, 0, 0, 0]), False).message

    def is_done(self):
        return self._over

    is_authenticated = is_done

    def _guarded(self, act):
        try:
            return act()
        except self._gssapi.exceptions.GSSError as problem:
            passing = getattr(problem, "min_code", None) in KDC_UNREACHABLE or (getattr(problem, "min_code", 0) or 0) - 2**32 in KDC_UNREACHABLE
            kind, name = (LogRetriableError, "DisconnectException") if passing else (LogFatalError, "SaslAuthenticationException")
            raise kind(f"Kerberos issued no ticket for {self._service}: {problem}.", java_class(name)) from problem


def _principal(gssapi, options):
    return gssapi.Name(options["principal"], gssapi.NameType.kerberos_principal) if "principal" in options else None


def _store(options):
    """Where to find the key or ticket; None for the system's defaults."""
    if options.get("useKeyTab", "").lower() == "true" and "keyTab" in options:
        # A cache per login: each connection requests new tickets, so they never expire unnoticed.
        return {"client_keytab": f"FILE:{options['keyTab'].removeprefix('file:')}", "ccache": f"MEMORY:connect-standalone-{next(_caches)}"}
    return {"ccache": f"FILE:{options['ticketCache']}"} if "ticketCache" in options else None
