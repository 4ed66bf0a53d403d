"""The embedded log's security from its settings: listeners, authentication, authorization."""

import socket

from standalone.errors import ConfigError
from standalone.log.broker import listeners
from standalone.log.broker.acls import Acls, Authorizer
from standalone.log.broker.client import Client, principal_rules
from standalone.log.broker.connection import Connection
from standalone.log.broker.encrypted import EncryptedConnection
from standalone.log.broker.kerberos import JAAS_KEY, Kerberos
from standalone.log.broker.logins import GSSAPI, OAUTHBEARER, Logins, default_mechanisms
from standalone.log.broker.security_options import PREFIX
from standalone.log.broker.tokens import Tokens
from standalone.log.jaas import jaas_options

_USER = "user_"


class Security:
    """Call `settle` before the first connection."""

    def __init__(self, listener, settings):
        self._settings = settings
        self._users = None
        self._name_of = principal_rules(self._setting("ssl.principal.mapping.rules"))
        fixed = self._fixed_users()
        self._tokens = tokens = Tokens.of(settings)
        kerberos = Kerberos.of(settings)
        mechanisms = self._setting("sasl.enabled.mechanisms").split(",")
        mechanisms = [name.upper() for name in mechanisms if name] or default_mechanisms(tokens is not None, kerberos is not None)
        if OAUTHBEARER in mechanisms and tokens is None:
            raise ConfigError.of({PREFIX + "sasl.oauthbearer.jwks.endpoint.url": "not set: OAUTHBEARER needs the keys of who signs tokens"})
        if GSSAPI in mechanisms and kerberos is None:
            raise ConfigError.of({JAAS_KEY: "not set: GSSAPI needs the log's principal and its keytab"})
        self._logins = Logins(mechanisms, fixed=fixed, tokens=tokens, kerberos=kerberos)
        self.listeners = listeners.parse(listener, settings, self._logins)
        self._has_authorizer = bool(self._setting("authorizer.class.name"))
        self._own, self._own_login = None, {}
        if self._has_authorizer or not any(each.protocol == "PLAINTEXT" for each in self.listeners):
            self._own, self._own_login = listeners.own(lambda users: Logins(["SCRAM-SHA-256"], fixed=users))

    @property
    def all_listeners(self):
        return self.listeners if self._own is None else [*self.listeners, self._own]

    @property
    def own_settings(self):
        """Return the client settings (address, security) for connections from this process."""
        found = self._own or next(each for each in self.listeners if each.protocol == "PLAINTEXT")
        return {"bootstrap.servers": found.bootstrap, **self._own_login}

    def settle(self, node):
        """Load users and ACLs from the node's open store."""
        self._logins.know(node.users)
        if self._tokens is not None:
            self._tokens.beside = node.beside
        supers = [name.strip() for name in self._setting("super.users").split(";") if name.strip()]
        if self._own is not None:
            supers.append(f"User:{listeners.OWN_USER}")
        node.authorizer = Authorizer(Acls(node.store), self._has_authorizer, supers, self._setting("allow.everyone.if.no.acl.found"))

    def connection(self, listener, sock, on_frame, clock):
        """Return a Connection for an accepted socket. Raise OSError if the client has disconnected."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = Client(listener)
        if listener.context is None:
            return Connection(sock, client, on_frame, clock)
        wrapped = listener.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        return EncryptedConnection(wrapped, client, on_frame, clock, self._name_of)

    def _fixed_users(self):
        text = self._setting("sasl.jaas.config")
        try:
            found = jaas_options(text) if text else {}
        except ConfigError as error:
            raise ConfigError.of({PREFIX + key: message for key, message in error.errors.items()}) from None
        return {name.removeprefix(_USER): password for name, password in found.items() if name.startswith(_USER)}

    def _setting(self, name):
        return self._settings[PREFIX + name]
