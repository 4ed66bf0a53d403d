"""Users and their SCRAM credentials, in the store: salted keys, never passwords."""

import base64
import hashlib
import hmac
import secrets

from standalone.log.broker.refusal import Refusal, codes

SCRAM_SHA_256, SCRAM_SHA_512 = 1, 2
DIGESTS = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384
_KIND = "user"


class Users:
    """Owned by one thread."""

    def __init__(self, store):
        self._store = store
        self._users = store.documents(_KIND)  # name -> {mechanism: [iterations, salt, stored key, server key]}

    def names(self):
        return self._users.keys()

    def mechanisms(self, name):
        """[(mechanism, iterations)]"""
        return [(int(mechanism), row[0]) for mechanism, row in sorted(self._users.get(name, {}).items())]

    def credential(self, name, mechanism):
        """(iterations, salt, stored key, server key), or None."""
        row = self._users.get(name, {}).get(str(mechanism))
        return None if row is None else (row[0], *map(base64.b64decode, row[1:]))

    def alter(self, name, deletions, upsertions):
        """upsertions: [(mechanism, iterations, salt, salted password)]. On Refusal nothing changes."""
        if not name:
            raise Refusal(codes.UnacceptableCredentialError, "A user needs a name.")
        user = dict(self._users.get(name, {}))
        for mechanism in deletions:
            if user.pop(str(mechanism), None) is None:
                raise Refusal(codes.ResourceNotFoundError, f"User '{name}' has no such credential.")
        for mechanism, iterations, salt, salted in upsertions:
            if mechanism not in DIGESTS:
                raise Refusal(codes.UnsupportedSaslMechanismError, f"There is no SCRAM mechanism {mechanism}.")
            if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
                raise Refusal(codes.UnacceptableCredentialError, f"Iterations must be {MIN_ITERATIONS} to {MAX_ITERATIONS}.")
            user[str(mechanism)] = [iterations, *map(_text, (salt, *_keys(mechanism, salted)))]
        if user:
            self._store.save_document(_KIND, name, user)
            self._users[name] = user
        else:
            self._store.delete_document(_KIND, name)
            self._users.pop(name, None)


def credential_of(mechanism, password):
    """Derive the result of `Users.credential` from a known password."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac(DIGESTS[mechanism], password.encode(), salt, MIN_ITERATIONS)
    return MIN_ITERATIONS, salt, *_keys(mechanism, salted)


def _keys(mechanism, salted):
    """Derive (stored key, server key) from a salted password."""
    digest = DIGESTS[mechanism]
    client_key = hmac.digest(salted, b"Client Key", digest)
    return hashlib.new(digest, client_key).digest(), hmac.digest(salted, b"Server Key", digest)


def _text(data):
    return base64.b64encode(data).decode()
