"""The REST client behind connectctl: one request, one answer; what is refused ends the command with the worker's own words.

Only the standard library: a command that asks one question must not load an HTTP package first.
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
SECONDS = 100  # a worker answers within 90, whatever its connectors do


class Refused(click.ClickException):
    """The worker said no, or did not answer. `status` is HTTP's, None where there was no answer."""

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
        """As the command's options say; `ask(name)` gives the password where neither they nor the environment do."""
        name, colon, password = (options.get("user") or "").partition(":")
        if name and not colon:
            password = os.environ.get("CONNECT_PASSWORD")
            password = ask(name) if password is None else password
        return cls(options.get("url") or DEFAULT_URL, name or None, password, options.get("cacert"), options.get("cert"), options.get("key"))

    def get(self, path):
        return self.ask("GET", path)

    def text(self, path):
        """The answer as it is: /metrics speaks no JSON."""
        return self._answer("GET", path, None, "*/*").decode()

    def ask(self, method, path, body=None):
        """The JSON answer, or None where there is none. Raises Refused."""
        try:
            content = self._answer(method, path, body, "application/json")
            return json.loads(content) if content else None
        except ValueError as error:
            raise self._no_worker(error) from None

    def _no_worker(self, error):
        return Refused(f"What answers at {self.url} is not a Connect worker: {error}. --url says where the worker is.")

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
            raise Refused(f"No worker answers at {self.url}: {reason}. Is it running? --url (or CONNECT_URL) says where.") from None

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
    """The address of a connector, or of something of its own."""
    return f"/connectors/{quote(name, safe='')}{rest}"


def _reason(error):
    """What an error answer says."""
    content = error.read()
    if error.code == 401:
        return "The worker wants to know who asks: give --user NAME (and CONNECT_PASSWORD), or it does not know that name and password."
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
