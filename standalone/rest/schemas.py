"""/ui/api/schemas: the schema registry of the worker's converters, for the web page and connectctl; and decoding of records.

A subject may contain a slash, which paths here may not, so it is a query parameter.
"""

import json

from standalone.errors import BadRequestError, ConnectError, NotFoundError, RegistryError
from standalone.rest.resource import json_answer, resource
from standalone.schema_registry.framing import KEY_HEADER, VALUE_HEADER, is_framed, mark_in, take_mark

WORDS = frozenset(
    "compatibility id kind latest line lines mark newer older references schema subject url version versions AVRO JSON PROTOBUF".split()
)


def routes(worker):
    def registry(request):
        return json_answer({"url": worker.schemas.url()})

    def subjects(request):
        client = worker.schemas.client()
        return json_answer([_subject(client, subject) for subject in asked(client.subjects, ":*:")])

    def versions(request):
        from standalone.schema_registry.shown import versions_of

        client, subject = worker.schemas.client(), _subject_of(request)
        level = asked(client.compatibility, subject)
        return json_answer({"subject": subject, "compatibility": level, "versions": asked(versions_of, client, subject)})

    def diff(request):
        from standalone.schema_registry.shown import differences

        client, subject = worker.schemas.client(), _subject_of(request)
        older, newer = (asked(client.version, subject, _number(request, name))[1] for name in ("older", "newer"))
        lines = [{"mark": mark, "text": line} for mark, line in differences(older, newer, context=1000)]
        return json_answer({"subject": subject, "lines": lines})

    return [
        resource("/ui/api/schemas", GET=subjects),
        resource("/ui/api/schemas/registry", GET=registry),
        resource("/ui/api/schemas/versions", GET=versions),
        resource("/ui/api/schemas/diff", GET=diff),
    ]


def _subject(client, subject):
    version, id, schema = asked(client.latest, subject)
    return {"subject": subject, "latest": version, "id": id, "kind": schema.kind}


def asked(method, *arguments):
    """Call the registry; what it does not find is also 404 here."""
    try:
        return method(*arguments)
    except RegistryError as error:
        if error.status == 404:
            raise NotFoundError(str(error)) from error
        raise ConnectError(str(error)) from error


def _subject_of(request):
    subject = request.query_params.get("subject", "")
    if not subject:
        raise BadRequestError("The query parameter 'subject' is missing.")
    return subject


def _number(request, name):
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 10):
        raise BadRequestError(f"'{name}' must be the number of a version, not '{text}'.")
    return int(text)


class Decoded:
    """Decodes the keys and values of one response to JSON if the worker's registry knows their schema. An unreachable registry is asked once."""

    def __init__(self, worker):
        self._worker, self._reader, self._gave_up = worker, None, False
        self._strange = set()  # ids and GUIDs unknown to the registry: bytes that only resemble a prefix

    def shown(self, data, headers=(), is_key=False):
        """Return {text, encoding, bytes, cut, schema: its id or GUID}; None to show it as bytes."""
        header = KEY_HEADER if is_key else VALUE_HEADER
        named = data if data is None else mark_in(headers, header) or data
        if self._gave_up or not is_framed(named) or (mark := take_mark(named)[0]) in self._strange:
            return None
        try:
            if self._reader is None:
                from standalone.schema_registry.values import Reader

                self._reader = Reader(self._worker.schemas.client())
            text = json.dumps(self._reader.value(data, None, headers, header), ensure_ascii=False)
        except RegistryError as error:
            self._gave_up = error.status != 404
            self._strange.add(mark)
            return None
        except NotFoundError:
            self._gave_up = True
            return None
        except (ConnectError, ValueError):
            return None
        return {"text": text, "encoding": "utf-8", "bytes": len(data), "cut": False, "schema": mark if isinstance(mark, int) else str(mark)}
