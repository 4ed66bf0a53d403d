"""Requests that change something and come from another origin's page are refused: the browser would send them with all that the user may do.

A browser names the page's origin in `Origin`. Anyone who names none (curl, Connect clients) is no browser's page and passes; so do the
worker's own page and the origins of access.control.allow.origin.
"""

from standalone.rest.resource import json_answer

_LOOKING = ("GET", "HEAD", "OPTIONS")


class SameOrigin:
    """An ASGI application around another."""

    def __init__(self, app, allowed=""):
        self._app = app
        self._allowed = {origin.strip() for origin in allowed.split(",") if origin.strip()}

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["method"] not in _LOOKING:
            headers = dict(scope["headers"])
            origin = headers.get(b"origin")
            if origin is not None and not self._passes(origin.decode("latin-1"), headers):
                message = (
                    f"A page of the origin '{origin.decode('latin-1')}' may not change anything here. "
                    "If it should, name the origin in access.control.allow.origin."
                )
                await json_answer({"error_code": 403, "message": message}, 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _passes(self, origin, headers):
        if "*" in self._allowed or origin in self._allowed:
            return True
        _, _, place = origin.lower().partition("://")
        # Behind a proxy Host may be the worker's own address. No page can set the other header for another origin without being asked first.
        hosts = (headers.get(name, b"").decode("latin-1").lower() for name in (b"host", b"x-forwarded-host"))
        return bool(place) and place in hosts
