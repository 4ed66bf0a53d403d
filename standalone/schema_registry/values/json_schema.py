"""JSON, validated against a JSON Schema."""

import json

from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

from standalone.errors import DataError, SerializationError
from standalone.schema_registry.rules.json_schema import draft_of


class JsonCodec:
    def __init__(self, text, references):
        raw = json.loads(text)
        others = [(name, Resource.from_contents(json.loads(each), DRAFT7)) for name, each in references.items()]
        self._validator = draft_of(raw)(raw, registry=Registry().with_resources(others))

    def encode(self, value):
        problem = next(self._validator.iter_errors(value), None)
        if problem is not None:
            where = ".".join(map(str, problem.absolute_path))
            raise DataError(f"{f'The field {where!r}' if where else 'The value'} does not fit the schema: {problem.message}.")
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def decode(self, data):
        try:
            return json.loads(data)
        except ValueError as error:
            raise SerializationError(f"The bytes are not JSON: {error}.") from error
