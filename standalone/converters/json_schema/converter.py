"""JsonSchemaConverter: values as JSON with JSON Schemas in a schema registry."""

import json

import jsonschema
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT7

from standalone import BOOLEAN, LIST, LOW, MEDIUM, STRING, ConfigDef, DataError, Option, SerializationError, case_insensitive_one_of
from standalone.converters import json_decode, json_encode, json_text
from standalone.converters.json_schema.read import JsonSchemaReader
from standalone.converters.json_schema.values import default_json, is_plain, reader_of, writer_of
from standalone.converters.json_schema.write import JsonSchemaWriter
from standalone.converters.json_values import read_schemaless, write_schemaless
from standalone.converters.registry_converter import RegistryConverter
from standalone.converters.registry_options import DATA_OPTIONS, NO_CLASSES, NO_RULES, OPTIONS, VALIDATION_RULES, without_effect
from standalone.schema_registry.framing import head

_DRAFTS = {
    "draft_4": jsonschema.Draft4Validator,
    "draft_6": jsonschema.Draft6Validator,
    "draft_7": jsonschema.Draft7Validator,
    "draft_2019_09": jsonschema.Draft201909Validator,
    "draft_2020_12": jsonschema.Draft202012Validator,
}
_UNUSED = {
    "json.fail.unknown.properties": NO_CLASSES,
    "json.validate.before.domain.rules": NO_RULES,
    "json.write.dates.iso8601": NO_CLASSES,
    "json.schema.scan.packages": NO_CLASSES,
    "json.envelope.detection": NO_CLASSES,
    "json.oneof.for.nullables": NO_CLASSES,
    "json.default.property.inclusion": NO_CLASSES,
    "json.key.type": NO_CLASSES,
    "json.value.type": NO_CLASSES,
    "type.property": NO_CLASSES,
    "json.type.allowed.packages": NO_CLASSES,
    "ignore.modern.dialects": "All dialects are read alike",
    "preserve.additional.properties": "A struct has the fields of its schema",
}
_INCLUSIONS = case_insensitive_one_of("always", "non_null", "non_absent", "non_empty", "non_default", "custom", "use_defaults")
_unused = without_effect(_UNUSED)


def _inclusion(name, value):
    """One of Jackson's, or none."""
    if value is not None:
        _INCLUSIONS(name, value)


class JsonSchemaConverter(RegistryConverter):
    """JSON in the log, prefixed with the id of its JSON Schema in the registry.

    value.converter=io.confluent.connect.json.JsonSchemaConverter
    value.converter.schema.registry.url=http://localhost:8081
    """

    java_name = "io.confluent.connect.json.JsonSchemaConverter"
    kind = "JSON"
    unused = _UNUSED
    config_def = ConfigDef(
        *OPTIONS,
        *DATA_OPTIONS,
        Option("object.additional.properties", BOOLEAN, MEDIUM, "Allow objects to have properties beyond those of their schema.", True),
        Option("use.optional.for.nonrequired", BOOLEAN, MEDIUM, "Read properties that are not required as optional fields.", False),
        _unused("ignore.modern.dialects", BOOLEAN, LOW, False),
        Option(
            *("decimal.format", STRING, LOW, "Write Decimals as base64 of their bytes (BASE64) or as numbers; both are read.", "BASE64"),
            check=case_insensitive_one_of("BASE64", "NUMERIC"),
        ),
        Option("flatten.singleton.unions", BOOLEAN, LOW, "Read a union of one type as that type.", True),
        _unused("preserve.additional.properties", BOOLEAN, MEDIUM, False),
        _unused("json.fail.unknown.properties", BOOLEAN, LOW, True),
        Option("json.fail.invalid.schema", BOOLEAN, MEDIUM, "Validate each value against its JSON Schema, and reject invalid ones.", False),
        _unused("json.validate.before.domain.rules", BOOLEAN, LOW, False),
        _unused("json.write.dates.iso8601", BOOLEAN, MEDIUM, False),
        Option(
            *("json.schema.spec.version", STRING, MEDIUM, "The draft of JSON Schema, if a schema names none.", "draft_7"),
            check=case_insensitive_one_of(*_DRAFTS),
        ),
        _unused("json.schema.scan.packages", LIST, LOW, []),
        _unused("json.envelope.detection", BOOLEAN, LOW, True),
        _unused("json.oneof.for.nullables", BOOLEAN, MEDIUM, True),
        _unused("json.default.property.inclusion", STRING, MEDIUM, None, _inclusion),
        Option("json.indent.output", BOOLEAN, LOW, "Write indented JSON.", False),
        VALIDATION_RULES,
        _unused("json.key.type", STRING, MEDIUM, "java.lang.Object"),
        _unused("json.value.type", STRING, MEDIUM, "java.lang.Object"),
        _unused("type.property", STRING, MEDIUM, "javaType"),
        _unused("json.type.allowed.packages", LIST, MEDIUM, ["*"]),
    )  # fmt: skip

    def configure(self, config):
        super().configure(config)
        self._numeric = config["decimal.format"].upper() == "NUMERIC"
        self._generalized = config["generalized.sum.type.support"]
        self._writer = JsonSchemaWriter(config["object.additional.properties"], self._generalized, default_json(self._numeric))

    # Row form: the reference.
    def from_connect(self, topic, schema, value, headers=None):
        if schema is None and value is None:
            return None
        if value is None and schema.default is None and not schema.optional:
            raise DataError(f"JsonSchemaConverter: null for a required {schema.name or schema.type}.")
        try:
            named, write, validator, _ = self._encoder(topic, schema)
            text = write(value)
            if validator is not None:
                _validate(validator, json.loads(text), "is written")
        except SerializationError as error:
            raise self.unwritable(topic, error) from error
        if self.config["json.indent.output"]:
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        return self.framed(named, text.encode("utf-8", "replace"), headers)

    def to_connect(self, topic, data, headers=None):
        if data is None:
            return None, None
        try:
            mark, _, text = self.unframed(data, headers)
            schema, read, validator, _ = self._decoder(topic, mark)
            node = _parsed(text)
            if validator is not None:
                _validate(validator, json.loads(text), "was read")
            return schema, read(node)
        except (SerializationError, RecursionError) as error:
            raise self.unreadable(topic, error) from error

    # Columnar form: JsonConverter's kernels, where both converters' JSON is the same.
    def column_writer(self, topic, schema):
        named, _, _, plan = self._encoder(topic, schema)
        return named, plan

    def column_reader(self, topic, mark, path):
        schema, _, _, has_columns = self._decoder(topic, mark)
        return (lambda column, before: json_decode.decode_payloads(column, schema, True, before)) if has_columns else None

    # --- Cached schemas ---

    def _encoder(self, topic, schema):
        return self.encoders.of((topic, schema), lambda: self._new_encoder(topic, schema))

    def _decoder(self, topic, mark):
        return self.decoders.of((topic, mark), lambda: self._new_decoder(topic, mark))

    def _new_encoder(self, topic, schema):
        if schema is None:
            fixed = self.fixed_schema(topic)
            if fixed is None:
                raise SerializationError(
                    "A schemaless value has no JSON Schema to register. Give it a schema, or set auto.register.schemas=false with "
                    "use.latest.version=true or use.schema.id."
                )
            return head(fixed[0]), write_schemaless, self._validator(fixed[1], always=True), None
        own = self.registry_schema(self._writer.text(schema))
        mark, registered = self.written_with(topic, own, schema.name)
        ignores_defaults = self.config["ignore.default.for.nullables"]
        write, validator, plan = writer_of(schema, self._numeric, ignores_defaults), self._validator(registered), None
        if validator is None and not self.config["json.indent.output"] and is_plain(schema):
            plan = json_encode.payload_plan(schema, self.before_each(head(mark)), self._numeric, not ignores_defaults)
        return head(mark), write, validator, plan

    def _new_decoder(self, topic, mark):
        registered = self.schema_of(topic, mark)
        document = _json(registered.text)
        version = self.version_of(topic, registered, document.get("title") if isinstance(document, dict) else None)
        if document is True or document == {}:
            return None, read_schemaless, None, False
        reader = JsonSchemaReader(
            _Documents(document, self.references_of(registered)).find,
            lambda each, node: reader_of(each)(_parsed(json.dumps(node).encode())),
            self._generalized,
            self.config["use.optional.for.nonrequired"],
            self.config["flatten.singleton.unions"],
        )
        schema = reader.schema(document, version)
        validator = self._validator(registered)
        return schema, reader_of(schema), validator, validator is None and is_plain(schema)

    def _validator(self, registered, always=False):
        if not always and not self.config["json.fail.invalid.schema"]:
            return None
        document = _json(registered.text)
        known = _Documents(document, self.references_of(registered))
        draft = _DRAFTS[self.config["json.schema.spec.version"].lower()]
        kind = jsonschema.validators.validator_for(document, default=draft) if isinstance(document, dict) else draft
        return kind(document, registry=known.registry())


class _Documents:
    """A JSON Schema and the schemas it references, by name. References inside the latter are made absolute."""

    def __init__(self, document, references):
        self._by_name = {"": document, **{name: _absolute(_json(text), name) for name, text in references.items()}}

    def find(self, reference):
        name, _, pointer = reference.partition("#")
        found = self._by_name.get(name, self._by_name.get(name.rpartition("/")[2]))
        if found is None:
            raise DataError(
                f"The JSON Schema refers to '{reference}', not among its references: {', '.join(filter(None, self._by_name)) or '(none)'}."
            )
        if pointer and not pointer.startswith("/"):
            return _anchored(found, "#" + pointer, reference)
        for part in pointer.split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(part)] if isinstance(found, list) else found[part]
            except (KeyError, IndexError, ValueError, TypeError):
                raise DataError(f"The JSON Schema refers to '{reference}', but there is no '{part}' there.") from None
        return found

    def registry(self):
        resources = [(name, Resource.from_contents(each, default_specification=DRAFT7)) for name, each in self._by_name.items() if name]
        return Registry().with_resources(resources)


def _anchored(node, anchor, reference):
    """Return the schema within a document whose $id is `#name`."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if each.get("$id") == anchor or "#" + str(each.get("$anchor")) == anchor:
                return each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    raise DataError(f"The JSON Schema refers to '{reference}', but no schema there has that $id.")


def _absolute(node, name):
    if isinstance(node, dict):
        return {key: name + each if key == "$ref" and str(each).startswith("#") else _absolute(each, name) for key, each in node.items()}
    return [_absolute(each, name) for each in node] if isinstance(node, list) else node


def _json(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise SerializationError(f"The registered JSON Schema is not JSON: {error}") from error


def _parsed(data):
    try:
        return json_text.parse(data)
    except json_text.JsonError as error:
        raise SerializationError(f"the message is not JSON: {error}") from error


def _validate(validator, node, what):
    error = jsonschema.exceptions.best_match(validator.iter_errors(node))
    if error is not None:
        raise SerializationError(f"What {what} does not match its JSON Schema: at {error.json_path}, {error.message}.")
