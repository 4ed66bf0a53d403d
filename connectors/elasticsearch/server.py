"""Requests to the servers: round-robin over addresses, skipping unreachable ones; and server detection.

Plain HTTP: each official client rejects the other product, and costs many times what a request does.
"""

import base64
import gzip
import json
import logging
import threading
import time
import urllib.parse

import orjson
import urllib3

from connectors.elasticsearch.keys import HTTPS
from standalone import ConfigError, ConnectError, RetriableError, tls_context

log = logging.getLogger(__name__)

NDJSON, JSON = "application/x-ndjson", "application/json"
PASSING = (408, 429, 502, 503, 504)  # retriable statuses of a whole request
LEAST_VERSION = 7
_FIRST_REST_SECONDS, _LONGEST_REST_SECONDS = 0.5, 30.0  # for which an unreachable address is skipped
_MOST_SHOWN = 500


class Unreachable(RetriableError):
    """No response, or one that asks to retry later."""


class Refused(ConnectError):
    """The server rejects a whole request. `status` is HTTP's, `kind` the server's error type."""

    def __init__(self, message, status, kind):
        super().__init__(message)
        self.status, self.kind = status, kind


class Server:
    """Thread-safe HTTP client. Close it when done."""

    def __init__(self, config, clock=time.monotonic):
        self._config, self._clock = config, clock
        self._urls = [_without_user(url) for url in config["connection.url"]]
        self._away = {}  # address -> (until when to skip it, for how long)
        self._turn = 0
        self._lock = threading.Lock()
        self._last_used = clock()
        self._headers = {"Accept": JSON, **_credentials(config)}
        self._pool = self._new_pool()

    def close(self):
        self._pool.clear()

    def who(self):
        """Return (version, "elasticsearch" or "opensearch"). Raise ConfigError if it is neither, or too old."""
        answer = self.ask("GET", "/")
        about = answer.get("version") if isinstance(answer, dict) else None
        if not isinstance(about, dict) or "number" not in about:
            raise ConfigError(f"{self._shown} answers, but is neither Elasticsearch nor OpenSearch. Check connection.url.")
        number, kind = str(about["number"]), about.get("distribution", "elasticsearch")
        if kind == "elasticsearch" and int(number.partition(".")[0]) < LEAST_VERSION:
            raise ConfigError(f"{self._shown} is Elasticsearch {number}; supported are {LEAST_VERSION} and later, and every OpenSearch.")
        return number, kind

    def ask(self, method, path, body=None, what=None, absent=False):
        """Return the response's JSON. Raise Unreachable, Refused, or ConfigError if the login fails; with `absent`, return None for a 404."""
        data = None if body is None else orjson.dumps(body)
        status, answer = self.send(method, path, data, JSON)
        if status == 404 and absent:
            return None
        if status >= 300:
            raise self.refusal(status, answer, what or f"{method} {path}")
        try:
            return orjson.loads(answer) if answer else {}
        except ValueError:
            raise ConfigError(f"{self._shown} answers, but not in JSON: it is neither Elasticsearch nor OpenSearch. Check connection.url.") from None

    def send(self, method, path, data=None, kind=NDJSON):
        """Return (status, bytes) from the first address that responds. Raise Unreachable."""
        headers = {**self._headers, "Content-Type": kind} if data is not None else self._headers
        if data is not None and self._config["connection.compression"]:
            data = gzip.compress(data, 1)
            headers["Content-Encoding"] = "gzip"
        self._leave_idle_connections()
        problem = None
        for url in self._in_turn():
            try:
                answer = self._pool.request(method, url + path, body=data, headers=headers, retries=False, redirect=False)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                problem = error
                self._rest(url, error)
                if not isinstance(error, urllib3.exceptions.NewConnectionError | urllib3.exceptions.ConnectTimeoutError):
                    break  # the server may have processed it: the caller decides whether to retry
                continue
            self._away.pop(url, None)
            return answer.status, answer.data
        raise Unreachable(f"{self._shown} cannot be reached: {_reason(problem)}. Is it running there (connection.url)?") from problem

    def refusal(self, status, answer, what):
        """Return the error for an error response."""
        kind, reason = reason_of(_parsed(answer))
        said = f"Could not {what}: {self._shown} answers {status}" + (f" ({reason})" if reason else "")
        if status in (401, 403) and kind != "cluster_block_exception":
            way = "does not know these credentials" if status == 401 else "does not allow it"
            keys = "connection.username, connection.password or connection.api.key"
            return ConfigError(f"{said}. It {way}: check {keys}, and the user's permissions.")
        if status in PASSING or kind == "cluster_block_exception":
            return Unreachable(f"{said}.")
        return Refused(f"{said}.", status, kind)

    @property
    def _shown(self):
        return f"The server {', '.join(self._urls)}"

    # --- Addresses ---------------------------------------------------------------------------------------------------

    def _in_turn(self):
        """Return all addresses, starting with the next one; unreachable ones last."""
        with self._lock:
            first, self._turn = self._turn, (self._turn + 1) % len(self._urls)
        now = self._clock()
        turn = self._urls[first:] + self._urls[:first]
        return sorted(turn, key=lambda url: max(0.0, self._away.get(url, (0.0, 0))[0] - now))

    def _rest(self, url, error):
        _, seconds = self._away.get(url, (0, _FIRST_REST_SECONDS / 2))
        if url not in self._away and len(self._urls) > 1:
            log.warning("Skipping unreachable %s for now: %s", url, _reason(error))
        seconds = min(2 * seconds, _LONGEST_REST_SECONDS)
        self._away[url] = self._clock() + seconds, seconds

    # --- Connections -------------------------------------------------------------------------------------------------

    def _leave_idle_connections(self):
        now, most = self._clock(), self._config["max.connection.idle.time.ms"]
        with self._lock:
            was, self._last_used = self._last_used, now
        if 0 <= most < (now - was) * 1000:
            self._pool.clear()

    def _new_pool(self):
        config = self._config
        timeout = urllib3.Timeout(connect=_seconds(config["connection.timeout.ms"]), read=_seconds(config["read.timeout.ms"]))
        options = {"timeout": timeout, "maxsize": config["max.in.flight.requests"], "num_pools": max(10, len(self._urls))}
        if any(url.startswith("https:") for url in self._urls):
            given = config.with_prefix(HTTPS) if config["elastic.security.protocol"].upper() == "SSL" else {}
            options["ssl_context"] = _tls(given)
            if not options["ssl_context"].check_hostname:
                options["assert_hostname"] = False
        if not config["proxy.host"]:
            return urllib3.PoolManager(**options)
        headers = None
        if config["proxy.username"]:
            headers = urllib3.make_headers(proxy_basic_auth=f"{config['proxy.username']}:{config['proxy.password'].value}")
        return urllib3.ProxyManager(f"http://{config['proxy.host']}:{config['proxy.port']}", proxy_headers=headers, **options)


def reason_of(answer):
    """Return (error type, reason with causes) of a response's "error" as strings, empty if there is none."""
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    if not isinstance(error, dict):
        return "", str(error or "")[:_MOST_SHOWN]
    parts, each = [], error
    while isinstance(each, dict) and len(parts) < 4:
        said = ": ".join(str(each[name]) for name in ("type", "reason") if each.get(name))
        if said and said not in parts:
            parts.append(said)
        each = each.get("caused_by")
    return str(error.get("type") or ""), "; caused by ".join(parts)[:_MOST_SHOWN]


def quoted(name):
    """Quote a name as a URL path segment."""
    return urllib.parse.quote(name, safe="")


def _parsed(answer):
    try:
        return json.loads(answer)
    except ValueError:
        return answer[:_MOST_SHOWN].decode("utf-8", "replace").strip() if not answer.lstrip().startswith(b"<") else ""


def _tls(given):
    try:
        return tls_context(given)
    except ConfigError as error:
        raise ConfigError.of({f"{HTTPS}{key}": message for key, message in error.errors.items()}) from error


def _credentials(config):
    if config["connection.api.key"] is not None:
        return {"Authorization": f"ApiKey {config['connection.api.key'].value}"}
    name, password = config["connection.username"], config["connection.password"]
    if name is None:
        found = next((urllib.parse.urlsplit(url) for url in config["connection.url"] if "@" in url), None)
        if found is None:
            return {}
        name, word = urllib.parse.unquote(found.username or ""), urllib.parse.unquote(found.password or "")
    else:
        word = password.value
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{word}".encode()).decode()}


def _without_user(url):
    """Return the address without user and password: they go into a header, and not into messages."""
    found = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((found.scheme, found.netloc.rpartition("@")[2], found.path.rstrip("/"), "", ""))


def _seconds(ms):
    return ms / 1000 if ms else None  # 0 means no limit, as in Java


def _reason(error):
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "no answer in time (connection.timeout.ms, read.timeout.ms)"
    while True:
        inner = getattr(error, "reason", None)
        inner = inner if isinstance(inner, BaseException) else error.__cause__
        if inner is None or inner is error:
            break
        error = inner
    return getattr(error, "strerror", None) or str(error).rpartition(": ")[2] or type(error).__name__
