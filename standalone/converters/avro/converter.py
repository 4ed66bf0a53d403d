"""AvroConverter: values as Avro, their schemas in a schema registry."""

import io
import json

from standalone import BOOLEAN, LOW, MEDIUM, STRING, ConfigDef, Option, SerializationError
from standalone.converters.avro import anything, names, tree
from standalone.converters.avro.binary import Binary
from standalone.converters.avro.decode import Decoding
from standalone.converters.avro.encode import Encoding
from standalone.converters.avro.read import reader_of
from standalone.converters.avro.read_schema import connect_schema
from standalone.converters.avro.write import writer_of
from standalone.converters.avro.write_bare import bare_writer_of
from standalone.converters.avro.write_schema import SchemaOptions, avro_text
from standalone.converters.registry_converter import RegistryConverter
from standalone.converters.registry_options import DATA_OPTIONS, NO_CLASSES, OPTIONS, VALIDATION_RULES
from standalone.schema_registry.framing import head


class AvroConverter(RegistryConverter):
    """Avro in the log, prefixed with the schema's id in the registry. A null becomes a null.

    value.converter=io.confluent.connect.avro.AvroConverter
    value.converter.schema.registry.url=http://localhost:8081
    """

    java_name = "io.confluent.connect.avro.AvroConverter"
    kind = "AVRO"
    unused = {
        "avro.reflection.allow.null": NO_CLASSES,
        "avro.use.logical.type.converters": NO_CLASSES,
        "specific.avro.reader": NO_CLASSES,
        "specific.avro.key.type": NO_CLASSES,
        "specific.avro.value.type": NO_CLASSES,
    }
    config_def = ConfigDef(
        *OPTIONS,
        *DATA_OPTIONS,
        Option("enhanced.avro.schema.support", BOOLEAN, MEDIUM, "Keep enums as enums, and the namespaces of a union's members.", False),
        Option("scrub.invalid.names", BOOLEAN, MEDIUM, "Replace characters in names that Avro does not allow by _.", False),
        Option("connect.meta.data", BOOLEAN, LOW, "Add properties to the Avro schema that Avro lacks: connect.name, connect.version and more.", True),
        Option("discard.type.doc.default", BOOLEAN, LOW, "Drop docs and defaults of Avro types; for compatibility with old topics.", False),
        Option("allow.optional.map.keys", BOOLEAN, LOW, "Write maps with optional string keys as Avro maps.", False),
        Option("flatten.singleton.unions", BOOLEAN, LOW, "Read a union of one type as that type.", True),
        Option("avro.reflection.allow.null", BOOLEAN, MEDIUM, f"Has no effect. {NO_CLASSES}.", False),
        Option("avro.use.logical.type.converters", BOOLEAN, MEDIUM, f"Has no effect. {NO_CLASSES}.", False),
        Option("avro.remove.java.properties", BOOLEAN, MEDIUM, 'Remove avro.java.string from schemas.', False),
        VALIDATION_RULES,
        Option("specific.avro.reader", BOOLEAN, LOW, f"Has no effect. {NO_CLASSES}.", False),
        Option("specific.avro.key.type", STRING, MEDIUM, f"Has no effect. {NO_CLASSES}.", None),
        Option("specific.avro.value.type", STRING, MEDIUM, f"Has no effect. {NO_CLASSES}.", None),
        Option("avro.fail.on.trailing.data", BOOLEAN, LOW, "Reject messages with bytes after the value.", False),
    )  # fmt: skip

    def configure(self, config):
        super().configure(config)
        self._options = SchemaOptions(config)

    # Row form: the reference.
    def from_connect(self, topic, schema, value, headers=None):
        if value is None and (schema is None or schema.optional):
            return None
        try:
            encoder = self._encoder(topic, schema)
            return self.framed(encoder.head, encoder.write(value), headers)
        except SerializationError as error:
            raise self.unwritable(topic, error) from error

    def to_connect(self, topic, data, headers=None):
        if data is None:
            return None, None
        try:
            mark, _, value = self.unframed(data, headers)
            decoder = self._decoder(topic, mark)
            return decoder.schema, decoder.read(value)
        except SerializationError as error:
            raise self.unreadable(topic, error) from error

    # Columnar form: one kernel reads or writes the bytes of a whole batch.
    def column_writer(self, topic, schema):
        encoder = self._encoder(topic, schema)
        return encoder.head, encoder.columns

    def column_reader(self, topic, mark, path):
        columns = self._decoder(topic, mark).columns
        return columns and columns.decode

    # --- Cached schemas ---

    def _encoder(self, topic, schema):
        return self.encoders.of((topic, schema), lambda: self._new_encoder(topic, schema))

    def _new_encoder(self, topic, schema):
        if schema is None and (fixed := self.fixed_schema(topic)):
            mark, registered = fixed
            node = self._parsed(registered)
            if node is not None:
                binary = Binary(node)
                return _Encoder(mark, binary, bare_writer_of(node, binary.name_in_union))
        text = names.ANYTHING_SCHEMA if schema is None else avro_text(schema, self._options)
        if self.config["avro.remove.java.properties"]:
            text = _without_java_properties(text)
        own = self.registry_schema(text)
        node = None if schema is None else tree.parse(text)
        record = names.ANYTHING if node is None else node.name if node.type == "record" else None
        mark, registered = self.written_with(topic, own, record)
        if node is None:
            return _Encoder(mark, Binary.anything(), anything.write)
        is_own = registered == own
        if not is_own and (node := self._parsed(registered)) is None:
            raise SerializationError("The registered schema is for schemaless values, but the value has a schema.")
        binary = Binary(node)
        columns = Encoding.of(schema, node, self._options, self.before_each(head(mark))) if is_own else None
        return _Encoder(mark, binary, writer_of(schema, node, self._options, binary.name_in_union), columns)

    def _decoder(self, topic, mark):
        return self.decoders.of((topic, mark), lambda: self._new_decoder(topic, mark))

    def _new_decoder(self, topic, mark):
        registered = self.schema_of(topic, mark)
        node = self._parsed(registered)
        fails_on_rest = self.config["avro.fail.on.trailing.data"]
        if node is None:
            return _Decoder(None, Binary.anything(fails_on_rest), anything.read)
        version = self.version_of(topic, registered, node.name if node.type == "record" else None)
        schema = connect_schema(node, self._options, version)
        columns = Decoding.of(schema, node, fails_on_rest)
        return _Decoder(schema, Binary(node, fails_on_rest), reader_of(schema, node), columns)

    def _parsed(self, registered):
        """The Node of a registered schema; None for the schema of schemaless values."""
        text = registered.text
        if f'"{names.ANYTHING.rpartition(".")[2]}"' in text or names.ANYTHING in text:
            said = json.loads(text)
            if isinstance(said, dict) and names.ANYTHING in (said.get("name"), f"{said.get('namespace')}.{said.get('name')}"):
                return None
        return tree.parse(text, self.references_of(registered).values())


class _Encoder:
    def __init__(self, mark, binary, write, columns=None):
        self.head = head(mark)
        self._binary, self._write, self.columns = binary, write, columns

    def write(self, value):
        datum = self._write(value)
        out = io.BytesIO()
        self._binary.write(out, datum)
        return out.getvalue()


class _Decoder:
    def __init__(self, schema, binary, read, columns=None):
        self.schema = schema
        self._binary, self._read, self.columns = binary, read, columns

    def read(self, data):
        datum = self._binary.read(data)
        return datum if self._read is None else self._read(datum)


def _without_java_properties(text):
    def cleaned(said):
        if isinstance(said, dict):
            return {key: cleaned(each) for key, each in said.items() if key != "avro.java.string"}
        return [cleaned(each) for each in said] if isinstance(said, list) else said

    return json.dumps(cleaned(json.loads(text)), separators=(",", ":"), ensure_ascii=False)
