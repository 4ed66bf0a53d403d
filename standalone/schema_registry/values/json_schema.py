"""JSON, held to a JSON Schema."""

import json

import jsonschema_rs

from standalone.errors import DataError, SerializationError
from standalone.schema_registry.rules.json_schema import with_draft


class JsonCodec:
    def __init__(self, text, references):
        others = [(name, json.loads(each)) for name, each in references.items()]
        registry = jsonschema_rs.Registry([(name if "://" in name else f"json-schema:///{name}", each) for name, each in others]) if others else None
        self._validator = jsonschema_rs.validator_for(with_draft(json.loads(text)), **({"registry": registry} if registry else {}))

    def encode(self, value):
        problem = next(self._validator.iter_errors(value), None)
        if problem is not None:
            where = ".".join(map(str, problem.instance_path))
            raise DataError(f"{f'The field {where!r}' if where else 'The value'} does not fit the schema: {problem.message}.")
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def decode(self, data):
        try:
            return json.loads(data)
        except ValueError as error:
            raise SerializationError(f"The bytes are no JSON: {error}.") from error
