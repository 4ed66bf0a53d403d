"""POST /ui/api/topics/{topic}/send: produce one record from the web page, as text or as JSON of a registered schema."""

import json

from standalone.errors import BadRequestError, DataError
from standalone.rest.resource import Operation, json_answer, resource
from standalone.rest.schemas import asked

WORDS = frozenset("key value text subject version partition offset".split())
_PARTS = ("key", "value")


def routes(worker):
    def produce(request, body):
        topic = request.path_params["topic"]
        worker.log_view().partitions(topic)  # raises for an unknown topic instead of auto-creating it
        if not isinstance(body, dict) or set(body) - set(_PARTS):
            raise BadRequestError('The body must be an object {"key": …, "value": …}, each null or {"text": …, "subject": …, "version": …}.')
        data = {part: _bytes(worker, part, body.get(part)) for part in _PARTS}
        partition, offset = worker.log_writer().write(topic, data["key"], data["value"])
        return json_answer({"partition": partition, "offset": offset}, 201)

    return [resource("/ui/api/topics/{topic}/send", POST=Operation(produce, None, {}, body={}))]


def _bytes(worker, part, said):
    """Return the bytes of {text} or {text, subject, version}; None for null."""
    if said is None:
        return None
    if not isinstance(said, dict) or set(said) - {"text", "subject", "version"} or not isinstance(said.get("text"), str):
        raise BadRequestError(f"'{part}' must be null, or have a 'text' and, with a schema, 'subject' and 'version'.")
    text, subject, version = said["text"], said.get("subject"), said.get("version")
    if subject is None:
        return text.encode("utf-8", "replace")
    if not isinstance(subject, str) or isinstance(version, bool) or not isinstance(version, int):
        raise BadRequestError(f"The 'version' of the {part}'s schema must be a number, and its 'subject' a string.")
    try:
        value = json.loads(text)
    except ValueError as error:
        raise BadRequestError(f"The {part} is not JSON, as a value with a schema must be: {error}.") from error
    from standalone.schema_registry.values import Writer

    client = worker.schemas.client()
    schema = asked(client.version, subject, version)[1]
    try:
        return asked(Writer, client, subject, schema, False).data(value)
    except DataError as error:
        raise BadRequestError(f"The {part} does not fit version {version} of {subject}. {error}") from error
