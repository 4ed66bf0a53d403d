"""/ui: a web page over the REST API. Its files in ui/ are served unchanged: no build step, nothing from elsewhere.

The page is the worker's own origin, so its requests need no token. Other origins' pages are handled in same_origin.py.
"""

import hashlib
import pathlib

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from standalone.rest import browse, dead_letters, log_admin, produce, schemas

_FOLDER = pathlib.Path(__file__).parent / "ui"
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_HEADERS = {
    # Scripts and styles are our files, and no text ever becomes markup (trusted-types 'none').
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def routes(herder, worker):
    """Return the routes; none if rest.ui.enable is false."""
    if not worker.config["rest.ui.enable"]:
        return []
    files = {}

    async def page(request):
        if not request.scope["raw_path"].endswith(b"/"):
            return RedirectResponse("ui/", 308)  # relative, so that it also works behind a proxy's path prefix
        return _file(request, files, "index.html")

    async def file(request):
        return _file(request, files, request.path_params["file"])

    return [Route("/ui", page), Route("/ui/{file}", file), *_data(herder, worker)]


def _data(herder, worker):
    own = [*browse.routes(herder, worker), *produce.routes(worker), *schemas.routes(worker)]
    return [*own, *log_admin.routes(worker), *dead_letters.routes(herder, worker)]


def _file(request, files, name):
    if not files:
        files.update({path.name: path.read_bytes() for path in _FOLDER.iterdir() if path.suffix in _KINDS})
    if name not in files:
        return Response("There is no such page.\n", 404, _HEADERS, "text/plain")
    tag = f'"{hashlib.sha256(files[name]).hexdigest()[:20]}"'
    headers = {**_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(files[name], headers=headers, media_type=_KINDS[pathlib.PurePath(name).suffix])
