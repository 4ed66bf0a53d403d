"""Reject changes requested by pages of other origins: the browser would send them with the user's permissions.

A browser sends the page's origin as `Origin`. Requests without it (curl, Connect clients) do not come from a page and pass; so do the
worker's own page and the origins in access.control.allow.origin.
"""

from standalone.rest.resource import json_answer

_LOOKING = ("GET", "HEAD", "OPTIONS")


class SameOrigin:
    """ASGI middleware."""

    def __init__(self, app, allowed=""):
        self._app = app
        self._allowed = {origin.strip() for origin in allowed.split(",") if origin.strip()}

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["method"] not in _LOOKING:
            headers = dict(scope["headers"])
            origin = headers.get(b"origin")
            if origin is not None and not self._passes(origin.decode("latin-1"), headers):
                message = (
                    f"Pages of the origin '{origin.decode('latin-1')}' may not change anything here. "
                    "To allow it, add the origin to access.control.allow.origin."
                )
                await json_answer({"error_code": 403, "message": message}, 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _passes(self, origin, headers):
        if "*" in self._allowed or origin in self._allowed:
            return True
        _, _, place = origin.lower().partition("://")
        # Behind a proxy Host may be the worker's own address. No page can set the other header for a foreign origin without a preflight.
        hosts = (headers.get(name, b"").decode("latin-1").lower() for name in (b"host", b"x-forwarded-host"))
        return bool(place) and place in hosts
