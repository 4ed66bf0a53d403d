"""Convert Protobuf messages to Connect schemas like Confluent's converter."""

import re

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor as F

from standalone import DataError, Field, Schema
from standalone.converters.protobuf import names
from standalone.converters.shared_names import GENERAL_ENUM, GENERAL_UNION
from standalone.data import schema as s

_TYPES = {
    F.TYPE_INT32: s.INT32,
    F.TYPE_SINT32: s.INT32,
    F.TYPE_SFIXED32: s.INT32,
    **dict.fromkeys((F.TYPE_UINT32, F.TYPE_FIXED32, F.TYPE_INT64, F.TYPE_UINT64, F.TYPE_SINT64, F.TYPE_FIXED64, F.TYPE_SFIXED64), s.INT64),
    F.TYPE_FLOAT: s.FLOAT32,
    F.TYPE_DOUBLE: s.FLOAT64,
    F.TYPE_BOOL: s.BOOLEAN,
    F.TYPE_STRING: s.STRING,
    F.TYPE_BYTES: s.BYTES,
}
_TYPE_NAMES = {
    getattr(F, f"TYPE_{each.upper()}"): each for each in "sint32 sfixed32 uint32 fixed32 uint64 sint64 fixed64 sfixed64".split()
}  # fmt: skip
_LOGICAL = {names.DATE: (s.DATE, s.INT32), names.TIME: (s.TIME, s.INT32), names.TIMESTAMP: (s.TIMESTAMP, s.INT64)}
_WRAPPED = {"double": s.FLOAT64, "float": s.FLOAT32, "int64": s.INT64, "uint64": s.INT64, "int32": s.INT32, "uint32": s.INT64, "bool": s.BOOLEAN}
_WRAPPED.update(string=s.STRING, bytes=s.BYTES)


def real_oneofs(descriptor):
    """Return the oneofs of the source text; an `optional` of proto3 is a synthetic one."""
    return [each for each in descriptor.oneofs if not (len(each.fields) == 1 and is_proto3_optional(each.fields[0]))]


def is_proto3_optional(field):
    if field.containing_oneof is None or len(field.containing_oneof.fields) > 1:
        return False
    message = descriptor_pb2.DescriptorProto()
    field.containing_type.CopyToProto(message)
    return next(each.proto3_optional for each in message.field if each.name == field.name)


def is_map_entry(field):
    """Whether a repeated message represents a map: by its option, or in the form of Confluent's converter."""
    if not field.is_repeated or field.message_type is None:
        return False
    entry = field.message_type
    return entry.GetOptions().map_entry or entry.name.endswith("Entry") and [each.name for each in entry.fields] == ["key", "value"]


def union_field_name(oneof, options):
    return f"{oneof.name}_{oneof.index}" if options.index_for_unions else oneof.name


def has_optional_keyword(field):
    return is_proto3_optional(field) or _is_proto2(field) and not field.is_repeated and not field.is_required


def _is_proto2(field):
    """Whether it is a proto2 field outside a oneof."""
    file = descriptor_pb2.FileDescriptorProto()
    field.file.CopyToProto(file)
    return file.syntax in ("", "proto2") and field.containing_oneof is None


class ProtobufReader:
    """`params_of(field)` returns a field's confluent.field_meta."""

    def __init__(self, params_of, options):
        self._params_of, self._options = params_of, options
        self._open = []

    def of(self, descriptor, version=None):
        if self._options.wrapper_for_raw and descriptor.full_name in names.WRAPPERS:
            return Schema(_WRAPPED[names.WRAPPERS[descriptor.full_name]], version=version)
        return self._struct(descriptor, version=version)

    def _struct(self, descriptor, **more):
        if descriptor.full_name in self._open:
            raise DataError(f"The Protobuf message '{descriptor.full_name}' contains itself, and Connect schemas cannot be recursive.")
        self._open.append(descriptor.full_name)
        fields, options = [], self._options
        oneofs = real_oneofs(descriptor)
        if not options.flattens_unions:
            for oneof in oneofs:
                fields.append((union_field_name(oneof, options), self._oneof(oneof)))
        members = {field.name for oneof in oneofs for field in oneof.fields}
        for field in descriptor.fields:
            if options.flattens_unions or field.name not in members:
                fields.append((field.name, self._field(field)))
        self._open.pop()
        name = descriptor.full_name if options.enhanced else descriptor.name
        return Schema(s.STRUCT, name=name, fields=[Field(each, at, schema) for at, (each, schema) in enumerate(fields)], **more)

    def _oneof(self, oneof):
        options = self._options
        fields = [Field(field.name, at, self._field(field)) for at, field in enumerate(oneof.fields)]
        if options.generalized:
            return Schema(s.STRUCT, True, name=oneof.name, parameters={GENERAL_UNION: oneof.name}, fields=fields)
        return Schema(s.STRUCT, True, name=names.UNION_PREFIX + (oneof.full_name if options.enhanced else oneof.name), fields=fields)

    def _field(self, field):
        options = self._options
        schema = self._type(field)
        if field.is_repeated and schema.type != s.MAP:
            schema = Schema(s.ARRAY, True, value_schema=schema.with_(optional=True))
        if options.optional_for_nullables:
            is_optional = has_optional_keyword(field)
        else:
            is_optional = not options.wrapper_for_nullables
        parameters = {**(schema.parameters or {}), names.TAG: str(field.number)}
        return schema.with_(optional=schema.optional or is_optional, parameters=parameters)

    def _type(self, field):
        if field.type == F.TYPE_ENUM:
            return self._enum(field.enum_type)
        if field.type == F.TYPE_MESSAGE:
            return self._message(field)
        if field.type not in _TYPES:
            raise DataError(f"The Protobuf field '{field.full_name}' is a group, which has no Connect schema.")
        kind = _TYPES[field.type]
        narrow = self._params_of(field).get("connect.type")
        if kind == s.INT32 and narrow in (s.INT8, s.INT16):
            return Schema(narrow)
        own = _TYPE_NAMES.get(field.type)
        return Schema(kind, parameters={names.TYPE: own} if own else None)

    def _enum(self, descriptor):
        options = self._options
        param = GENERAL_ENUM if options.generalized else names.ENUM
        parameters = {param: descriptor.name, **{f"{param}.{each.name}": str(each.number) for each in descriptor.values}}
        name = descriptor.full_name if options.enhanced else descriptor.name
        return Schema(s.INT32 if options.int_for_enums else s.STRING, True, name=name, parameters=parameters)

    def _message(self, field):
        full = field.message_type.full_name
        if full == names.DECIMAL:
            params = self._params_of(field)
            parameters = {s.SCALE: params["scale"] if re.fullmatch(r"-?\d+", params.get("scale", "")) else "0"}
            if re.fullmatch(r"\d+", params.get("precision", "")):
                parameters["connect.decimal.precision"] = params["precision"]
            return Schema(s.BYTES, True, name=s.DECIMAL, version=1, parameters=parameters)
        if full in _LOGICAL:
            name, kind = _LOGICAL[full]
            return Schema(kind, True, name=name, version=1)
        if self._options.wrapper_for_nullables and full in names.WRAPPERS:
            return Schema(_WRAPPED[names.WRAPPERS[full]], True)
        if is_map_entry(field):
            key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            name = field.message_type.full_name if self._options.enhanced else field.message_type.name
            name = re.sub(r"(?<!^)(?=[A-Z])", "_", name[: -len("Entry")]).lower() if not self._options.enhanced else name[: -len("Entry")]
            return Schema(s.MAP, True, name=name, key_schema=self._field(key), value_schema=self._field(value))
        return self._struct(field.message_type, optional=True)
