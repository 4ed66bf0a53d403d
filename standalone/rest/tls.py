"""TLS of https listeners, by Java's keys: ssl.*, or prefixed with listeners.https. (admin.listeners.https.).

Certificates are PEM: as strings (ssl.keystore.certificate.chain, ssl.keystore.key, ssl.truststore.certificates) or in files
(ssl.keystore.location, ssl.truststore.location). Java's key stores are not supported; the error explains how to convert one.
"""

import contextlib
import logging
import os
import ssl
import tempfile

from standalone.config import with_prefix
from standalone.errors import ConfigError

log = logging.getLogger(__name__)

_VERSIONS = {"TLSv1": "TLSv1", "TLSv1.1": "TLSv1_1", "TLSv1.2": "TLSv1_2", "TLSv1.3": "TLSv1_3"}
_TLS13_SUITES = ("TLS_AES_", "TLS_CHACHA20_")
_CLIENTS = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_CONVERT = (
    "Convert it: keytool -importkeystore -srckeystore {0} -destkeystore store.p12 -deststoretype PKCS12; "
    "openssl pkcs12 -in store.p12 -out store.pem"
)


def server_context(config, prefix):
    """Return the SSLContext of the https listeners with this key prefix. Raise ConfigError naming the invalid keys.

    When its files change, new connections use their new content; existing connections continue.
    """
    keys = _Keys(config, prefix)
    context = _context(keys)
    files = [path for path in (keys.get("ssl.keystore.location"), keys.get("ssl.truststore.location")) if path]
    if files:
        context.sni_callback = _Renewal(keys, files, context).on_handshake
    return context


class _Renewal:
    """Checks the files at each handshake: that takes microseconds, and needs no background thread."""

    def __init__(self, keys, files, context):
        self._keys, self._files, self._context = keys, files, context
        self._stamps = self._look()

    def on_handshake(self, connection, server_name, context):
        stamps = self._look()
        if stamps != self._stamps:
            self._stamps = stamps
            self._renew()
        connection.context = self._context

    def _renew(self):
        try:
            self._context = _context(self._keys)
        except ConfigError as error:
            log.warning("The certificates have changed, but are invalid: the earlier ones stay until they change again. %s", error)
        else:
            log.info("Reloaded the certificates of the https listeners: %s", ", ".join(self._files))

    def _look(self):
        return [_stamp(path) for path in self._files]


def _stamp(path):
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _context(keys):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_versions(context, keys)
    _load_own_certificate(context, keys)
    context.verify_mode = _CLIENTS[keys.one_of("ssl.client.auth", _CLIENTS, "none")]
    if context.verify_mode != ssl.CERT_NONE:
        _load_trusted(context, keys)
    return context


class _Keys:
    """If any key has the prefix, only keys with the prefix count, as in Java."""

    def __init__(self, config, prefix):
        texts = with_prefix(config.originals, prefix)
        self._prefix = prefix if texts else ""
        self._texts = texts or config.originals

    def get(self, name, default=None):
        text = self._texts.get(name)
        return default if text is None or not str(text).strip() else str(text)

    def list(self, name):
        return [part.strip() for part in (self.get(name) or "").split(",") if part.strip()]

    def one_of(self, name, choices, default):
        text = self.get(name, default).strip().lower()
        if text not in choices:
            raise self.wrong(name, f"'{text}' is none of {', '.join(choices)}")
        return text

    def wrong(self, name, message):
        return ConfigError.of({f"{self._prefix}{name}": message})


def _set_versions(context, keys):
    enabled = keys.list("ssl.enabled.protocols") or ["TLSv1.2", "TLSv1.3"]
    unknown = [name for name in enabled if name not in _VERSIONS]
    if unknown:
        raise keys.wrong("ssl.enabled.protocols", f"'{unknown[0]}' is none of {', '.join(_VERSIONS)}")
    suites = keys.list("ssl.cipher.suites")
    newest = [suite for suite in suites if suite.startswith(_TLS13_SUITES)]
    older = [suite for suite in suites if suite not in newest]
    if suites and not newest:
        enabled = [name for name in enabled if name != "TLSv1.3"]
    if suites and not older:
        enabled = [name for name in enabled if name == "TLSv1.3"]
    versions = sorted(getattr(ssl.TLSVersion, _VERSIONS[name]) for name in enabled)
    if not versions:
        raise keys.wrong("ssl.cipher.suites", "none of these suites belongs to a version of ssl.enabled.protocols")
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    if older:
        try:
            context.set_ciphers(":".join(map(_openssl_name, older)))
        except ssl.SSLError as error:
            raise keys.wrong("ssl.cipher.suites", f"no suite of these is known here: {', '.join(older)}") from error


def _openssl_name(suite):
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 -> ECDHE-RSA-AES128-GCM-SHA256; OpenSSL names stay unchanged."""
    if not suite.startswith(("TLS_", "SSL_")):
        return suite
    exchange, _, cipher = suite[4:].partition("_WITH_")
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC", "").replace("_", "-")
    cipher = cipher.removesuffix("-SHA256") if cipher.startswith("CHACHA20") else cipher
    return cipher if exchange == "RSA" else f"{exchange.replace('_', '-')}-{cipher}"


def _load_own_certificate(context, keys):
    chain, key = keys.get("ssl.keystore.certificate.chain"), keys.get("ssl.keystore.key")
    location = keys.get("ssl.keystore.location")
    if chain and not key or key and not chain:
        missing = "ssl.keystore.key" if chain else "ssl.keystore.certificate.chain"
        raise keys.wrong(missing, "is missing: ssl.keystore.certificate.chain and ssl.keystore.key must both be set")
    if not chain and not location:
        raise keys.wrong("ssl.keystore.location", "is missing: an https listener needs a certificate, here or as ssl.keystore.certificate.chain")
    name = "ssl.keystore.certificate.chain" if chain else "ssl.keystore.location"
    if location and not chain:
        _pem(location, keys, "ssl.keystore.location")
    password = keys.get("ssl.key.password") or keys.get("ssl.keystore.password") or ""
    try:
        with _files(chain, key) as (chain_file, key_file):
            # Without a password OpenSSL would prompt on the terminal.
            context.load_cert_chain(chain_file or location, key_file or location, lambda: password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise keys.wrong(name, f"the certificate and its key cannot be loaded: {_reason(error)}. An encrypted key needs ssl.key.password") from error


def _load_trusted(context, keys):
    texts, location = keys.get("ssl.truststore.certificates"), keys.get("ssl.truststore.location")
    if not texts and not location:
        raise keys.wrong("ssl.truststore.location", "is missing: ssl.client.auth needs trusted certificates")
    name = "ssl.truststore.certificates" if texts else "ssl.truststore.location"
    try:
        context.load_verify_locations(cadata=_lines(texts) if texts else _pem(location, keys, name))
    except (ssl.SSLError, OSError, ValueError) as error:
        raise keys.wrong(name, f"the trusted certificates cannot be loaded: {_reason(error)}") from error


def _pem(location, keys, name):
    """Return the text of a PEM file."""
    try:
        with open(location, "rb") as file:
            found = file.read()
    except OSError as error:
        raise keys.wrong(name, f"{location} cannot be read: {error.strerror}") from error
    if b"-----BEGIN" not in found:
        raise keys.wrong(name, f"{location} is not a PEM file, and other key stores are not supported. {_CONVERT.format(location)}")
    return found.decode("ascii", "replace")


@contextlib.contextmanager
def _files(*texts):
    """Write each text to a temporary private file: OpenSSL loads its own certificate only from files."""
    with tempfile.TemporaryDirectory(prefix="connect-tls-") as folder:
        paths = []
        for number, text in enumerate(texts):
            paths.append(os.path.join(folder, str(number)) if text else None)
            if text:
                with open(os.open(paths[-1], os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                    file.write(_lines(text))
        yield paths


def _lines(text):
    """Restore the line breaks of PEM written in one line, as in a properties file."""
    if "\n" in text.strip():
        return text
    for label in ("CERTIFICATE", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"):
        for mark in (f"-----BEGIN {label}-----", f"-----END {label}-----"):
            text = text.replace(mark, f"\n{mark}\n")
    return text


def _reason(error):
    return getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
