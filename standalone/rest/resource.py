"""Resources: a path and its operations, from which routes and the OpenAPI document are built.

Handlers are plain functions of the request, each on a thread of a pool, where it may wait for the herder. Reads have their own
pool, so that changes that wait for a hanging connector do not block them.
"""

import codecs
import json

import anyio
import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from standalone.errors import BadRequestError

JSON = "application/json"
MOST_BODY_BYTES = 16 << 20
_LOOKING, _CHANGING = 32, 256  # threads at most, for reads and changes


class Operation:
    """One method of a path, with its OpenAPI description.

    `answers` maps each success status to its shape (shapes.py; None: no body), `query` names parameters with their schemas, `body` is
    the shape of the JSON passed to the handler as second argument, `problems` are error statuses besides those that any request may
    get. `media` is the media type of responses. `as_texts`: numbers in the body arrive as their original text, as Connect reads
    configurations.
    """

    def __init__(self, handler, summary, answers, query=None, body=None, problems=(), media=JSON, as_texts=False):
        self.handler = handler
        self.summary = summary
        self.answers = answers
        self.query = query or {}
        self.body = body
        self.problems = tuple(problems)
        self.media = media
        self.as_texts = as_texts


def resource(path, **operations):
    """Build a route: `resource("/x", GET=Operation(look, "Look at it", {200: shape}), PUT=…)`. A bare function is left out of the document."""
    return Route(path, Resource(path, operations))


def json_answer(content, status=200, headers=None):
    return Response(orjson.dumps(content), status, media_type=JSON, headers=headers)


def nothing(status=204):
    return Response(status_code=status)


def flag(request, name, default=False):
    """Return a boolean query parameter as JAX-RS parses it: the first one counts, and any other word is false."""
    text = next(iter(request.query_params.getlist(name)), "").strip().lower()
    return text == "true" if text else default


class Resource:
    """An ASGI application for `path` with its `operations`."""

    def __init__(self, path, operations):
        self.path = path
        self.operations = {method: each if isinstance(each, Operation) else Operation(each, None, {}) for method, each in operations.items()}
        self.allow = ",".join([*operations, *(["HEAD"] if "GET" in operations else []), "OPTIONS"])

    async def __call__(self, scope, receive, send):
        request = Request(scope, receive)
        response = await self._respond(request)
        await response(scope, receive, send)

    async def _respond(self, request):
        method = request.method
        if method == "OPTIONS" and method not in self.operations:
            return PlainTextResponse(self.allow, headers={"Allow": self.allow})
        operation = self.operations.get("GET" if method == "HEAD" else method)
        if operation is None:
            raise HTTPException(405, f"Method {method} Not Allowed", {"Allow": self.allow})
        if not _takes(request.headers.get("accept"), operation.media):
            raise HTTPException(406, f"Not Acceptable: answers are {operation.media}")
        arguments = [request]
        if operation.body is not None:
            arguments.append(await _body(request, operation.as_texts))
        return await anyio.to_thread.run_sync(operation.handler, *arguments, limiter=_pool(request.app, method))


def _pool(app, method):
    """Return the limiter shared by this method's handlers; created within the event loop."""
    name = "looking" if method in ("GET", "HEAD") else "changing"
    pools = app.state.pools = getattr(app.state, "pools", None) or {}
    if name not in pools:
        pools[name] = anyio.CapacityLimiter(_LOOKING if name == "looking" else _CHANGING)
    return pools[name]


async def _body(request, as_texts):
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON:
        raise HTTPException(415, f"Unsupported Media Type: the body must be {JSON}, not {kind or 'without a Content-Type'}")
    gathered = bytearray()
    async for piece in request.stream():
        gathered += piece
        if len(gathered) > MOST_BODY_BYTES:
            raise HTTPException(413, f"Content Too Large: a body has at most {MOST_BODY_BYTES} bytes")
    try:
        return _with_numbers_as_texts(bytes(gathered)) if as_texts else orjson.loads(bytes(gathered).removeprefix(codecs.BOM_UTF8))
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"The body is not JSON: {error}.") from error


def _with_numbers_as_texts(data):
    found = json.loads(data, parse_int=str, parse_float=str, parse_constant=_refuse)
    json.dumps(found, ensure_ascii=False).encode()  # an unpaired surrogate could be stored, but not returned
    return found


def _refuse(word):
    raise ValueError(f"{word} is not a JSON value")


def _takes(accept, media):
    """Whether an Accept header allows this media type."""
    if not accept or not accept.strip():
        return True
    passing = (media, f"{media.partition('/')[0]}/*", "*/*", "*")
    for item in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in item.split(";"))
        if kind in passing and not any(_is_zero(parameter) for parameter in parameters):
            return True
    return False


def _is_zero(parameter):
    return parameter.startswith("q=") and not parameter[2:].strip("0.")


def body_object(said):
    if not isinstance(said, dict):
        raise BadRequestError("The body must be a JSON object.")
    return said
