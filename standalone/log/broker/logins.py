"""Logins by SASL, server side: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, and GSSAPI by kerberos.py. No sockets here.

    exchange = logins.begin("SCRAM-SHA-256")
    answer = exchange.step(token)      # the response to each token; raises LoginError if refused
    exchange.user                      # the user, once authenticated
"""

import base64
import functools
import hashlib
import hmac
import re
import secrets

from standalone.log.broker.login_error import LoginError
from standalone.log.broker.security_options import MECHANISMS
from standalone.log.broker.users import DIGESTS, SCRAM_SHA_256, SCRAM_SHA_512, credential_of

PLAIN, OAUTHBEARER, GSSAPI = "PLAIN", "OAUTHBEARER", "GSSAPI"
SCRAM = {"SCRAM-SHA-256": SCRAM_SHA_256, "SCRAM-SHA-512": SCRAM_SHA_512}
_FIRST = re.compile(r"n,(a=[^,]*)?,(?:m=[^,]*,)?n=([^,]+),r=([^,]+)(?:,.*)?")
_LAST = re.compile(r"(c=([^,]+),r=([^,]+)(?:,[^,]+)*),p=([^,]+)")
_BEARER = re.compile(r"n,(a=[^,]*)?,\x01(.*)\x01\x01", re.S)
_SAID = "Authentication failed: invalid credentials"  # one message for every cause: it does not reveal which users exist


class Logins:
    """`fixed` is {user: password}; `tokens` verifies a token and returns its user; `kerberos` begins GSSAPI logins."""

    def __init__(self, mechanisms, fixed=None, tokens=None, kerberos=None):
        self.mechanisms = mechanisms
        self._users, self._fixed, self._tokens = None, dict(fixed or {}), tokens
        self._kerberos = kerberos

    def know(self, users):
        """Add the users of the store, which admin tools manage."""
        self._users = users

    def begin(self, mechanism):
        if mechanism == PLAIN:
            return _Plain(self._knows)
        if mechanism == OAUTHBEARER:
            return _Bearer(self._tokens)
        if mechanism == GSSAPI:
            return self._kerberos.begin()
        return _Scram(SCRAM[mechanism], functools.partial(self._credential, SCRAM[mechanism]))

    def _knows(self, user, password):
        expected = self._fixed.get(user)
        return hmac.compare_digest((expected or "").encode(), password.encode()) and expected is not None

    @functools.lru_cache(maxsize=256)  # noqa: B019 - logins live as long as the log
    def _fixed_credential(self, mechanism, user):
        return credential_of(mechanism, self._fixed[user])

    def _credential(self, mechanism, user):
        if user in self._fixed:
            return self._fixed_credential(mechanism, user)
        return self._users.credential(user, mechanism) if self._users is not None else None


def default_mechanisms(has_keys, has_keytab):
    return [name for name in MECHANISMS if {OAUTHBEARER: has_keys, GSSAPI: has_keytab}.get(name, True)]


class _Plain:
    def __init__(self, knows):
        self._knows = knows
        self.user, self.done, self.ends_ms = None, False, None

    def step(self, token):
        try:
            acting_for, user, password = token.decode().split("\0")
        except ValueError:
            raise LoginError("A PLAIN login is three texts with a NUL between them.") from None
        if acting_for not in ("", user):
            raise LoginError("Authentication failed: a client logs in for itself alone")
        if not user or not self._knows(user, password):
            raise LoginError(_SAID)
        self.user, self.done = user, True
        return b""


class _Scram:
    """RFC 5802, without channel binding."""

    def __init__(self, mechanism, credential):
        self._digest = DIGESTS[mechanism]
        self._credential = credential
        self._stored_key = None
        self.user, self.done, self.ends_ms = None, False, None

    def step(self, token):
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise LoginError("A SCRAM message is text.") from None
        return (self._first(text) if self._stored_key is None else self._last(text)).encode()

    def _first(self, text):
        found = _FIRST.fullmatch(text)
        if found is None:
            raise LoginError("The first message of a SCRAM login cannot be read.")
        self._user = found.group(2).replace("=2C", ",").replace("=3D", "=")
        if found.group(1) not in (None, "a=", f"a={found.group(2)}"):
            raise LoginError("Authentication failed: a client logs in for itself alone")
        credential = self._credential(self._user)
        if credential is None:
            raise LoginError(_SAID)
        iterations, salt, self._stored_key, self._server_key = credential
        self._nonce = found.group(3) + secrets.token_urlsafe(18)
        answer = f"r={self._nonce},s={base64.b64encode(salt).decode()},i={iterations}"
        self._said = f"{text[text.index('n=', text.index(',', 2)) :]},{answer}"
        return answer

    def _last(self, text):
        found = _LAST.fullmatch(text)
        if found is None or not hmac.compare_digest(found.group(3).encode(), self._nonce.encode()):
            raise LoginError("The last message of a SCRAM login cannot be read.")
        said = f"{self._said},{found.group(1)}".encode()
        signature = hmac.digest(self._stored_key, said, self._digest)
        try:
            proof = base64.b64decode(found.group(4), validate=True)
        except ValueError:
            raise LoginError("The proof of a SCRAM login cannot be read.") from None
        client_key = bytes(a ^ b for a, b in zip(proof, signature))
        if len(proof) != len(signature) or not hmac.compare_digest(hashlib.new(self._digest, client_key).digest(), self._stored_key):
            raise LoginError(_SAID)
        self.user, self.done = self._user, True
        return f"v={base64.b64encode(hmac.digest(self._server_key, said, self._digest)).decode()}"


class _Bearer:
    """RFC 7628: a token signed by a third party."""

    def __init__(self, tokens):
        self._tokens = tokens
        self.user, self.done, self.ends_ms = None, False, None

    def step(self, token):
        if token == b"\x01":  # the client's response to an error
            raise LoginError("Authentication failed: the token is not valid")
        found = _BEARER.fullmatch(token.decode(errors="replace"))
        pairs = dict(pair.partition("=")[::2] for pair in found.group(2).split("\x01")) if found else {}
        kind, _, text = pairs.get("auth", "").partition(" ")
        if kind.lower() != "bearer" or not text.strip():
            raise LoginError("An OAUTHBEARER login carries a bearer token.")
        self.user, self.ends_ms = self._tokens.owner(text.strip())
        self.done = True
        return b""
