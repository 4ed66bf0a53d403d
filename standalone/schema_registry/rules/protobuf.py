"""Protobuf: compiled by protoc, compared by the compatibility of the wire format."""

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as _F
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from standalone.schema_registry.proto_files import MAIN, compile_proto, serialized_of
from standalone.schema_registry.proto_text import text_of
from standalone.schema_registry.rules.misfit import Misfit

_INTEGERS = {_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_BOOL, _F.TYPE_ENUM}
# Types with the same wire format.
_ALIKE = (_INTEGERS, {_F.TYPE_SINT32, _F.TYPE_SINT64}, {_F.TYPE_STRING, _F.TYPE_BYTES}, {_F.TYPE_FIXED32, _F.TYPE_SFIXED32},
          {_F.TYPE_FIXED64, _F.TYPE_SFIXED64})  # fmt: skip
_MESSAGES = (_F.TYPE_MESSAGE, _F.TYPE_GROUP)


class ProtobufSchema:
    def __init__(self, text, references):
        self._files = compile_proto(text, references)
        self.file = self._files[MAIN]
        came = serialized_of(text)
        self.text = text if came is None else text_of(came)
        plain = FileDescriptorProto()
        plain.CopyFrom(self.file)
        plain.ClearField("name")
        self.normalized = text_of(plain)

    @property
    def serialized(self):
        """The FileDescriptorProto, as bytes."""
        return self.file.SerializeToString()

    def misfits(self, older):
        found = []
        if self.file.package != older.file.package:
            found.append(Misfit("PACKAGE_CHANGED", "#/", "The package has changed", f"{older.file.package} -> {self.file.package}"))
        _types(older.file, self.file, "#/", _Scope(older), _Scope(self), found)
        return found


class _Scope:
    """A type's name without the package, which may differ between versions of a file."""

    def __init__(self, schema):
        package = schema.file.package
        self._package = f".{package}." if package else "."

    def local(self, name):
        return name[len(self._package) :] if name.startswith(self._package) else name


def _types(older, newer, path, old_scope, new_scope, found):
    nested = "message_type" if hasattr(older, "message_type") else "nested_type"
    before = {each.name: each for each in getattr(older, nested) if not each.options.map_entry}
    after = {each.name: each for each in getattr(newer, nested) if not each.options.map_entry}
    for name, message in before.items():
        if name not in after:
            found.append(Misfit("MESSAGE_REMOVED", f"{path}{name}", "A message is gone", name))
        else:
            _message(message, after[name], f"{path}{name}/", old_scope, new_scope, found)


def _message(older, newer, path, old_scope, new_scope, found):
    before, after = ({field.number: field for field in each.field} for each in (older, newer))
    for number, field in before.items():
        where = f"{path}{number}"
        now = after.get(number)
        if now is None:
            if field.label == _F.LABEL_REQUIRED:
                found.append(Misfit("REQUIRED_FIELD_REMOVED", where, "A required field is gone", field.name))
            elif _oneof(field, older):
                found.append(Misfit("ONEOF_FIELD_REMOVED", where, "A field of a oneof is gone", field.name))
        else:
            _field(field, now, where, older, newer, old_scope, new_scope, found)
    for number, field in after.items():
        if number not in before and field.label == _F.LABEL_REQUIRED:
            found.append(Misfit("REQUIRED_FIELD_ADDED", f"{path}{number}", "A required field is new", field.name))
    _oneofs(older, newer, before, after, path, found)
    _types(older, newer, path, old_scope, new_scope, found)


def _field(field, now, where, older, newer, old_scope, new_scope, found):
    maps = _map_of(field, older), _map_of(now, newer)
    if all(maps):
        for old, new in zip(maps[0].field, maps[1].field):
            _kind(old, new, where, old_scope, new_scope, found)
        return
    if any(maps):
        entry, other = (maps[0], now) if maps[0] else (maps[1], field)
        found.append(Misfit("FIELD_KIND_CHANGED", where, "A map has become something else, or the reverse", f"{entry.name}, {other.name}"))
        return
    if (field.label == _F.LABEL_REPEATED) != (now.label == _F.LABEL_REPEATED) and field.type not in (_F.TYPE_STRING, _F.TYPE_BYTES, *_MESSAGES):
        found.append(Misfit("FIELD_NUMERIC_LABEL_CHANGED", where, "A number has become repeated, or is so no more", now.name))
    _kind(field, now, where, old_scope, new_scope, found)


def _kind(field, now, where, old_scope, new_scope, found):
    messages = field.type in _MESSAGES, now.type in _MESSAGES
    if all(messages):
        before, after = old_scope.local(field.type_name), new_scope.local(now.type_name)
        if before != after:
            found.append(Misfit("FIELD_NAMED_TYPE_CHANGED", where, "The message of a field is another", f"{before} -> {after}"))
    elif any(messages):
        found.append(Misfit("FIELD_KIND_CHANGED", where, "A field was a message and is none, or the reverse", now.name))
    elif field.type != now.type and not any(field.type in alike and now.type in alike for alike in _ALIKE):
        names = f"{_F.Type.Name(field.type)[5:].lower()} -> {_F.Type.Name(now.type)[5:].lower()}"
        found.append(Misfit("FIELD_SCALAR_KIND_CHANGED", where, "The kind of a field is one whose bytes are read otherwise", names))


def _oneofs(older, newer, before, after, path, found):
    for oneof in {name for field in newer.field if (name := _oneof(field, newer))}:
        moved = [
            field for number, field in after.items()
            if _oneof(field, newer) == oneof and number in before and not _oneof(before[number], older)
        ]  # fmt: skip
        existed = any(_oneof(field, older) == oneof for field in older.field)
        if moved and existed:
            found.append(Misfit("FIELD_MOVED_TO_EXISTING_ONEOF", f"{path}{oneof}", "A field has moved into a oneof that was there", moved[0].name))
        elif len(moved) > 1:
            names = ", ".join(field.name for field in moved)
            found.append(Misfit("MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"{path}{oneof}", "Multiple fields have moved into one oneof", names))


def _oneof(field, message):
    """The name of a field's oneof; None if it has none, or only the synthetic one of an optional field."""
    if field.HasField("oneof_index") and not field.proto3_optional:
        return message.oneof_decl[field.oneof_index].name
    return None


def _map_of(field, message):
    if field.type != _F.TYPE_MESSAGE:
        return None
    name = field.type_name.rpartition(".")[2]
    return next((each for each in message.nested_type if each.name == name and each.options.map_entry), None)
