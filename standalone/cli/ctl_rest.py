"""connectctl's REST client: one request, one response. An error response ends the command with the worker's message.

Standard library only: importing an HTTP package would slow down every command.
"""

import base64
import ipaddress
import json
import os
import ssl
import urllib.error
import urllib.request
from urllib.parse import quote, urlsplit

import click

DEFAULT_URL = "http://127.0.0.1:8083"
SECONDS = 100  # a worker answers within 90, even if its connectors hang


class Refused(click.ClickException):
    """The worker refused the request or did not answer. `status` is the HTTP status, None without an answer."""

    exit_code = 1

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class Rest:
    """One worker's REST API."""

    def __init__(self, url, user=None, password=None, cacert=None, cert=None, key=None):
        self.url = url.rstrip("/") if "//" in url else f"http://{url}".rstrip("/")
        self._authorization = None
        if user is not None:
            self._authorization = "Basic " + base64.b64encode(f"{user}:{password or ''}".encode()).decode()
        self._files = (cacert, cert, key)
        self._opener = None

    @classmethod
    def of(cls, options, ask=lambda name: None):
        """From the command's options; `ask(name)` prompts for the password if neither they nor the environment contain it."""
        name, colon, password = (options.get("user") or "").partition(":")
        if name and not colon:
            password = os.environ.get("CONNECT_PASSWORD")
            password = ask(name) if password is None else password
        return cls(options.get("url") or DEFAULT_URL, name or None, password, options.get("cacert"), options.get("cert"), options.get("key"))

    def get(self, path):
        return self.ask("GET", path)

    def text(self, path):
        """The response body, unparsed: /metrics is not JSON."""
        return self._answer("GET", path, None, "*/*").decode()

    def ask(self, method, path, body=None):
        """The JSON response, or None if it has no body. Raises Refused."""
        try:
            content = self._answer(method, path, body, "application/json")
            return json.loads(content) if content else None
        except ValueError as error:
            raise self._no_worker(error) from None

    def _no_worker(self, error):
        return Refused(f"The server at {self.url} is not a Connect worker: {error}. Set the worker's address with --url.")

    def _answer(self, method, path, body, accept):
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._authorization:
            headers["Authorization"] = self._authorization
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with self._open(request) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            raise Refused(_reason(error), error.code) from None
        except ValueError as error:
            raise self._no_worker(error) from None
        except (urllib.error.URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise Refused(f"No worker answers at {self.url}: {reason}. Is it running? Set its address with --url or CONNECT_URL.") from None

    def _open(self, request):
        if self._opener is None:
            handlers = [urllib.request.ProxyHandler({})] if _is_loopback(urlsplit(self.url).hostname) else []
            if self.url.startswith("https:"):
                handlers.append(urllib.request.HTTPSHandler(context=self._tls()))
            self._opener = urllib.request.build_opener(*handlers)
        return self._opener.open(request, timeout=SECONDS)

    def _tls(self):
        cacert, cert, key = self._files
        try:
            context = ssl.create_default_context(cafile=cacert)
            if cert:
                context.load_cert_chain(cert, key)
        except (OSError, ssl.SSLError) as error:
            raise Refused(f"The certificates cannot be read ({', '.join(filter(None, self._files))}): {error}.") from None
        return context


def connector_path(name, rest=""):
    """The REST path of a connector, or of a resource below it."""
    return f"/connectors/{quote(name, safe='')}{rest}"


def _reason(error):
    """The message of an error response."""
    content = error.read()
    if error.code == 401:
        return "Authentication failed: give --user NAME and CONNECT_PASSWORD, or correct them."
    try:
        return json.loads(content)["message"]
    except (ValueError, KeyError, TypeError):
        said = content.decode("utf-8", "replace").strip()
        return f"HTTP {error.code} {error.reason}" + (f": {said[:500]}" if said else "")


def _is_loopback(host):
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
