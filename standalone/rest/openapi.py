"""The OpenAPI document, generated from the table of routes."""

import re

from standalone import __version__
from standalone.rest.resource import JSON, Resource
from standalone.rest.shapes import ALL, PROBLEM

_PARAMETER = re.compile(r"\{(\w+)\}")
_PARAMETERS = {
    "name": {"description": "Name of the connector, plugin or logger.", "schema": {"type": "string", "minLength": 1}},
    "query": {"description": "Name of the query.", "schema": {"type": "string", "minLength": 1}},
    "cursor": {"description": "The cursor's id, as returned by POST /sql.", "schema": {"type": "string", "minLength": 1}},
    "task": {"description": "Number of the task, from 0.", "schema": {"type": "integer", "minimum": 0}},
}
_WHY = {
    200: "Done", 201: "Created", 202: "Accepted, in progress", 204: "Done, without content",
    400: "The request cannot be understood, or the configuration is wrong", 401: "Credentials are missing or wrong",
    403: "The worker's configuration forbids it", 404: "Not found", 405: "The path does not support this method",
    406: "None of the accepted media types is available", 409: "The name is in use, or the operation is not possible now",
    413: "The body is too large", 415: "The body is not application/json", 500: "The worker cannot do its work",
    503: "The worker is still starting",
}  # fmt: skip
_ABOUT = """The REST API of Kafka Connect's standalone worker.

Not JSON, and so not described here: `/metrics` (text for Prometheus, GET) and, unless `rest.ui.enable=false`, the web page at `/ui`."""


def document(routes, secured=False):
    """Return the OpenAPI document of the routes that are `resource`s. `secured`: an extension requires authentication."""
    paths = {}
    for route in routes:
        found = getattr(route, "endpoint", None) or getattr(route, "app", None)
        if isinstance(found, Resource):
            operations = {method.lower(): _operation(found.path, method, each, secured) for method, each in found.operations.items() if each.summary}
            if operations:
                paths[found.path] = operations
    components = {"schemas": {name: shape.schema for name, shape in ALL.items()}}
    if secured:
        components["securitySchemes"] = {"basic": {"type": "http", "scheme": "basic"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "connect-standalone",
            "version": __version__,
            "description": _ABOUT,
        },
        "paths": paths,
        "components": components,
        **({"security": [{"basic": []}]} if secured else {}),
    }


def _operation(path, method, operation, secured):
    answers = {status: _answer(status, operation.media, shape) for status, shape in operation.answers.items()}
    answers |= {status: _answer(status, JSON, PROBLEM) for status in _problems(path, operation, secured) if status not in answers}
    if _PARAMETER.search(path):
        # An encoded slash or percent sign is rejected before routing.
        answers[400]["content"] = {**answers[400].get("content", {}), "text/plain": {"schema": {"type": "string"}}}
    parameters = [{"name": name, "in": "path", "required": True, **_PARAMETERS[name]} for name in _PARAMETER.findall(path)]
    parameters += [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in operation.query.items()]
    said = {"operationId": f"{method.lower()}{_camel(path)}", "summary": operation.summary, "tags": [path.split("/")[1] or "worker"]}
    if parameters:
        said["parameters"] = parameters
    if operation.body is not None:
        said["requestBody"] = {"required": True, "content": {JSON: {"schema": operation.body.ref}}}
    return {**said, "responses": {str(status): answers[status] for status in sorted(answers)}}


def _problems(path, operation, secured):
    """Return the error statuses that any such request may get, and those in the table."""
    found = {406, *operation.problems}
    if _PARAMETER.search(path):
        found |= {400, 404}
    if operation.body is not None:
        found |= {400, 413, 415}
    if secured:
        found.add(401)
    return sorted(found)


def _answer(status, media, shape):
    said = {"description": _WHY[status]}
    if shape is not None:
        said["content"] = {media: {"schema": shape.ref if media == JSON else {"type": "string"}}}
    return said


def _camel(path):
    return "".join(part.strip("{}").title().replace("-", "").replace(".", "") for part in path.split("/")) or "Root"
