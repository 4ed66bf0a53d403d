"""Mask values from config providers in all responses (secrets.py).

Such a value may be a topic's name and thus occur in lists of topics, labels of metrics or URLs. Masked are strings in JSON, labels of metrics,
other plain text, and headers. Numbers and the API's own words are not masked, so that a password of "name" or "RUNNING" does not break
clients. Pages, scripts and styles contain no configuration.
"""

import re

import orjson

from standalone import secrets
from standalone.rest import browse, dead_letters, log_admin, produce, schemas, shapes

_OURS = ("text/html", "text/javascript", "text/css", "image/svg+xml")
_METRICS = "text/plain; version="
_LABEL = re.compile(r'(?<==)"(?:[^"\\]|\\.)*"')
_KEPT_HEADERS = (b"content-type", b"content-length", b"etag")


class Masked:
    """ASGI middleware. It buffers the response, since the length may change."""

    def __init__(self, app):
        self._app = app
        self._words = shapes.words() | browse.WORDS | produce.WORDS | schemas.WORDS | log_admin.WORDS | dead_letters.WORDS

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, pieces = None, []

        async def gather(message):
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            pieces.append(message.get("body", b""))
            if not message.get("more_body"):
                body = b"".join(pieces)
                headers, masked = self._masked(start["headers"], body)
                await send({**start, "headers": headers})
                await send({**message, "body": masked})

        await self._app(scope, receive, gather)

    def _masked(self, headers, body):
        kind = dict(headers).get(b"content-type", b"").decode("latin-1").lower()
        headers = [(name, value if name in _KEPT_HEADERS else _bytes(secrets.mask(value.decode("latin-1")))) for name, value in headers]
        text = "" if kind.startswith(_OURS) else body.decode("utf-8", "replace")
        if not secrets.is_in(text):
            return headers, body
        if kind.startswith("application/json"):
            masked = orjson.dumps(self._value(orjson.loads(body)))
        elif kind.startswith(_METRICS):
            masked = _LABEL.sub(lambda label: secrets.mask(label[0]), text).encode()
        else:
            masked = secrets.mask(text).encode()
        return [(name, b"%d" % len(masked) if name == b"content-length" else value) for name, value in headers], masked

    def _value(self, value):
        if isinstance(value, str):
            return value if value in self._words else secrets.mask(value)
        if isinstance(value, list):
            return [self._value(each) for each in value]
        if isinstance(value, dict):
            return {self._value(key): self._value(each) for key, each in value.items()}
        return value


def _bytes(text):
    return text.encode("latin-1", "replace")
