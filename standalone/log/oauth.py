"""OAUTHBEARER: tokens from an endpoint, a file, or unsecured ones made here; cached until shortly before they expire."""

import base64
import json
import random

from standalone.errors import ConfigError, LogFatalError, LogRetriableError
from standalone.log.broker_errors import java_class
from standalone.log.retry import Backoff

ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
PASSING_STATUS = (408, 425, 429)  # retriable HTTP statuses, besides 500 and above
UNSECURED_SECONDS = 3600


class Tokens:
    """Callers hold a lock: there is one token per cluster, not per connection."""

    def __init__(self, config, options, clock):
        self._config, self._clock = config, clock
        self._endpoint = config[ENDPOINT]
        self._client = config["sasl.oauthbearer.client.credentials.client.id"] or options.get("clientId")
        self._secret = config["sasl.oauthbearer.client.credentials.client.secret"] or options.get("clientSecret")
        self._scope = config["sasl.oauthbearer.scope"] or options.get("scope")
        self._subject = options.get("unsecuredLoginStringClaim_sub")
        self._token, self._ends, self._renew = None, 0, 0  # times as of the clock's now_ms
        self._backoff, self._not_before, self._failure = Backoff(config, "sasl.login.retry.backoff"), 0, None
        if not self._endpoint and not self._subject:
            raise ConfigError.of({ENDPOINT: "missing: OAUTHBEARER requests tokens from it"})
        if self._by_http and not (self._client and self._secret):
            raise ConfigError.of({"sasl.jaas.config": f'clientId="..." and clientSecret="..." are missing; {self._endpoint} requires them'})

    def token(self):
        """Return the cached token until it is due for renewal; if renewal fails, until it expires."""
        now = self._clock.now_ms()
        if self._token is not None and now < self._renew:
            return self._token
        try:
            self._keep(self._asked(now), now)
        except LogRetriableError:
            if self._token is None or now >= self._ends:
                raise
        return self._token

    def forget(self):
        self._token = None

    @property
    def _by_http(self):
        return bool(self._endpoint) and self._endpoint.startswith("http")

    def _asked(self, now):
        """Return (token, seconds of validity or None), unless a request failed a moment ago."""
        if not self._endpoint:
            return unsecured(self._subject, now), UNSECURED_SECONDS
        if now < self._not_before:
            raise self._failure
        try:
            found = self._ask()
        except LogRetriableError as error:
            self._failure, self._not_before = error, now + int(self._backoff.next() * 1000)
            raise
        self._backoff.reset()
        return found

    def _keep(self, found, now):
        """Cache a token. Renewal follows Java's login: at 80 % of its life, after a minute at least, well before it expires."""
        config = self._config
        token, seconds = found
        ends = _ends_ms(token) or (now + seconds * 1000 if seconds else now)
        factor = config["sasl.login.refresh.window.factor"] + random.random() * config["sasl.login.refresh.window.jitter"]
        renew = now + (ends - now) * factor
        latest = ends - config["sasl.login.refresh.buffer.seconds"] * 1000
        earliest = now + config["sasl.login.refresh.min.period.seconds"] * 1000
        if earliest < latest:
            renew = min(max(renew, earliest), latest)
        self._token, self._ends, self._renew = token, ends, renew

    def _ask(self):
        import urllib.error
        import urllib.parse
        import urllib.request  # loads slowly, rarely needed

        request = urllib.request.Request(self._endpoint)
        if self._by_http:
            form = {"grant_type": "client_credentials", **({"scope": self._scope} if self._scope else {})}
            request.data = urllib.parse.urlencode(form).encode()
            names = (self._client, self._secret)
            if self._config["sasl.oauthbearer.header.urlencode"]:
                names = tuple(map(urllib.parse.quote_plus, names))
            request.add_header("Authorization", "Basic " + base64.b64encode(":".join(names).encode()).decode())
        timeout = self._config.seconds("sasl.login.connect.timeout.ms")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                body = answer.read().decode().strip()
        except urllib.error.HTTPError as problem:
            raise self._failed(problem, problem.code >= 500 or problem.code in PASSING_STATUS) from problem
        except (OSError, ValueError) as problem:
            passing = self._by_http and not _is_verdict(problem)
            raise self._failed(problem, passing and not isinstance(problem, ValueError)) from problem
        if not body.startswith("{"):
            return body, None
        try:
            found = json.loads(body)
            return found["access_token"], int(found.get("expires_in") or 0)
        except (ValueError, KeyError, TypeError) as problem:
            raise self._failed(f"its response has no access_token ({problem})", False) from problem

    def _failed(self, problem, passing):
        message = f"No OAuth token from {self._endpoint} ({ENDPOINT}): {problem}."
        kind, name = (LogRetriableError, "DisconnectException") if passing else (LogFatalError, "SaslAuthenticationException")
        return kind(message, java_class(name))


def _is_verdict(problem):
    """Whether TLS itself rejects the endpoint, which a retry would not change."""
    import ssl

    from standalone.log.connection_setup import is_final

    reason = getattr(problem, "reason", problem)
    return isinstance(reason, ssl.SSLError) and is_final(reason)


def _ends_ms(token):
    """Expiry from the claim `exp` of a JSON web token; None if it is not one."""
    try:
        body = token.split(".")[1]
        return int(float(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["exp"]) * 1000)
    except (IndexError, ValueError, KeyError, TypeError):
        return None


def unsecured(subject, now_ms):
    """Make a token without signature, for development, like Java's unsecured login."""
    parts = ({"alg": "none"}, {"sub": subject, "iat": now_ms // 1000, "exp": now_ms // 1000 + UNSECURED_SECONDS})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return ".".join(encoded) + "."
