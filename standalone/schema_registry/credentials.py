"""Registry authentication: none, basic or bearer. Each provides request headers; errors never contain secrets."""

import base64
import json
import threading
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from standalone.errors import ConfigError, RegistryConfigError, RegistryRetriableError
from standalone.log.jaas import jaas_options
from standalone.secrets import hide

_LEAST_LIFE_SECONDS = 60  # lifetime of a token without an expiry


def split_url(url):
    """(the address without credentials, "user:password" or None) of `http://user:password@host:port`."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, None
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, parts.query, "")), f"{unquote(parts.username)}:{unquote(parts.password or '')}"


def credentials_of(config, originals, in_url):
    """An object with `headers(send)` and `forget()`. `in_url` are the credentials in the URL; `send` sends a request to an issuer."""
    token = _secret(config["bearer.auth.token"])
    # Parsed keys include defaults: only other values count as set.
    if token or config["bearer.auth.credentials.source"] != "STATIC_TOKEN":
        if config["basic.auth.credentials.source"] != "URL":
            problem = "basic.auth.credentials.source is set, too: a request carries one of them"
            raise ConfigError.of({"bearer.auth.credentials.source": problem})
        return _bearer(config, originals, token)
    source = config["basic.auth.credentials.source"]
    user_info = _secret(config["basic.auth.user.info"]) or _secret(config["schema.registry.basic.auth.user.info"])
    if source == "URL":
        return Basic(in_url) if in_url else Nobody()
    if source == "SASL_INHERIT":
        user_info = _of_sasl(originals)
    if ":" not in (user_info or ""):
        raise ConfigError.of({"basic.auth.user.info": f"must be user:password, because basic.auth.credentials.source={source}"})
    return Basic(user_info)


class Nobody:
    def headers(self, send):
        return {}

    def forget(self):
        """Whether a request may succeed with new credentials after a 401."""
        return False


class Basic(Nobody):
    def __init__(self, user_info):
        hide(user_info.partition(":")[2])
        self._line = "Basic " + base64.b64encode(user_info.encode()).decode()

    def headers(self, send):
        return {"Authorization": self._line}


class Static(Nobody):
    def __init__(self, token, more):
        hide(token)
        self._headers = {"Authorization": f"Bearer {token}", **more}

    def headers(self, send):
        return self._headers


class OAuth:
    """Client credentials (RFC 6749, 4.4): a token is used until shortly before it expires."""

    def __init__(self, endpoint, client, secret, scope, buffer_seconds, more, clock):
        hide(secret)
        self._endpoint, self._clock, self._buffer, self._more = endpoint, clock, buffer_seconds, more
        self._form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
        self._login = "Basic " + base64.b64encode(f"{client}:{secret}".encode()).decode()
        self._lock = threading.Lock()
        self._line, self._ends = None, 0.0

    def headers(self, send):
        with self._lock:
            if self._line is None or self._clock.monotonic() >= self._ends:
                self._ask(send)
            return {"Authorization": self._line, **self._more}

    def forget(self):
        with self._lock:
            self._line = None
        return True

    def _ask(self, send):
        headers = {"Authorization": self._login, "Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        status, body = send("POST", self._endpoint, headers, urlencode(self._form).encode())
        said = f"No OAuth token from {self._endpoint} (bearer.auth.issuer.endpoint.url)"
        if status >= 500 or status in (408, 429):
            raise RegistryRetriableError(f"{said}: it answers {status}.", status)
        try:
            answer = json.loads(body)
            token = answer["access_token"]
            seconds = float(answer.get("expires_in") or 0)
        except (ValueError, KeyError, TypeError) as problem:
            reason = f"it answers {status}" if status != 200 else "its answer has no access_token"
            raise RegistryConfigError(f"{said}: {reason}. Check bearer.auth.client.id, bearer.auth.client.secret and bearer.auth.scope.") from problem
        hide(token)
        life = max(seconds - self._buffer, min(seconds, _LEAST_LIFE_SECONDS) / 2) if seconds else _LEAST_LIFE_SECONDS
        self._line, self._ends = f"Bearer {token}", self._clock.monotonic() + life


def _bearer(config, originals, token):
    source = config["bearer.auth.credentials.source"]
    pool, cluster = config["bearer.auth.identity.pool.id"], config["bearer.auth.logical.cluster"]
    more = {name: value for name, value in (("Confluent-Identity-Pool-Id", pool), ("target-sr-cluster", cluster)) if value}
    if source == "STATIC_TOKEN":
        return Static(token, more)
    if source == "OAUTHBEARER":
        names = {key: config[f"bearer.auth.{key}"] for key in ("issuer.endpoint.url", "client.id", "client.secret", "scope")}
    else:
        options = jaas_options(_secret(originals["sasl.jaas.config"])) if originals.get("sasl.jaas.config") else {}
        names = {
            "issuer.endpoint.url": originals.get("sasl.oauthbearer.token.endpoint.url"),
            "client.id": originals.get("sasl.oauthbearer.client.credentials.client.id") or options.get("clientId"),
            "client.secret": originals.get("sasl.oauthbearer.client.credentials.client.secret") or options.get("clientSecret"),
            "scope": originals.get("sasl.oauthbearer.scope") or options.get("scope"),
        }
    missing = [key for key in ("issuer.endpoint.url", "client.id", "client.secret") if not names[key]]
    if missing:
        raise ConfigError.of({f"bearer.auth.{key}": f"is missing: bearer.auth.credentials.source={source} needs it" for key in missing})
    from standalone.clock import SYSTEM

    buffer = config["bearer.auth.cache.expiry.buffer.seconds"]
    return OAuth(names["issuer.endpoint.url"], names["client.id"], _secret(names["client.secret"]), names["scope"], buffer, more, SYSTEM)


def _of_sasl(originals):
    options = jaas_options(_secret(originals["sasl.jaas.config"])) if originals.get("sasl.jaas.config") else {}
    if "username" not in options or "password" not in options:
        raise ConfigError.of({"sasl.jaas.config": "has no username and password, which basic.auth.credentials.source=SASL_INHERIT sends"})
    return f"{options['username']}:{options['password']}"


def _secret(value):
    """The text of a Password, or the text itself."""
    return getattr(value, "value", value)
