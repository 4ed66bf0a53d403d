"""TLS for syslog senders, configured by Kafka's keys: certificate and key as PEM, in a file or inline."""

import contextlib
import os
import ssl
import tempfile

from standalone import ConfigError, open_allowed

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENTS = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
CLIENTS = tuple(_CLIENTS)


def server_context(config):
    """Raises ConfigError with the wrong keys."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    unknown = [each for each in config["ssl.enabled.protocols"] if each not in _VERSIONS]
    if unknown:
        raise ConfigError.of({"ssl.enabled.protocols": f"'{unknown[0]}' is not one of {', '.join(_VERSIONS)}"})
    versions = sorted(_VERSIONS[each] for each in config["ssl.enabled.protocols"])
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    _load_own(context, config)
    context.verify_mode = _CLIENTS[config["ssl.client.auth"]]
    if context.verify_mode != ssl.CERT_NONE:
        key, text = _pem(config, "ssl.truststore.certificates", "ssl.truststore.location")
        try:
            context.load_verify_locations(cadata=text)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError.of({key: f"the trusted certificates cannot be loaded: {_reason(error)}"}) from error
    return context


def _load_own(context, config):
    password = config["ssl.key.password"] or config["ssl.keystore.password"]
    key, chain = _pem(config, "ssl.keystore.certificate.chain", "ssl.keystore.location")
    own_key = config["ssl.keystore.key"]
    text = chain if own_key is None else f"{own_key.value}\n{chain}"
    try:
        with _file(text) as path:  # OpenSSL loads its own certificate from files only
            context.load_cert_chain(path, password=lambda: password.value if password is not None else "")
    except (ssl.SSLError, OSError, ValueError) as error:
        why = f"the certificate and its key cannot be loaded: {_reason(error)}. PEM is expected; an encrypted key needs ssl.key.password"
        raise ConfigError.of({key: why}) from error


def _pem(config, inline, location):
    """(the key in use, the text)"""
    if config[inline] is not None:
        return inline, config[inline].value
    path = config[location]
    if path is None:
        raise ConfigError.of({location: f"is missing: tls:// needs it or {inline}"})
    try:
        with os.fdopen(open_allowed(path, os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
            return location, file.read().decode("ascii", "replace")
    except OSError as error:
        raise ConfigError.of({location: f"{path} cannot be read: {error.strerror}"}) from error


@contextlib.contextmanager
def _file(text):
    """Store the text in a temporary file that only this user can read."""
    with tempfile.NamedTemporaryFile("w", prefix="connect-tls-") as file:
        file.write(text)
        file.flush()
        yield file.name


def _reason(error):
    return getattr(error, "reason", None) or str(error)
