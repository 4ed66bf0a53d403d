"""Confluent's REST API: the table of requests and their handlers.

A subject may hold an encoded slash, so paths are parsed before they are decoded. `/contexts/{context}/…` is the same API with another
default context. Features of Confluent's cloud and enterprise edition are not implemented: exporters, key encryption, tags.
"""

import json
import logging
from urllib.parse import unquote

import anyio
from starlette.requests import Request
from starlette.responses import Response

from standalone import __version__
from standalone.schema_registry.http import CONTENT
from standalone.schema_registry.server import bodies, refusals
from standalone.schema_registry.server.refusals import Refusal
from standalone.schema_registry.server.subjects import ANY, DEFAULT, Subject, matches
from standalone.secrets import mask

log = logging.getLogger(__name__)

_MOST_BODY_BYTES = 16 << 20
_AT_ONCE = 16
_TAKEN = (CONTENT, "application/vnd.schemaregistry+json", "application/json", "application/octet-stream", "")


class Ask:
    """One request: path segments, query, JSON body."""

    def __init__(self, registry, method, pieces, query, body, context):
        self.registry, self.method, self.pieces, self._query, self.body, self._context = registry, method, pieces, query, body, context

    def flag(self, name):
        return self._query.get(name, "").strip().lower() == "true"

    def text(self, name, default=""):
        return self._query.get(name, default)

    def all(self, name):
        return self._query.getlist(name)

    def number(self, name, default):
        try:
            return int(self._query.get(name, default))
        except ValueError:
            raise Refusal(404, "HTTP 404 Not Found") from None

    def page(self, found):
        offset, limit = self.number("offset", 0), self.number("limit", -1)
        return found[max(offset, 0) :][: limit if limit >= 0 else None]

    def subject(self, place=0, valid=False):
        return self.subject_of(self.pieces[place], valid)

    def subject_of(self, text, valid=False):
        if self._context != DEFAULT and not text.startswith(":"):
            text = f":{self._context}:{text}"
        return Subject.valid(text) if valid else Subject.of(text)

    def prefix(self):
        text = self.text("subjectPrefix", "")
        return f":{self._context}:{text}" if self._context != DEFAULT and not text.startswith(":") else text


# ---- schemas


def list_schemas(ask):
    found = [each for each in ask.registry.all_versions(ask.flag("deleted")) if matches(each.subject, ask.text("subjectPrefix", ANY) or ANY)]
    if ask.flag("latestOnly"):
        found = list({each.subject: each for each in found}.values())
    return [bodies.shown_version(each, ask.registry) for each in ask.page(found)]


def types(ask):
    return ["JSON", "PROTOBUF", "AVRO"]


def _by_id(ask):
    text = ask.text("subject")
    return ask.registry.by_id(_id(ask.pieces[0]), ask.subject_of(text))


def schema_by_id(ask):
    context, found = _by_id(ask)
    shown = bodies.shown_schema(found, ask.registry, ask.text("format"))
    if ask.flag("fetchMaxId"):
        shown["maxId"] = ask.registry.highest_id(context)
    return {**shown, "guid": found.guid}


def raw_by_id(ask):
    return Raw(bodies.text_of(_by_id(ask)[1], ask.registry, ask.text("format")))


def subjects_of_id(ask):
    found = ask.registry.of_id(_id(ask.pieces[0]), ask.subject_of(ask.text("subject")), ask.flag("deleted"))
    return ask.page(list(dict.fromkeys(str(each.subject) for each in found)))


def versions_of_id(ask):
    found = ask.registry.of_id(_id(ask.pieces[0]), ask.subject_of(ask.text("subject")), ask.flag("deleted"))
    return ask.page([{"subject": str(each.subject), "version": each.version} for each in found])


def schema_by_guid(ask):
    _, found = ask.registry.by_guid(ask.pieces[0])[0]
    return {**bodies.shown_schema(found, ask.registry, ask.text("format")), "guid": found.guid}


def ids_of_guid(ask):
    return [{"context": context, "id": found.id} for context, found in ask.registry.by_guid(ask.pieces[0])]


def _id(text):
    try:
        return int(text)
    except ValueError:
        raise Refusal(404, "HTTP 404 Not Found") from None


# ---- subjects


def list_subjects(ask):
    only = ask.flag("deletedOnly")
    every = ask.registry.all_versions(deleted=ask.flag("deleted") or only)
    living = {each.subject for each in every if not each.deleted}
    found = sorted({each.subject for each in every if not only or each.subject not in living})
    prefix = ask.prefix()
    return ask.page([str(each) for each in found if matches(each, prefix)])


def lookup(ask):
    subject, schema = ask.subject(), bodies.schema_of(ask.body)
    schema = ask.registry.with_settled_references(schema, subject.context)
    about = ask.body.get("metadata"), ask.body.get("ruleSet")
    found = ask.registry.lookup(subject, schema, *about, ask.flag("normalize"), ask.flag("deleted"))
    return bodies.shown_version(found, ask.registry, ask.text("format"))


def delete_subject(ask):
    return ask.registry.delete_subject(ask.subject(), ask.flag("permanent"))


def list_versions(ask):
    found = ask.registry.versions(ask.subject(), ask.flag("deleted"), ask.flag("deletedOnly"))
    return ask.page([each.version for each in found])


def register(ask):
    subject, schema = ask.subject(valid=True), bodies.schema_of(ask.body)
    schema = ask.registry.with_settled_references(schema, subject.context)
    about = ask.body.get("metadata"), ask.body.get("ruleSet")
    found = ask.registry.register(subject, schema, *about, ask.flag("normalize"), ask.body.get("id"), ask.body.get("version"))
    return {"id": found.id, "version": found.version, "guid": found.guid, **bodies.shown_schema(found, ask.registry, ask.text("format"))}


def _version(ask):
    return ask.registry.version(ask.subject(), bodies.version_of(ask.pieces[1]), ask.flag("deleted"))


def get_version(ask):
    return bodies.shown_version(_version(ask), ask.registry, ask.text("format"))


def raw_version(ask):
    return Raw(bodies.text_of(_version(ask), ask.registry, ask.text("format")))


def referenced_by(ask):
    return ask.page(ask.registry.referring(ask.subject(), bodies.version_of(ask.pieces[1])))


def delete_version(ask):
    return ask.registry.delete_version(ask.subject(), bodies.version_of(ask.pieces[1]), ask.flag("permanent"))


def newest_with_metadata(ask):
    wanted = dict(zip(ask.all("key"), ask.all("value")))
    return bodies.shown_version(ask.registry.with_metadata(ask.subject(), wanted, ask.flag("deleted")), ask.registry, ask.text("format"))


# ---- contexts


def list_contexts(ask):
    return ask.page([context for context in ask.registry.contexts() if context.startswith(ask.text("contextPrefix"))])


# ---- compatibility, config, mode


def compatibility(ask):
    subject, schema = ask.subject(), bodies.schema_of(ask.body)
    schema = ask.registry.with_settled_references(schema, subject.context)
    version = bodies.version_of(ask.pieces[1]) if len(ask.pieces) > 1 else None
    try:
        problems = ask.registry.compatibility(subject, version, schema, ask.flag("normalize"))
    except Refusal as refusal:
        if refusal.code == 40401 and version is not None:
            raise refusals.version_not_found(version) from refusal
        raise
    shown = {"is_compatible": not problems}
    return {**shown, "messages": problems} if ask.flag("verbose") else shown


def get_config(ask):
    subject = ask.subject() if ask.pieces else None
    return ask.registry.settings.config(subject, ask.flag("defaultToGlobal"))


def put_config(ask):
    return ask.registry.settings.set_config(ask.subject() if ask.pieces else None, bodies.config_of(ask.body))


def delete_config(ask):
    return ask.registry.settings.delete_config(ask.subject() if ask.pieces else None)


def get_mode(ask):
    return {"mode": ask.registry.settings.mode(ask.subject() if ask.pieces else None, ask.flag("defaultToGlobal"))}


def put_mode(ask):
    body = ask.body if isinstance(ask.body, dict) else {}
    return {"mode": ask.registry.settings.set_mode(ask.subject() if ask.pieces else None, body.get("mode"), ask.flag("force"))}


def delete_mode(ask):
    return {"mode": ask.registry.settings.delete_mode(ask.subject() if ask.pieces else None)}


# ---- about itself


def nothing(ask):
    return {}


def cluster(ask):
    return {"scope": {"path": [], "clusters": {"kafka-cluster": "", "schema-registry-cluster": "connect-standalone"}}, "id": ""}


def about(ask):
    return {"version": __version__, "commitId": f"connect-standalone-{__version__}"}


_ANY = None
_TABLE = {  # path segments, _ANY for a name -> {method: handler}
    (): {"GET": nothing},
    ("schemas",): {"GET": list_schemas},
    ("schemas", "types"): {"GET": types},
    ("schemas", "ids", _ANY): {"GET": schema_by_id},
    ("schemas", "ids", _ANY, "schema"): {"GET": raw_by_id},
    ("schemas", "ids", _ANY, "subjects"): {"GET": subjects_of_id},
    ("schemas", "ids", _ANY, "versions"): {"GET": versions_of_id},
    ("schemas", "guids", _ANY): {"GET": schema_by_guid},
    ("schemas", "guids", _ANY, "ids"): {"GET": ids_of_guid},
    ("subjects",): {"GET": list_subjects},
    ("subjects", _ANY): {"POST": lookup, "DELETE": delete_subject},
    ("subjects", _ANY, "metadata"): {"GET": newest_with_metadata},
    ("subjects", _ANY, "versions"): {"GET": list_versions, "POST": register},
    ("subjects", _ANY, "versions", _ANY): {"GET": get_version, "DELETE": delete_version},
    ("subjects", _ANY, "versions", _ANY, "schema"): {"GET": raw_version},
    ("subjects", _ANY, "versions", _ANY, "referencedby"): {"GET": referenced_by},
    ("contexts",): {"GET": list_contexts},
    ("compatibility", "subjects", _ANY, "versions"): {"POST": compatibility},
    ("compatibility", "subjects", _ANY, "versions", _ANY): {"POST": compatibility},
    ("config",): {"GET": get_config, "PUT": put_config, "DELETE": delete_config},
    ("config", _ANY): {"GET": get_config, "PUT": put_config, "DELETE": delete_config},
    ("mode",): {"GET": get_mode, "PUT": put_mode, "DELETE": delete_mode},
    ("mode", _ANY): {"GET": get_mode, "PUT": put_mode, "DELETE": delete_mode},
    ("v1", "metadata", "id"): {"GET": cluster},
    ("v1", "metadata", "version"): {"GET": about},
}


class Raw(str):
    """A plain text response, not a JSON string."""


def api(registry):
    """The ASGI application."""
    pool = None

    async def app(scope, receive, send):
        nonlocal pool
        pool = pool or anyio.CapacityLimiter(_AT_ONCE)
        request = Request(scope, receive)
        try:
            handler, ask = await _understood(registry, request)
            answer = _answer(await anyio.to_thread.run_sync(handler, ask, limiter=pool))
        except Refusal as refusal:
            answer = _answer({"error_code": refusal.code, "message": mask(str(refusal))}, refusal.status)
        except Exception as error:
            log.exception("The schema registry could not answer %s %s", request.method, scope["path"])
            answer = _answer({"error_code": 50001, "message": f"Error in the backend data store: {type(error).__name__}"}, 500)
        await answer(scope, receive, send)

    return app


async def _understood(registry, request):
    """(handler, Ask) of a request."""
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    pieces = [unquote(each) for each in raw.decode("latin-1").split("?")[0].strip("/").split("/")]
    pieces = [] if pieces == [""] else pieces
    context = DEFAULT
    if len(pieces) > 2 and pieces[0] == "contexts":
        context = pieces[1].strip(":") or DEFAULT
        context = context if context.startswith(".") else f".{context}"
        pieces = pieces[2:]
    pattern, methods = _found(pieces)
    method = "GET" if request.method == "HEAD" else request.method
    if pattern is None:
        raise Refusal(404, "HTTP 404 Not Found")
    if method not in methods:
        raise Refusal(405, f"HTTP 405 Method Not Allowed: {', '.join(methods)} may be asked for")
    names = [piece for piece, wanted in zip(pieces, pattern) if wanted is _ANY]
    body = await _body(request) if method in ("POST", "PUT") else None
    return methods[method], Ask(registry, method, names, request.query_params, body, context)


def _found(pieces):
    for pattern, methods in _TABLE.items():
        if len(pattern) == len(pieces) and all(wanted in (_ANY, piece) for wanted, piece in zip(pattern, pieces)):
            return pattern, methods
    return None, {}


async def _body(request):
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _TAKEN:
        raise Refusal(415, "HTTP 415 Unsupported Media Type")
    gathered = bytearray()
    async for piece in request.stream():
        gathered += piece
        if len(gathered) > _MOST_BODY_BYTES:
            raise Refusal(42209, "Schema is too large")
    try:
        return json.loads(gathered.decode())
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"The body is not JSON: {error}") from error


def _answer(found, status=200):
    text = str(found) if isinstance(found, Raw) else json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "surrogatepass"), status, media_type=CONTENT)
