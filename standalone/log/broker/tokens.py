"""Bearer tokens (JSON web tokens) of clients: verified with the issuer's public keys, which are fetched again when a token names an unknown key."""

import json
import logging
import time
import urllib.request

from standalone.errors import ConfigError
from standalone.log.broker.login_error import LoginError
from standalone.log.broker.security_options import PREFIX

_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]  # all use public keys
_KEY = PREFIX + "sasl.oauthbearer.jwks.endpoint.url"
_SECONDS, _LARGEST, _REFRESH_SECONDS, _PAUSE_SECONDS = 10.0, 1 << 20, 3600.0, 10.0

logger = logging.getLogger(__name__)


class Tokens:
    """The log's owner thread calls `owner`, so it never waits for the endpoint: keys are fetched in the background."""

    def __init__(self, url, audience, issuer, claim, skew_seconds):
        self._url, self._audience, self._issuer, self._claim, self._skew = url, audience, issuer, claim, skew_seconds
        self._keys = {}  # id -> key
        self._fetched_at = self._tried_at = 0.0
        self.beside = None  # beside(job) runs a job in the background

    @classmethod
    def of(cls, settings):
        """Return None if no endpoint is set. Raise ConfigError if its keys cannot be fetched."""
        url = settings[_KEY]
        if not url:
            return None
        names = ("expected.audience", "expected.issuer", "sub.claim.name", "clock.skew.seconds")
        audience, issuer, claim, skew = (settings[f"{PREFIX}sasl.oauthbearer.{name}"] for name in names)
        tokens = cls(url, [item for item in audience.split(",") if item], issuer, claim, skew)
        try:
            tokens.fetch()
        except (OSError, ValueError) as error:
            if url.startswith("file:"):
                raise ConfigError.of({_KEY: f"the keys at {url} cannot be read: {error}"}) from error
            logger.warning("The keys at %s, by which tokens are verified, cannot be read: %s. They are asked for again.", url, error)
        return tokens

    def fetch(self):
        from jwt import PyJWKSet  # imports cryptography, which loads slowly and is rarely needed
        from jwt.exceptions import PyJWTError

        self._tried_at = time.monotonic()
        with urllib.request.urlopen(self._url, timeout=_SECONDS) as answer:
            body = answer.read(_LARGEST)
        try:
            self._keys = {key.key_id: key for key in PyJWKSet.from_dict(json.loads(body)).keys}
        except PyJWTError as error:
            raise ValueError(str(error)) from error
        self._fetched_at = time.monotonic()

    def owner(self, text):
        """Return (user, expiry in milliseconds). Raise LoginError if the token is invalid."""
        import jwt

        try:
            header = jwt.get_unverified_header(text)
            claims = jwt.decode(
                *(text, self._key_of(header.get("kid")), _ALGORITHMS),
                audience=self._audience or None,
                issuer=self._issuer,
                leeway=self._skew,
                options={"require": ["exp"], "verify_aud": bool(self._audience)},
            )
        except (jwt.exceptions.PyJWTError, ValueError) as error:
            raise LoginError(f"Authentication failed: the token is not valid ({error})") from error
        name = claims.get(self._claim)
        if not isinstance(name, str) or not name:
            raise LoginError(f"Authentication failed: the token has no claim '{self._claim}'")
        return name, int(claims["exp"] * 1000)

    def _key_of(self, key_id):
        now = time.monotonic()
        known = key_id in self._keys if key_id is not None else len(self._keys) == 1
        if (not known or now - self._fetched_at > _REFRESH_SECONDS) and now - self._tried_at > _PAUSE_SECONDS:
            self._tried_at = now
            self.beside(self)
        if not known:
            raise LoginError("Authentication failed: the token is signed by a key that is not known (yet)")
        return (self._keys[key_id] if key_id is not None else next(iter(self._keys.values()))).key

    def run(self):
        """Fetch the keys, as a background job."""
        try:
            self.fetch()
        except (OSError, ValueError) as error:
            logger.warning("The keys at %s, by which tokens are verified, cannot be read: %s. They are asked for again.", self._url, error)
