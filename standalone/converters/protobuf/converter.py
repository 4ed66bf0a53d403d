"""ProtobufConverter: values as Protobuf messages with .proto files in a schema registry."""

from typing import Callable, NamedTuple

from google.protobuf.message import DecodeError, EncodeError

from standalone import BOOLEAN, LOW, MEDIUM, STRING, ConfigDef, DataError, Option, Schema, SerializationError
from standalone.converters.protobuf.decode import Decoding
from standalone.converters.protobuf.encode import Encoding
from standalone.converters.protobuf.files import ProtoFile
from standalone.converters.protobuf.read_schema import ProtobufReader
from standalone.converters.protobuf.values import reader_of, writer_of
from standalone.converters.protobuf.write_schema import ProtobufOptions, proto_text
from standalone.converters.registry_converter import RegistryConverter
from standalone.converters.registry_options import DATA_OPTIONS, NO_CLASSES, OPTIONS, VALIDATION_RULES, without_effect
from standalone.schema_registry.framing import head, index_bytes

_NO_REFERENCES = "A schema that is registered imports known types only, which need no reference"
_UNUSED = {
    "reference.lookup.only": _NO_REFERENCES,
    "skip.known.types": _NO_REFERENCES,
    "reference.subject.name.strategy": _NO_REFERENCES,
    "specific.protobuf.key.type": NO_CLASSES,
    "specific.protobuf.value.type": NO_CLASSES,
    "derive.type": NO_CLASSES,
}
_unused = without_effect(_UNUSED)


class ProtobufConverter(RegistryConverter):
    """Protobuf in the log, prefixed with the id of its .proto file in the registry and the message's index in that file.

    value.converter=io.confluent.connect.protobuf.ProtobufConverter
    value.converter.schema.registry.url=http://localhost:8081
    """

    java_name = "io.confluent.connect.protobuf.ProtobufConverter"
    kind = "PROTOBUF"
    names_messages = True
    unused = _UNUSED
    config_def = ConfigDef(
        *OPTIONS,
        *DATA_OPTIONS,
        Option("enhanced.protobuf.schema.support", BOOLEAN, MEDIUM, "Keep the packages of messages and enums in the names of schemas.", False),
        Option("scrub.invalid.names", BOOLEAN, MEDIUM, "Replace characters in names that Protobuf does not allow by _.", False),
        Option("int.for.enums", BOOLEAN, MEDIUM, "Read enums as numbers, not as the names of their symbols.", False),
        Option("optional.for.nullables", BOOLEAN, MEDIUM, "Optional fields are those marked `optional`.", False),
        Option("optional.for.proto2", BOOLEAN, MEDIUM, "In proto2 too, an unset field marked `optional` is a null.", True),
        Option("wrapper.for.nullables", BOOLEAN, MEDIUM, "Optional primitives are wrappers, such as google.protobuf.StringValue.", False),
        Option("wrapper.for.raw.primitives", BOOLEAN, MEDIUM, "Read a wrapper message as its value.", True),
        Option("generate.struct.for.nulls", BOOLEAN, MEDIUM, "Read a missing message as a struct of defaults.", False),
        Option("generate.index.for.unions", BOOLEAN, LOW, "Append the number of a oneof to its name, as in kind_0.", True),
        Option("flatten.unions", BOOLEAN, LOW, "Read the fields of a oneof as fields of its message.", False),
        _unused("reference.lookup.only", BOOLEAN, MEDIUM, False),
        _unused("skip.known.types", BOOLEAN, LOW, True),
        _unused("reference.subject.name.strategy", STRING, LOW, "io.confluent.kafka.serializers.subject.DefaultReferenceSubjectNameStrategy"),
        VALIDATION_RULES,
        _unused("specific.protobuf.key.type", STRING, MEDIUM, "java.lang.Object"),
        _unused("specific.protobuf.value.type", STRING, MEDIUM, "java.lang.Object"),
        _unused("derive.type", BOOLEAN, MEDIUM, False),
    )  # fmt: skip

    def configure(self, config):
        super().configure(config)
        self._options = ProtobufOptions(config)

    # Row form: the reference.
    def from_connect(self, topic, schema, value, headers=None):
        if value is None and (schema is None or schema.optional):
            return None
        if value is None:
            raise DataError(f"ProtobufConverter: null for a required {schema.name or schema.type}.")
        try:
            encoder = self._encoder(topic, schema)
            message = encoder.make()
            encoder.write(value, message)
            return self.framed(encoder.head, message.SerializeToString(deterministic=True), headers)
        except (SerializationError, EncodeError) as error:
            raise self.unwritable(topic, error) from error
        except (TypeError, ValueError) as error:
            raise DataError(f"ProtobufConverter: the value does not fit its Protobuf message: {error}.") from error

    def to_connect(self, topic, data, headers=None):
        if data is None:
            return None, None
        try:
            mark, path, message = self.unframed(data, headers)
            decoder = self._decoder(topic, mark, path)
            return decoder.schema, decoder.read(decoder.parse(message))
        except (SerializationError, DecodeError) as error:
            raise self.unreadable(topic, error) from error

    # Columnar form: kernels read or write the bytes of a whole batch.
    def column_writer(self, topic, schema):
        if schema is None:
            return None, None
        encoder = self._encoder(topic, schema)
        return encoder.head, encoder.columns

    def column_reader(self, topic, mark, path):
        columns = self._decoder(topic, mark, path).columns
        return columns and columns.decode

    # --- Cached schemas ---

    def _encoder(self, topic, schema):
        return self.encoders.of((topic, schema), lambda: self._new_encoder(topic, schema))

    def _new_encoder(self, topic, schema):
        if schema is None:
            raise SerializationError("A value without a schema is not a Protobuf message. Give it one, or use another converter.")
        text, path = proto_text(schema, self._options)
        own = self.registry_schema(text)
        file = ProtoFile(text)
        descriptor = file.message(path)
        mark, registered = self.written_with(topic, own, descriptor.full_name)
        if registered != own:
            file = ProtoFile(registered.text, self.references_of(registered))
            named = [at for at, each in enumerate(file.messages) if each.name == descriptor.name]
            path = [named[0]] if named else [0]
            descriptor = file.message(path)
        named = head(mark) + index_bytes(path)
        columns = Encoding.of(schema, descriptor, self._options, self.before_each(named))
        return _Encoder(named, file.class_of(descriptor), writer_of(schema, descriptor, self._options), columns)

    def _decoder(self, topic, mark, path):
        return self.decoders.of((topic, mark, tuple(path)), lambda: self._new_decoder(topic, mark, path))

    def _new_decoder(self, topic, mark, path):
        registered = self.schema_of(topic, mark)
        file = ProtoFile(registered.text, self.references_of(registered))
        descriptor = file.message(path)
        version = self.version_of(topic, registered, descriptor.full_name)
        schema = ProtobufReader(file.params_of, self._options).of(descriptor, version)
        read, columns = reader_of(schema, descriptor, self._options), Decoding.of(schema, descriptor, self._options)
        return _Decoder(schema, file.class_of(descriptor).FromString, read, columns)


class _Encoder(NamedTuple):
    head: bytes
    make: Callable
    write: Callable
    columns: Encoding | None


class _Decoder(NamedTuple):
    schema: Schema
    parse: Callable
    read: Callable
    columns: Decoding | None
