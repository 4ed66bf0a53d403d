"""TLS by Java's property names: contexts from PEM, JKS or PKCS12, in files or inline.

One per cluster for its clients, and one for the listeners of the embedded log.
"""

import contextlib
import os
import pathlib
import re
import ssl

from standalone.errors import ConfigError
from standalone.log import java_stores

VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_SUITE = re.compile(r"(?:TLS|SSL)_(?:(.+)_)?WITH_(.+)_(SHA\d*|MD5)")


def context(config):
    """Return an ssl.SSLContext. A ConfigError names the wrong key and never shows a secret."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = bool(config["ssl.endpoint.identification.algorithm"])
    _set_versions(made, config)
    _set_ciphers(made, config["ssl.cipher.suites"])
    _load_authorities(made, config)
    _load_identity(made, config)
    return made


def server_context(config, client_auth):
    """Like `context`, for a server; `client_auth` is none, requested or required."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_versions(made, config)
    _set_ciphers(made, config["ssl.cipher.suites"])
    if not _load_identity(made, config):
        raise ConfigError.of({"ssl.keystore.location": "not set: a TLS listener needs a key and a certificate"})
    made.verify_mode = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}[client_auth]
    if client_auth != "none":
        _load_authorities(made, config)
    return made


def _load_authorities(made, config):
    with _blaming(config, "ssl.truststore", "certificates"):
        authorities = _trusted(config)
        if authorities is None:
            made.load_default_certs(ssl.Purpose.CLIENT_AUTH if made.protocol == ssl.PROTOCOL_TLS_SERVER else ssl.Purpose.SERVER_AUTH)
        else:
            made.load_verify_locations(cadata=authorities)


def _load_identity(made, config):
    """Load the key and certificate; return whether there are any."""
    with _blaming(config, "ssl.keystore", "key"):
        identity = _identity(config)
        if identity is not None:
            with _in_memory(identity) as path:
                # a function, not None, which would make OpenSSL prompt on the terminal for an encrypted key's password
                made.load_cert_chain(path, password=config["ssl.key.password"] or (lambda: ""))
    return identity is not None


def _trusted(config):
    """PEM text of the trusted authorities, or None for the system's."""
    location = config["ssl.truststore.location"]
    if location is None:
        return config["ssl.truststore.certificates"] and unfold(config["ssl.truststore.certificates"])
    data = pathlib.Path(location).read_bytes()
    if not _is_java(config, "ssl.truststore", data):
        return data.decode()
    trusted, _ = java_stores.read(data, config["ssl.truststore.password"])
    if not trusted:
        raise java_stores.StoreError("it holds no trusted certificate")
    return trusted


def _identity(config):
    """PEM text of the private key and its chain, or None."""
    location = config["ssl.keystore.location"]
    if location is None:
        texts = [config["ssl.keystore.key"], config["ssl.keystore.certificate.chain"]]
        if any(texts) and not all(texts):
            raise java_stores.StoreError("ssl.keystore.key and ssl.keystore.certificate.chain must both be set; one is missing")
        return "".join(map(unfold, texts)) if all(texts) else None
    data = pathlib.Path(location).read_bytes()
    if not _is_java(config, "ssl.keystore", data):
        return data.decode()
    _, key = java_stores.read(data, config["ssl.keystore.password"], config["ssl.key.password"])
    if key is None:
        raise java_stores.StoreError("it holds no private key")
    return key


def _is_java(config, store, data):
    """Whether a file is JKS or PKCS12; ssl.*.type decides if the content does not."""
    kind = config[f"{store}.type"].upper()
    if kind == "PEM":
        return False
    if kind not in ("JKS", "PKCS12"):
        raise java_stores.StoreError(f"{store}.type={kind} is not supported: use JKS, PKCS12 or PEM")
    if data.lstrip().startswith(b"-----BEGIN"):
        raise java_stores.StoreError(f"it is PEM, and {store}.type is {kind}: set {store}.type=PEM")
    return True


@contextlib.contextmanager
def _blaming(config, store, in_line):
    """Convert errors raised inside into a ConfigError of the key that is at fault."""
    try:
        yield
    except (OSError, ssl.SSLError, UnicodeDecodeError, java_stores.StoreError) as problem:
        location = config[f"{store}.location"]
        key = f"{store}.location" if location else f"{store}.{in_line}"
        where = f"{key}={location}" if location else f"the PEM text of {store}.*"
        reason = getattr(problem, "reason", None) or getattr(problem, "strerror", None) or problem
        raise ConfigError.of({key: f"{where} cannot be used: {reason}"}) from problem


@contextlib.contextmanager
def _in_memory(text):
    """Return a path through which OpenSSL, which reads keys only from files, reads text that never reaches a disk."""
    handle = os.memfd_create("identity", os.MFD_CLOEXEC)
    try:
        os.write(handle, text.encode())
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)


def unfold(text):
    """Restore the line breaks of PEM text written on one line, as in a properties file without continuation."""
    return re.sub(r"\s*-----BEGIN ([A-Z ]+)-----\s*(.*?)\s*-----END \1-----\s*", _as_block, text, flags=re.S)


def _as_block(match):
    name, body = match.group(1), match.group(2)
    # An encrypted key has header lines before its text.
    body = body if ":" in body and "\n" in body else "\n".join(body.split())
    return f"-----BEGIN {name}-----\n{body}\n-----END {name}-----\n"


# ---- versions and ciphers


def _set_versions(made, config):
    wanted = config["ssl.enabled.protocols"]
    unknown = [name for name in wanted if name not in VERSIONS]
    if unknown or not wanted:
        problem = f"{', '.join(unknown) or 'nothing'} is none of {', '.join(VERSIONS)}"
        raise ConfigError.of({"ssl.enabled.protocols": problem})
    chosen = [VERSIONS[name] for name in wanted]
    highest = max(chosen)
    if config["ssl.protocol"] in VERSIONS:  # like Java's context, which supports no version above its own
        highest = min(highest, VERSIONS[config["ssl.protocol"]])
    if highest < min(chosen):
        problem = f"{config['ssl.protocol']} is below each of ssl.enabled.protocols={','.join(wanted)}"
        raise ConfigError.of({"ssl.protocol": problem})
    made.minimum_version, made.maximum_version = min(chosen), highest


def _set_ciphers(made, suites):
    """Set Java's suite names. OpenSSL chooses among TLS 1.3 suites; without one of them TLS 1.3 is disabled."""
    if not suites:
        return
    older = [suite for suite in suites if "_WITH_" in suite]
    if len(older) == len(suites):
        made.maximum_version = min(made.maximum_version, ssl.TLSVersion.TLSv1_2)
    elif not older:
        made.minimum_version = max(made.minimum_version, ssl.TLSVersion.TLSv1_3)
        return
    try:
        made.set_ciphers(":".join(map(openssl_name, older)))
    except ssl.SSLError:
        raise ConfigError.of({"ssl.cipher.suites": f"OpenSSL knows none of {', '.join(older)}"}) from None


def openssl_name(suite):
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 -> ECDHE-RSA-AES128-GCM-SHA256; an OpenSSL name stays unchanged."""
    match = _SUITE.fullmatch(suite)
    if match is None:
        return suite
    exchange, cipher, digest = match.groups()
    cipher = re.sub(r"AES_(\d+)", r"AES\1", cipher).replace("_CBC", "").replace("_", "-")
    exchange = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    return f"{exchange}{cipher}" + ("" if "POLY1305" in cipher else f"-{digest}")
