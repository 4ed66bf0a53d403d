"""Protobuf's own JSON."""

from google.protobuf import descriptor_pool, json_format, message_factory
from google.protobuf.message import DecodeError

from standalone.errors import DataError, SerializationError
from standalone.schema_registry.proto_files import MAIN, compile_proto


class ProtobufCodec:
    """Values are of the file's first message, unless the bytes name another one."""

    def __init__(self, text, references):
        files = compile_proto(text, references)
        self._file = files[MAIN]
        pool = descriptor_pool.DescriptorPool()
        for name in _in_order(files):
            pool.Add(files[name])
        self._pool = pool
        if not self._file.message_type:
            raise DataError("The Protobuf schema has no message.")

    def encode(self, value):
        message = self._message([0])
        try:
            return json_format.ParseDict(value, message).SerializeToString()
        except (json_format.ParseError, TypeError, ValueError, AttributeError) as error:
            said = " ".join(str(error).split()).rstrip(".")
            raise DataError(f"The value does not fit the message {message.DESCRIPTOR.full_name}: {said}.") from error

    def decode(self, data, indexes=(0,)):
        message = self._message(indexes)
        try:
            message.ParseFromString(data)
        except DecodeError as error:
            raise SerializationError(f"The bytes are not of the message {message.DESCRIPTOR.full_name}: {error}.") from error
        return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=self._pool)

    def _message(self, indexes):
        at, names = self._file.message_type, [self._file.package] if self._file.package else []
        for index in indexes:
            if index >= len(at):
                raise SerializationError(f"The schema has no message {list(indexes)}.")
            names.append(at[index].name)
            at = at[index].nested_type
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(".".join(names)))()


def _in_order(files):
    """File names, imports first."""
    found = []

    def add(name):
        for imported in files[name].dependency:
            if imported not in found:
                add(imported)
        if name not in found:
            found.append(name)

    add(MAIN)
    return found
