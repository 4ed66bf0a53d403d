"""Processing before routing: absolute or invalid request targets, CORS, configured response headers.

Encoded slashes, percent signs or dot segments in a path are rejected, and empty segments, as in Connect: proxies interpret them
differently.
"""

import re
import time
from email.utils import formatdate
from urllib.parse import unquote

_AMBIGUOUS = re.compile(rb"%(2f|25)|//|/(%2e|\.)*%2e(%2e|\.)*(/|$)", re.IGNORECASE)
_WHOLE_URL = re.compile(rb"https?://([^/]*)(/.*)?", re.IGNORECASE)
_DEFAULT_METHODS = "GET,POST,HEAD"
_ALLOWED_HEADERS = "X-Requested-With,Content-Type,Accept,Origin"
_PREFLIGHT_SECONDS = "1800"


class Front:
    """ASGI middleware."""

    def __init__(self, app, origins="", methods="", header_rules=""):
        self._app = app
        self._origins = {origin.strip() for origin in origins.split(",") if origin.strip()}
        self._methods = ",".join(part.strip() for part in methods.split(",") if part.strip()) or _DEFAULT_METHODS
        self._rules = parse_rules(header_rules)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _in_origin_form(scope)
        added = self._cors(scope)

        async def send_with_headers(message):
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._apply(list(message["headers"]) + added)}
            await send(message)

        if _AMBIGUOUS.search(scope.get("raw_path") or b""):
            await _refuse(send_with_headers, scope["method"])
            return
        if len(scope["path"]) > 1 and scope["path"].endswith("/"):
            scope = {**scope, "path": scope["path"][:-1]}
        await self._app(scope, receive, send_with_headers)

    def _cors(self, scope):
        headers = dict(scope["headers"])
        origin = headers.get(b"origin")
        if not self._origins or origin is None:
            return []
        if "*" not in self._origins and origin.decode("latin-1") not in self._origins:
            return [(b"vary", b"Origin")]
        found = [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            found.append((b"access-control-allow-methods", self._methods.encode()))
            found.append((b"access-control-allow-headers", _ALLOWED_HEADERS.encode()))
            found.append((b"access-control-max-age", _PREFLIGHT_SECONDS.encode()))
        return found

    def _apply(self, headers):
        for replaces, name, value in self._rules:
            if replaces:
                headers = [header for header in headers if header[0].lower() != name]
            headers.append((name, value()))
        return headers


def parse_rules(text):
    """Parse `set X-A: b, add X-C: d, setDate Expires: 1000` into [(whether it replaces, header name, function returning the value)]."""
    rules = []
    for rule in re.split(r',(?=\s*"?(?:add|set))', text or "", flags=re.IGNORECASE):
        rule = rule.strip().strip('"')
        if not rule:
            continue
        action, _, rest = rule.partition(" ")
        name, _, value = rest.partition(":")
        rules.append((action.lower().startswith("set"), name.strip().lower().encode("latin-1"), _value_of(action, value.strip())))
    return rules


def _value_of(action, value):
    if action.lower().endswith("date"):
        return lambda: formatdate(time.time() + int(value) / 1000, usegmt=True).encode()
    return lambda: value.encode("latin-1")


def _in_origin_form(scope):
    """Handle an absolute-form request target, as sent to a proxy: the URL's host then replaces the Host header (RFC 9112)."""
    match = _WHOLE_URL.match(scope.get("raw_path") or b"")
    if not match:
        return scope
    raw = match[2] or b"/"
    headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
    return {**scope, "raw_path": raw, "path": unquote(raw.decode("latin-1")), "headers": [(b"host", match[1]), *headers]}


async def _refuse(send, method):
    text = b"An empty segment, or an encoded slash, percent sign or dot, makes the address ambiguous.\n" if method == "GET" else b""
    await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"text/plain"), (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": text})
