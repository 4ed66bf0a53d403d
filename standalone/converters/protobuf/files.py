"""Parse a .proto file into descriptors: its messages by index, and the confluent.field_meta of their fields."""

from google.protobuf import descriptor_pool, message_factory

from standalone import DataError
from standalone.converters.protobuf.names import GOOGLE_TYPES, META_FILE
from standalone.schema_registry.proto_files import MAIN, compile_proto


class ProtoFile:
    def __init__(self, text, references=None):
        files = compile_proto(text, {**GOOGLE_TYPES, **(references or {})})
        pool = descriptor_pool.DescriptorPool()
        for each in _imports_first(files):
            pool.Add(each)
        self.file = pool.FindFileByName(files[MAIN].name)
        if not self.file.message_types_by_name:
            raise DataError("The Protobuf schema has no message.")
        self.messages = [self.file.message_types_by_name[each.name] for each in files[MAIN].message_type]
        self._meta = self._options = None
        if META_FILE in files:
            self._meta = pool.FindExtensionByName("confluent.field_meta")
            self._options = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions"))
            message_factory.GetMessageClassesForFiles([META_FILE], pool)

    def message(self, path):
        """Return the message descriptor at that index path in the file."""
        try:
            found = self.messages[path[0]]
            for number in path[1:]:
                found = found.nested_types[number]
        except IndexError:
            raise DataError(f"The message indexes {list(path)} do not exist in the Protobuf schema of {len(self.messages)} messages.") from None
        return found

    def class_of(self, descriptor):
        return message_factory.GetMessageClass(descriptor)

    def params_of(self, field):
        """Return the params of a field's confluent.field_meta."""
        if self._meta is None or not field.has_options:
            return {}
        options = self._options.FromString(field.GetOptions().SerializeToString())
        return dict(options.Extensions[self._meta].params)


def _imports_first(files):
    """Order the files so that each follows its imports."""
    done = {}

    def add(name):
        if name not in done and name in files:
            for each in files[name].dependency:
                add(each)
            done[name] = files[name]

    for name in files:
        add(name)
    return done.values()
