"""Java's key stores, JKS and PKCS12, converted to PEM text for OpenSSL.

The format is detected from the file, as in Java, regardless of ssl.*.type.
"""

import base64
import hashlib
import hmac
import struct
import textwrap

JKS_MAGIC, JCEKS_MAGIC = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
SEQUENCE = b"\x30"
KEY_ENTRY, CERTIFICATE_ENTRY = 1, 2
SALT_BYTES, DIGEST_BYTES = 20, 20


class StoreError(Exception):
    """The store cannot be read, or not with this password."""


def is_java_store(data):
    return data.startswith((JKS_MAGIC, JCEKS_MAGIC, SEQUENCE))


def read(data, store_password, key_password=None):
    """Return (PEM of the trusted certificates, PEM of the private key and its chain or None). Passwords are text or None."""
    if data.startswith(JKS_MAGIC):
        trusted, keys = _read_jks(data, store_password, key_password)
    elif data.startswith(SEQUENCE):
        trusted, keys = _read_pkcs12(data, store_password)
    elif data.startswith(JCEKS_MAGIC):
        raise StoreError("it is a JCEKS store, which is not supported: convert it to PKCS12 with keytool -importkeystore")
    else:
        raise StoreError("it is neither a JKS nor a PKCS12 store")
    key = None
    if keys:
        key = keys[0][0] + "".join(_pem("CERTIFICATE", each) for each in keys[0][1])
    return "".join(_pem("CERTIFICATE", each) for each in trusted), key


def _read_pkcs12(data, password):
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12  # loads slowly, rarely needed

    try:
        found = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError as problem:
        raise StoreError(f"it cannot be opened: {problem}") from problem
    certificates = [each.certificate.public_bytes(Encoding.DER) for each in found.additional_certs]
    if found.key is None:
        return certificates, []
    key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    own = [found.cert.certificate.public_bytes(Encoding.DER)] if found.cert is not None else []
    return certificates, [(key, own + certificates)]


def _read_jks(data, password, key_password):
    if password is not None:
        salted = password.encode("utf-16-be") + b"Mighty Aphrodite"
        if not hmac.compare_digest(hashlib.sha1(salted + data[:-DIGEST_BYTES]).digest(), data[-DIGEST_BYTES:]):
            raise StoreError("the password does not match, or the file was modified")
    try:
        return _Jks(data).entries(key_password if key_password is not None else password)
    except (struct.error, IndexError, UnicodeDecodeError) as problem:
        raise StoreError(f"it is truncated or damaged: {problem}") from problem


class _Jks:
    def __init__(self, data):
        self._data, self._at = data, 4

    def entries(self, password):
        trusted, keys = [], []
        version, count = self._take(">ii")
        for _ in range(count):
            (kind,) = self._take(">i")
            self._sized(">H")  # alias
            self._take(">q")  # creation time
            if kind == KEY_ENTRY:
                sealed = self._sized(">i")
                (length,) = self._take(">i")
                chain = [self._certificate(version) for _ in range(length)]
                keys.append((_pem("PRIVATE KEY", _unseal(sealed, password)), chain))
            elif kind == CERTIFICATE_ENTRY:
                trusted.append(self._certificate(version))
            else:
                raise StoreError(f"it holds an entry of kind {kind}, which is neither a key nor a certificate")
        return trusted, keys

    def _certificate(self, version):
        if version == 2:
            self._sized(">H")  # certificate type, in practice X.509
        return self._sized(">i")

    def _take(self, kinds):
        values = struct.unpack_from(kinds, self._data, self._at)
        self._at += struct.calcsize(kinds)
        return values

    def _sized(self, kind):
        (size,) = self._take(kind)
        if size < 0 or self._at + size > len(self._data):
            raise IndexError(f"{size} bytes at {self._at} of {len(self._data)}")
        self._at += size
        return self._data[self._at - size : self._at]


def _unseal(sealed, password):
    """Decrypt a key, an EncryptedPrivateKeyInfo with Java's own cipher based on SHA-1; return its DER."""
    if password is None:
        raise StoreError("it holds a key, and no password is set for it")
    _, begin, _ = _element(sealed, 0)
    _, _, algorithm_end = _element(sealed, begin)
    _, begin, end = _element(sealed, algorithm_end)
    body, secret = sealed[begin:end], password.encode("utf-16-be")
    state, cipher, digest = body[:SALT_BYTES], body[SALT_BYTES:-DIGEST_BYTES], body[-DIGEST_BYTES:]
    plain = bytearray()
    for at in range(0, len(cipher), DIGEST_BYTES):
        state = hashlib.sha1(secret + state).digest()
        plain += bytes(a ^ b for a, b in zip(cipher[at : at + DIGEST_BYTES], state))
    if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), digest):
        raise StoreError("the password does not match that of the key (ssl.key.password)")
    return bytes(plain)


def _element(data, at):
    """Return (tag, begin, end) of a DER element's content."""
    tag, length, begin = data[at], data[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        length, begin = int.from_bytes(data[begin : begin + count], "big"), begin + count
    return tag, begin, begin + length


def _pem(name, der):
    return f"-----BEGIN {name}-----\n" + "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64)) + f"\n-----END {name}-----\n"
