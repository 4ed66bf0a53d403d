"""JsonConverter: values as JSON, with or without a schema envelope."""

from standalone import (
    BOOLEAN,
    HIGH,
    INT,
    LOW,
    STRING,
    ByteColumn,
    ConfigDef,
    Converter,
    DataError,
    HeaderConverter,
    Option,
    SerializationError,
    case_insensitive_one_of,
)
from standalone.converters import json_decode, json_encode, json_quick, json_text
from standalone.converters.json_envelope import read_schema, write_schema
from standalone.converters.json_values import MISSING, Inexact, read_schemaless, reader_of, write_schemaless, writer_of
from standalone.converters.part import PART
from standalone.data.column import shape_of


class JsonConverter(Converter, HeaderConverter):
    """JSON in the log. With `schemas.enable` each message is an object with the fields "schema" and "payload"; without, it is the payload
    only, and values are read without a schema: objects become maps, integers int64, other numbers float64.

    {"schema":{"type":"string","optional":false},"payload":"foo"}
    """

    java_name = "org.apache.kafka.connect.json.JsonConverter"
    config_def = ConfigDef(
        PART,
        Option(
            "schemas.enable",
            BOOLEAN,
            HIGH,
            "Include the schema in each message.",
            default=True,
            group="Schemas",
            order=0,
            width="MEDIUM",
            display="Enable Schemas",
        ),
        Option(
            "schemas.cache.size",
            INT,
            HIGH,
            "How many schemas are cached.",
            default=1000,
            group="Schemas",
            order=1,
            width="MEDIUM",
            display="Schema Cache Size",
        ),
        Option(
            "schema.content",
            STRING,
            HIGH,
            "The schema of all messages as JSON: messages then hold only the payload, although schemas.enable is true.",
            default=None,
            group="Schemas",
            order=2,
            width="MEDIUM",
            display="Schema Content",
        ),
        Option(
            "decimal.format",
            STRING,
            LOW,
            "Write Decimals as base64 of their bytes (BASE64) or as numbers (NUMERIC); both are read.",
            default="BASE64",
            check=case_insensitive_one_of("BASE64", "NUMERIC"),
            group="Serialization",
            order=0,
            width="MEDIUM",
            display="Decimal Format",
        ),
        Option(
            "replace.null.with.default",
            BOOLEAN,
            LOW,
            "Replace a null by the schema's default.",
            default=True,
            group="Serialization",
            order=1,
            width="MEDIUM",
            display="Replace null with default",
        ),
    )

    def configure(self, config):
        self.has_envelope = config["schemas.enable"]
        self.numeric_decimals = config["decimal.format"].upper() == "NUMERIC"
        self.fills_defaults = config["replace.null.with.default"]
        self._most = max(1, config["schemas.cache.size"])
        self._writers = {}  # schema -> (text before the payload, payload writer)
        self._last_writer = None, None  # (schema, its entry in _writers): a batch has one
        self._readers = {}  # JSON schema text -> (schema, payload reader)
        self._columns = {}  # schema, or ("shape", shape) -> json_encode.Plan, or None without a columnar form
        self._prefix = None  # the last envelope's text before its payload
        self._shapes = json_decode.Shapes()
        self._fixed = None
        if content := config["schema.content"]:
            self._fixed = self._reader_of(_parsed(content.encode(), "schema.content"))

    # Row form: the reference.
    def from_connect(self, topic, schema, value):
        if schema is None:
            if value is None:
                return None
            text = write_schemaless(value)
            return (f'{{"schema":null,"payload":{text}}}' if self.has_envelope else text).encode()
        opening, write = self._writer_of(schema)
        return f"{opening}{write(value)}}}".encode() if self.has_envelope else write(value).encode()

    def to_connect(self, topic, data):
        if data is None:
            return None, None
        try:
            return self._read(data)
        except RecursionError:
            raise DataError("JsonConverter cannot read the message: it is nested too deep for Python's stack.") from None

    def _read(self, data):
        if not self.has_envelope:
            try:
                return None, json_quick.read(data)
            except ValueError:
                return None, read_schemaless(_parsed(data))
        if self._fixed is not None:
            schema, read = self._fixed
            return schema, _read_quickly(read, data) or read(_parsed(data))
        if self._prefix is not None:
            opening, schema, read = self._prefix
            if data.startswith(opening):
                if data.endswith(b"}") and (value := _read_quickly(read, data[len(opening) : -1])) is not None:
                    return schema, value
                if (node := _payload_after(opening, data)) is not MISSING:
                    return schema, read(node)
        return self._read_envelope(data)

    def _read_envelope(self, data):
        node = _parsed(data)
        if not isinstance(node, dict) or len(node) != 2 or "schema" not in node or "payload" not in node:
            raise DataError(
                "JsonConverter with schemas.enable=true requires objects with exactly the fields 'schema' and 'payload'; found "
                f"{_kind(node)}. For plain JSON set schemas.enable=false."
            )
        schema, read = self._reader_of(node["schema"])
        opening = json_decode.opening_of(bytes(data))
        self._prefix = opening and (opening, schema, read)
        return schema, read(node["payload"])

    def from_header(self, topic, name, schema, value):
        return self.from_connect(topic, schema, value)

    def to_header(self, topic, name, data):
        return self.to_connect(topic, data)

    # Columnar form: kernels between JSON bytes and Arrow.
    def encode(self, topic, schema, column, count):
        if schema is None:
            return self._encode_shaped(column, shape, count) if (shape := shape_of(column)) is not None else None
        if column is None:
            return self._encode_nulls(topic, schema, count)
        if schema not in self._columns:
            opening = self._writer_of(schema)[0] if self.has_envelope else None
            _keep(self._columns, schema, json_encode.plan(schema, opening, self.numeric_decimals, self.fills_defaults), self._most)
        return self._columns[schema].encode(column, count)

    def _encode_nulls(self, topic, schema, count):
        try:
            return ByteColumn.repeat(self.from_connect(topic, schema, None), count), None
        except DataError:
            return None

    def _encode_shaped(self, column, shape, count):
        key = ("shape", shape)
        if key not in self._columns:
            opening = '{"schema":null,"payload":' if self.has_envelope else None
            _keep(self._columns, key, json_encode.shape_plan(shape, opening), self._most)
        plan = self._columns[key]
        return plan and plan.encode(column.column, count)

    def decode(self, topic, column):
        if not self.has_envelope:
            return self._shapes.decode(column)
        if self._fixed is not None:
            return json_decode.decode_payloads(column, self._fixed[0], self.fills_defaults)
        return json_decode.decode_envelopes(column, lambda node: self._reader_of(node)[0], self.fills_defaults)

    # --- Cached schemas -----------------------------------------------------------------------------------------

    def _writer_of(self, schema):
        last, known = self._last_writer
        if schema is last:
            return known
        known = self._writers.get(schema)
        if known is None:
            text = write_schema(schema, lambda each: writer_of(each, self.numeric_decimals, self.fills_defaults)(each.default))
            writer = writer_of(schema, self.numeric_decimals, self.fills_defaults)
            known = _keep(self._writers, schema, (f'{{"schema":{text},"payload":', writer), self._most)
        self._last_writer = schema, known
        return known

    def _reader_of(self, node):
        """Return (schema, payload reader) for a parsed JSON schema."""
        key = repr(node)
        known = self._readers.get(key)
        if known is None:
            schema = read_schema(node, lambda schema, default: reader_of(schema, self.fills_defaults)(default))
            known = _keep(self._readers, key, (schema, reader_of(schema, self.fills_defaults)), self._most)
        return known


def _keep(cache, key, value, most):
    if len(cache) >= most:
        cache.pop(next(iter(cache)))
    cache[key] = value
    return value


def _parsed(data, what="the message"):
    try:
        return json_text.parse(data)
    except json_text.JsonError as error:
        # The same chain of causes as in a stack trace of Java's worker.
        unread = SerializationError(f"{what} is not JSON: {error}")
        unread.__cause__ = error
        raise DataError(f"JsonConverter cannot read {what}: {error}") from unread


def _read_quickly(read, data):
    """Return an object or array decoded fast; None if the exact value or error requires the slow reader."""
    try:
        return read(json_quick.read(data))
    except (ValueError, DataError, Inexact):
        return None


def _payload_after(opening, data):
    """Return the payload of an envelope that begins with these bytes, or MISSING if the slow reader is needed."""
    try:
        text = str(data, "utf-8")
        start = len(str(opening, "utf-8"))
        node, end = json_text.read_value(text, start)
    except (ValueError, RecursionError):
        return MISSING
    return node if text[end : end + 1] == "}" else MISSING


def _kind(node):
    if isinstance(node, dict):
        return f"an object with the fields {', '.join(map(repr, list(node)[:5])) or '(none)'}"
    return "nothing" if node is MISSING else f"a {type(node).__name__}"
