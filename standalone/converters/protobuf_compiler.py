"""The text of a .proto file as descriptors, by protoc itself, which runs as a process of its own: it writes what is wrong to its stderr."""

import importlib.resources
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.type import date_pb2

from standalone import DataError
from standalone.converters.protobuf_names import META_FILE

_MAIN = "schema.proto"  # the name of the file that a schema's text stands in; no other file knows it
_OWN = pathlib.Path(__file__).parent / "proto"
_SECONDS = 60


class ProtoFile:
    """A compiled schema: its messages, and what confluent.field_meta says of their fields."""

    def __init__(self, text, references=None):
        files = descriptor_pb2.FileDescriptorSet.FromString(_compiled(text, references or {}))
        pool = descriptor_pool.DescriptorPool()
        for each in files.file:
            pool.Add(each)
        self._pool = pool
        self.file = pool.FindFileByName(_MAIN)
        if not self.file.message_types_by_name:
            raise DataError("The Protobuf schema has no message.")
        self.messages = [self.file.message_types_by_name[each.name] for each in files.file[-1].message_type]
        self._meta = self._options = None
        if any(each.name == META_FILE for each in files.file):
            self._meta = pool.FindExtensionByName("confluent.field_meta")
            self._options = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions"))
            message_factory.GetMessageClassesForFiles([META_FILE], pool)

    def message(self, path):
        """The descriptor of the message at that place in the file."""
        try:
            found = self.messages[path[0]]
            for number in path[1:]:
                found = found.nested_types[number]
        except IndexError:
            raise DataError(f"The message indexes {list(path)} name no message of the Protobuf schema: it has {len(self.messages)}.") from None
        return found

    def class_of(self, descriptor):
        return message_factory.GetMessageClass(descriptor)

    def params_of(self, field):
        """The params of a field's confluent.field_meta."""
        if self._meta is None or not field.has_options:
            return {}
        options = self._options.FromString(field.GetOptions().SerializeToString())
        return dict(options.Extensions[self._meta].params)


def _compiled(text, references):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, each in {**references, _MAIN: text}.items():
            path = root / name
            if not path.resolve().is_relative_to(root.resolve()):
                raise DataError(f"The Protobuf schema imports '{name}', which is no name of a file below.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each, encoding="utf-8")
        known = importlib.resources.files("grpc_tools") / "_proto"
        google = pathlib.Path(date_pb2.__file__).parent.parent.parent
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", f"-I{known}", f"-I{_OWN}", f"-I{google}", "--include_imports"]
        done = subprocess.run([*command, f"--descriptor_set_out={root / 'out'}", str(root / _MAIN)], capture_output=True, text=True, timeout=_SECONDS)
        if done.returncode:
            said = done.stderr.replace(f"{root}/", "").strip().replace("\n", "; ")
            raise DataError(f"protoc cannot compile the Protobuf schema: {said[:1000]}")
        return (root / "out").read_bytes()
