"""Where the embedded log listens, in Kafka's syntax: `host:port`, or `NAME://host:port` for several, each with its protocol.

A listener has a protocol (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL), an advertised address and, depending on the protocol, a TLS context and
logins. The worker's own clients use one more: on loopback, on a free port, with a random password.
"""

import re
import secrets
import socket

from standalone.errors import ConfigError, StartError
from standalone.log import client_config, tls
from standalone.log.broker.security_options import PREFIX

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
KEY, ADVERTISED_KEY = "embedded.log.listener", "embedded.log.advertised.listeners"
DEFAULT = "127.0.0.1:9092"
ANONYMOUS, OWN_USER = "ANONYMOUS", "connect-standalone"
WILDCARDS = ("", "0.0.0.0", "::")
_NAMED = re.compile(r"([A-Za-z0-9_-]+)://(.*)")
_BACKLOG = 512


class Listener:
    """`start` binds it; `address` is where local clients connect."""

    def __init__(self, name, protocol, host, port, advertised=None, context=None, logins=None):
        self.name, self.protocol = name, protocol
        self.host, self.port = host, port
        self.advertised = advertised  # (host, port) or None
        self.context = context  # TLS context
        self.logins = logins  # broker/logins.py
        self.socket = None

    @property
    def wants_login(self):
        return self.protocol.startswith("SASL_")

    @property
    def bootstrap(self):
        host = "127.0.0.1" if self.host in WILDCARDS else self.host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    def address_for(self, local):
        """(host, port) to advertise to a client that connected to the address `local`."""
        if self.advertised:
            return self.advertised
        return (local if self.host in WILDCARDS else self.host), self.port

    def start(self):
        """Bind the socket; raise StartError if the port is taken."""
        try:
            found = socket.getaddrinfo(self.host or None, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
            self.socket = socket.socket(family, kind, protocol)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(address)
            self.socket.listen(_BACKLOG)
        except OSError as error:
            self.stop()
            raise StartError(
                f"{KEY}: cannot listen on {self.host}:{self.port}: {error.strerror}. Is another worker or a Kafka running there? "
                f"Stop it, set {KEY} to another host:port, or name the Kafka in bootstrap.servers."
            ) from error
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]

    def stop(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None


def parse(text, settings, logins):
    """Parse the setting into [Listener]; `logins` serve the SASL listeners. Raise StartError or ConfigError if it is invalid."""
    protocols = _protocol_map(settings["embedded.log.listener.security.protocol.map"])
    advertised = _advertised(settings[ADVERTISED_KEY])
    found, context = [], None
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        named = _NAMED.fullmatch(entry)
        name = named.group(1).upper() if named else "PLAINTEXT"
        protocol = protocols.get(name)
        if protocol is None:
            raise StartError(
                f"{KEY}: '{entry}' names no protocol that is known. Write {', '.join(PROTOCOLS)} before ://, or set "
                "embedded.log.listener.security.protocol.map."
            )
        if any(other.name == name for other in found):
            raise StartError(
                f"{KEY}: two listeners are called {name}. Give one another name, with its protocol in embedded.log.listener.security.protocol.map."
            )
        host, port = split(named.group(2) if named else entry, KEY)
        if protocol.endswith("SSL") and context is None:
            context = _context(settings)
        where = advertised.pop(name, None)
        found.append(
            Listener(
                *(name, protocol, host, port, where),
                context=context if protocol.endswith("SSL") else None,
                logins=logins if protocol.startswith("SASL_") else None,
            )
        )
    if not found:
        raise StartError(f"{KEY}: it names no listener. Write host:port, such as {DEFAULT}.")
    if None in advertised and len(found) == 1:
        found[0].advertised = advertised.pop(None)
    if advertised:
        unknown = next(iter(advertised)) or "an address without a name"
        raise StartError(f"{ADVERTISED_KEY}: {unknown} belongs to no listener of {KEY}.")
    return found


def own(logins_of):
    """Return (Listener, {client setting: value}) for the worker's own clients; `logins_of({user: password})` makes its logins."""
    password = secrets.token_hex(32)
    listener = Listener("OWN", "SASL_PLAINTEXT", "127.0.0.1", 0, logins=logins_of({OWN_USER: password}))
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return listener, {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{module} required username="{OWN_USER}" password="{password}";',
    }


def split(text, key):
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise StartError(f"{key}: '{text}' is not a host:port, such as {DEFAULT}.")
    return host.strip("[]"), int(port)


def _protocol_map(text):
    found = {}
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        name, _, protocol = entry.upper().partition(":")
        if protocol not in PROTOCOLS:
            raise StartError(f"embedded.log.listener.security.protocol.map: '{entry}' is no NAME:PROTOCOL with one of {', '.join(PROTOCOLS)}.")
        found[name] = protocol
    return found


def _advertised(text):
    """{name of a listener, or None: (host, port)}"""
    found = {}
    for entry in filter(None, (entry.strip() for entry in (text or "").split(","))):
        named = _NAMED.fullmatch(entry)
        found[named.group(1).upper() if named else None] = split(named.group(2) if named else entry, ADVERTISED_KEY)
    return found


def _context(settings):
    """Return the ssl.SSLContext for TLS listeners, by the code that loads clients' stores."""
    keys = {name: parse for name, (parse, _) in client_config.CONNECTION_KEYS.items() if name.startswith("ssl.")}
    config = {name: None for name in keys}
    config.update({name: default for name, (_, default) in client_config.CONNECTION_KEYS.items() if name.startswith("ssl.")})
    config.update({name: settings[PREFIX + name] for name in keys if PREFIX + name in settings})
    config = {name: None if value is None else keys[name](value) for name, value in config.items()}
    try:
        return tls.server_context(config, settings["embedded.log.ssl.client.auth"])
    except ConfigError as error:
        raise ConfigError.of({PREFIX + key: message for key, message in error.errors.items()}) from error
