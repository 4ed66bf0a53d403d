"""Sends one request to the registry: failover between addresses, retries with exponential backoff, errors with advice."""

import json
import random
import ssl
import threading

import urllib3

from standalone.config import with_prefix
from standalone.errors import ConfigError, RegistryConfigError, RegistryDataError, RegistryRetriableError
from standalone.schema_registry.credentials import credentials_of, split_url
from standalone.schema_registry.keys import EMBEDDED, HEADERS, SSL, URL

CONTENT = "application/vnd.schemaregistry.v1+json"
# Used unless a running worker's registry sets its address: the listener's default.
EMBEDDED_URL = "http://127.0.0.1:8081"
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_MOST_SHOWN = 2000


class Http:
    """`request` is thread-safe; `close` ends backoff waits."""

    def __init__(self, config, originals, clock):
        self._config, self._clock = config, clock
        found = [split_url(EMBEDDED_URL if url == EMBEDDED else url) for url in config[URL]]
        self._urls = [url.rstrip("/") for url, _ in found]
        wrong = [url for url in self._urls if not url.startswith(("http://", "https://"))]
        if wrong:
            raise ConfigError.of({URL: f"'{wrong[0]}' is not an address: write http://host:port, or '{EMBEDDED}' alone"})
        self._next = random.randrange(len(self._urls)) if config["schema.registry.url.randomize"] else 0
        self._headers = {"Accept": f"{CONTENT}, application/json", **_custom_headers(originals)}
        self._credentials = credentials_of(config, originals, next((user for _, user in found if user), None))
        self._pool = self._new_pool(originals)
        self._closed = threading.Event()

    def close(self):
        self._closed.set()
        self._pool.clear()

    def request(self, method, path, body=None, what=None):
        """The response's JSON. `what` describes the request in errors, like "register a schema of subject 'a-value'"."""
        config, tries = self._config, 0
        while True:
            try:
                return self._ask_each(method, path, body, what or f"{method} {path}")
            except RegistryRetriableError:
                tries += 1
                if tries > config["max.retries"] or self._closed.is_set():
                    raise
            pause = min(config["retries.wait.ms"] * 2 ** (tries - 1), config["retries.max.wait.ms"]) / 1000
            self._clock.wait(self._closed, pause * random.uniform(0.8, 1.0))

    def _ask_each(self, method, path, body, what):
        """The response of the first address that answers; it is also tried first next time."""
        first, problem = self._next, None
        for number in range(len(self._urls)):
            place = (first + number) % len(self._urls)
            try:
                answer = self._ask(method, self._urls[place], path, body, what)
            except RegistryRetriableError as error:
                problem = error
                continue
            self._next = place
            return answer
        raise problem

    def _ask(self, method, url, path, body, what, again=True):
        headers = {**self._headers, **self._credentials.headers(self._send)}
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False).encode()
            headers["Content-Type"] = CONTENT
        status, answer = self._send(method, url + path, headers, data, url)
        if status == 401 and again and self._credentials.forget():  # a revoked token: retry with a new one
            return self._ask(method, url, path, body, what, again=False)
        if status < 300:
            try:
                return json.loads(answer) if answer else None
            except ValueError as error:
                raise RegistryConfigError(f"Could not {what}: {url} answers, but not as a schema registry does. Check {URL}.", status) from error
        raise _refusal(status, answer, url, what)

    def _send(self, method, url, headers, data, shown=None):
        """(status, body). Raises if there is no response."""
        shown = shown or url
        try:
            answer = self._pool.request(method, url, body=data, headers=headers, retries=False, redirect=False)
            return answer.status, answer.data
        except urllib3.exceptions.LocationValueError as error:
            raise RegistryConfigError(f"The address {shown} ({URL}) cannot be understood: {error}.") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            reason = _root(error)
            if isinstance(reason, ssl.SSLCertVerificationError) or isinstance(reason, ssl.SSLError) and "ALERT" in str(reason).upper():
                trust = f"The schema registry {shown} and this client do not trust each other (TLS): {reason}"
                raise RegistryConfigError(f"{trust}. Check {SSL}truststore.* and {SSL}keystore.*.") from error
            message = f"The schema registry {shown} cannot be reached: {_told(reason)}. Is it running there ({URL})?"
            raise RegistryRetriableError(message) from error

    def _new_pool(self, originals):
        config = self._config
        timeout = urllib3.Timeout(connect=config["http.connect.timeout.ms"] / 1000, read=config["http.read.timeout.ms"] / 1000)
        options = {"timeout": timeout, "maxsize": 4}
        endpoint = config["bearer.auth.issuer.endpoint.url"] or ""
        if any(url.startswith("https:") for url in [*self._urls, endpoint]):
            options["ssl_context"] = _tls(originals)
            if not options["ssl_context"].check_hostname:
                options["assert_hostname"] = False
        if config["proxy.host"]:
            return urllib3.ProxyManager(f"http://{config['proxy.host']}:{config['proxy.port']}", **options)
        return urllib3.PoolManager(**options)


def _tls(originals):
    """TLS from the same keys as Kafka's clients, with the prefix schema.registry."""
    from standalone.log import tls
    from standalone.log.client_config import AdminConfig

    given = {f"ssl.{key}": getattr(value, "value", value) for key, value in with_prefix(originals, SSL).items() if value is not None}
    try:
        return tls.context(AdminConfig.of(given))
    except ConfigError as error:
        raise ConfigError.of({f"schema.registry.{key}": message for key, message in error.errors.items()}) from error


def _custom_headers(originals):
    return {name: str(getattr(value, "value", value)) for name, value in with_prefix(originals, HEADERS).items()}


def _refusal(status, answer, url, what):
    """The error for an error response."""
    code, said = status, ""
    try:
        found = json.loads(answer)
        code, said = found.get("error_code", status), str(found.get("message") or found.get("detail") or "")
    except (ValueError, AttributeError):
        said = answer[:_MOST_SHOWN].decode("utf-8", "replace").strip() if b"<" not in answer[:1] else ""
    said = said[:_MOST_SHOWN].rstrip(".")
    asked = f"Could not {what}: the schema registry {url} answers {status}" + (f" ({code})" if code != status else "") + (f": {said}" if said else "")
    if status in (401, 403):
        kind = "does not know these credentials" if status == 401 else "does not allow it"
        return RegistryConfigError(f"{asked}. It {kind}: check basic.auth.* or bearer.auth.* and the rights of that user.", status, code)
    if status in _PASSING:
        return RegistryRetriableError(f"{asked}.", status, code)
    if status == 409:
        hint = "Change the schema so that it is compatible, or the subject's compatibility"
        return RegistryDataError(f"{asked}. {hint}.", status, code)
    if status == 404:
        return RegistryDataError(f"{asked}.", status, code)
    if status == 422:
        return RegistryDataError(f"{asked}. The schema, or what is asked for, is not valid.", status, code)
    if status in (301, 302, 307, 308, 400, 405, 406, 415):
        return RegistryConfigError(f"{asked}. Is {URL} the address of a schema registry?", status, code)
    return RegistryDataError(f"{asked}.", status, code)


def _root(error):
    """The root cause."""
    while True:
        inner = getattr(error, "reason", None)
        inner = inner if isinstance(inner, BaseException) else error.__cause__
        if inner is None or inner is error:
            return error
        error = inner


def _told(reason):
    return getattr(reason, "strerror", None) or (str(reason).rpartition(": ")[2] or type(reason).__name__)
