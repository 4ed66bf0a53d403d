"""Convert values to Protobuf messages and back: a schema and its message are compiled once into nested functions."""

import datetime

from google.protobuf.descriptor import FieldDescriptor as F

from standalone import DataError, Float32, Instant, Struct
from standalone.converters.json_values import DAY_MS
from standalone.converters.protobuf import names
from standalone.converters.protobuf.read_schema import has_optional_keyword, is_map_entry, real_oneofs, union_field_name
from standalone.converters.protobuf.write_schema import is_union
from standalone.data import schema as s
from standalone.data.arrow import decimal_of, unscaled_bytes
from standalone.data.map_key import as_key
from standalone.data.struct import fits

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_UNSIGNED = {F.TYPE_UINT32: 32, F.TYPE_FIXED32: 32, F.TYPE_UINT64: 64, F.TYPE_FIXED64: 64}
_LARGE = {F.TYPE_UINT64, F.TYPE_FIXED64}


# --- Writing --------------------------------------------------------------------------------------------------------


def writer_of(schema, descriptor, options):
    """Return a function (value, message) that fills the message."""
    if descriptor.full_name in names.WRAPPERS and schema.type != s.STRUCT:
        write = _setter(schema, descriptor.fields_by_name["value"], options)
        return lambda value, message: write(value, message)
    parts = []
    for field in schema.fields:
        name = options.scrubbed(field.name)
        if is_union(field.schema):
            members = [_field_writer(each.schema, descriptor, options.scrubbed(each.name), options) for each in field.schema.fields]
            parts.append((field.index, None, _union_writer(field.name, members)))
        else:
            default = None if options.ignores_defaults else field.schema.default
            parts.append((field.index, default, _field_writer(field.schema, descriptor, name, options)))

    def write(value, message):
        if not isinstance(value, Struct):
            raise DataError(f"ProtobufConverter: expected a struct for the message {descriptor.full_name}, found a {type(value).__name__}.")
        if value.schema is not schema and value.schema.with_(optional=schema.optional) != schema:
            raise DataError(f"ProtobufConverter: the struct for the message {descriptor.full_name} has a schema that differs from the declared one.")
        for index, default, part in parts:
            item = value.values[index]
            item = default if item is None else item
            if item is not None:  # Protobuf has no null, so it is omitted
                part(item, message)

    return write


def _union_writer(name, members):
    def write(value, message):
        for item, member in zip(value.values, members):
            if item is not None:
                return member(item, message)
        raise DataError(f"ProtobufConverter: the struct '{name}' represents a oneof, so one of its fields must be set.")

    return write


def _field_writer(schema, descriptor, name, options):
    field = descriptor.fields_by_name.get(name)
    if field is None:
        known = ", ".join(each.name for each in descriptor.fields)
        raise DataError(f"The Protobuf message {descriptor.full_name} has no field '{name}'. Its fields: {known or '(none)'}.")
    if schema.type == s.MAP:
        return _map_writer(schema, field, options)
    if schema.type == s.ARRAY:
        if not field.is_repeated:
            raise DataError(f"The Protobuf field '{field.full_name}' is not repeated, but the value is a list.")
        return _list_writer(schema.value_schema, field, options)
    if field.is_repeated:
        raise DataError(f"The Protobuf field '{field.full_name}' is repeated, but the value is not a list.")
    return _setter(schema, field, options)


def _list_writer(schema, field, options):
    name = field.name
    if field.message_type is not None:
        fill = _message_writer(schema, field.message_type, options)

        def write_messages(value, message):
            for item in value:
                fill(_not_null(item, name), getattr(message, name).add())

        return write_messages
    scalar = scalar_of(schema, field)
    return lambda value, message: getattr(message, name).extend(scalar(_not_null(item, name)) for item in value)


def _not_null(item, name):
    if item is None:
        raise DataError(f"ProtobufConverter: the list '{name}' contains a null, which Protobuf does not support.")
    return item


def _map_writer(schema, field, options):
    if not is_map_entry(field):
        raise DataError(f"The Protobuf field '{field.full_name}' is not a map, but the value is one.")
    entry = field.message_type
    key, value = (_setter(each, entry.fields_by_name[name], options) for each, name in ((schema.key_schema, "key"), (schema.value_schema, "value")))
    name, is_native = field.name, entry.GetOptions().map_entry
    if not is_native:

        def write_entries(items, message):
            for each, item in items.items():
                made = getattr(message, name).add()
                if each is not None:
                    key(each, made)
                if item is not None:
                    value(item, made)

        return write_entries
    keys, item_field = scalar_of(schema.key_schema, entry.fields_by_name["key"]), entry.fields_by_name["value"]
    if item_field.message_type is not None:
        fill = _message_writer(schema.value_schema, item_field.message_type, options)

        def write_messages(items, message):
            for each, item in items.items():
                fill(_not_null(item, name), getattr(message, name)[keys(each)])

        return write_messages
    scalar = scalar_of(schema.value_schema, item_field)

    def write_scalars(items, message):
        target = getattr(message, name)
        for each, item in items.items():
            target[keys(each)] = scalar(_not_null(item, name))

    return write_scalars


def _setter(schema, field, options):
    name = field.name
    if field.message_type is None:
        scalar = scalar_of(schema, field)
        return lambda value, message: setattr(message, name, scalar(value))
    fill = _message_writer(schema, field.message_type, options)

    def write(value, message):
        inner = getattr(message, name)
        inner.SetInParent()
        fill(value, inner)

    return write


def _message_writer(schema, descriptor, options):
    full = descriptor.full_name
    if schema.logical:
        write = {names.DECIMAL: _write_decimal, names.DATE: _write_date, names.TIME: _write_time, names.TIMESTAMP: _write_timestamp}.get(full)
        if write is None:
            raise DataError(f"ProtobufConverter: a {schema.name} cannot be written as the message {full}.")
        return lambda value, message: write(_fitting(schema, value), message, schema)
    if schema.type == s.STRUCT or full in names.WRAPPERS:
        return writer_of(schema, descriptor, options)
    raise DataError(f"ProtobufConverter: a {schema.type} cannot be written as the message {full}.")


def _fitting(schema, value):
    if not fits(schema, value):
        raise DataError(f"ProtobufConverter: a {type(value).__name__} does not fit a schema of type {schema.name or schema.type}.")
    return value


def scalar_of(schema, field):
    """Return a function from a value to the field's value."""
    if field.type == F.TYPE_ENUM:
        return _enum_number(schema, field.enum_type)
    wanted = _KINDS.get(schema.type)
    if schema.logical or field.cpp_type not in (wanted or ()):
        raise DataError(f"ProtobufConverter: a {schema.name or schema.type} does not fit the Protobuf field '{field.full_name}'.")
    bits = _UNSIGNED.get(field.type)
    if bits is not None:
        return lambda value: _fitting(schema, value) & (1 << bits) - 1
    if schema.type == s.STRING:
        return lambda value: _fitting(schema, value).encode("utf-8", "replace").decode()
    if schema.type == s.BYTES:
        return lambda value: bytes(_fitting(schema, value))
    return lambda value: _fitting(schema, value)


_INTS = (F.CPPTYPE_INT32, F.CPPTYPE_INT64, F.CPPTYPE_UINT32, F.CPPTYPE_UINT64)
_KINDS = {
    **dict.fromkeys((s.INT8, s.INT16, s.INT32, s.INT64), _INTS),
    s.FLOAT32: (F.CPPTYPE_FLOAT,),
    s.FLOAT64: (F.CPPTYPE_DOUBLE,),
    s.BOOLEAN: (F.CPPTYPE_BOOL,),
    s.STRING: (F.CPPTYPE_STRING,),
    s.BYTES: (F.CPPTYPE_STRING,),
}


def _enum_number(schema, descriptor):
    if schema.type == s.INT32:
        return lambda value: value
    known = {name: each.number for name, each in descriptor.values_by_name.items()}

    def number(value):
        if value not in known:
            raise DataError(f"'{value}' is not a symbol of the Protobuf enum {descriptor.full_name}. Its symbols: {', '.join(known)}.")
        return known[value]

    return number


def _write_decimal(value, message, schema):
    message.value, scale = unscaled_bytes(value)
    message.precision = max(len(value.as_tuple().digits), 1)
    message.scale = scale


def _write_date(value, message, schema):
    ms = Instant.of(value).ms
    if ms % DAY_MS:
        raise DataError(f"ProtobufConverter: a Date must be midnight in UTC, but it is {ms % DAY_MS} ms after midnight.")
    try:
        date = datetime.date.fromordinal(ms // DAY_MS + _EPOCH)
    except (ValueError, OverflowError):
        raise DataError(
            f"ProtobufConverter: google.type.Date supports the years 1 to 9999, and day {ms // DAY_MS} since the epoch is outside."
        ) from None
    message.year, message.month, message.day = date.year, date.month, date.day


def _write_time(value, message, schema):
    ms = Instant.of(value).ms
    if not 0 <= ms < DAY_MS:
        raise DataError(f"ProtobufConverter: a Time must be within 1970-01-01; it is {ms} ms since the epoch.")
    seconds, rest = divmod(ms, 1000)
    message.hours, message.minutes, message.seconds, message.nanos = seconds // 3600, seconds // 60 % 60, seconds % 60, rest * 1_000_000


def _write_timestamp(value, message, schema):
    seconds, rest = divmod(Instant.of(value).ms, 1000)
    message.seconds, message.nanos = seconds, rest * 1_000_000


# --- Reading --------------------------------------------------------------------------------------------------------


def reader_of(schema, descriptor, options):
    """Return a function from a message to the value."""
    if descriptor.full_name in names.WRAPPERS and schema.type != s.STRUCT:
        read = _scalar_reader(schema, descriptor.fields_by_name["value"])
        return lambda message: read(message.value)
    if schema.name == s.DECIMAL:
        return lambda message: decimal_of(message.value or b"\0", message.scale)
    if schema.logical:
        return {s.DATE: _read_date, s.TIME: _read_time, s.TIMESTAMP: _read_timestamp}[schema.name]
    return _struct_reader(schema, descriptor, options)


def _struct_reader(schema, descriptor, options):
    count, unions, fields = len(schema.fields), [], []
    oneofs = real_oneofs(descriptor)
    members = {field.name for oneof in oneofs for field in oneof.fields}
    if not options.flattens_unions:
        for oneof in oneofs:
            place = schema.field(union_field_name(oneof, options))
            readers = {field.name: (at, _field_reader(place.schema.fields[at].schema, field, options)) for at, field in enumerate(oneof.fields)}
            unions.append((oneof.name, place.index, place.schema, readers))
    for field in descriptor.fields:
        if field.name not in members or options.flattens_unions:
            place = schema.field(field.name)
            fields.append((field.name, place.index, not may_be_null(field, options), _field_reader(place.schema, field, options)))

    def read(message):
        values = [None] * count
        for name, index, union, readers in unions:
            found = message.WhichOneof(name)
            if found is not None:
                at, each = readers[found]
                inner = [None] * len(readers)
                inner[at] = each(getattr(message, found))
                values[index] = Struct.trusted(union, inner)
        for name, index, is_sure, each in fields:
            if is_sure or message.HasField(name):
                values[index] = each(getattr(message, name))
        return Struct.trusted(schema, values)

    return read


def may_be_null(field, options):
    """Whether an unset field is null instead of its default."""
    if field.is_repeated:
        return False
    if field.message_type is not None:
        return not options.struct_for_nulls
    return field.containing_oneof is not None or options.optional_for_proto2 and has_optional_keyword(field)


def _field_reader(schema, field, options):
    if schema.type == s.MAP:
        return _map_reader(schema, field, options)
    if field.is_repeated:
        each = _single_reader(schema.value_schema, field, options)
        return lambda items: [each(item) for item in items]
    return _single_reader(schema, field, options)


def _single_reader(schema, field, options):
    if field.message_type is not None:
        return reader_of(schema, field.message_type, options)
    return _scalar_reader(schema, field)


def _scalar_reader(schema, field):
    if field.type == F.TYPE_ENUM and schema.type == s.STRING:
        known = {each.number: each.name for each in field.enum_type.values}
        name = field.enum_type.name
        return lambda number: known.get(number) or f"UNKNOWN_ENUM_VALUE_{name}_{number}"
    if field.type in _LARGE:
        return lambda number: (number + (1 << 63)) % (1 << 64) - (1 << 63)
    if schema.type in (s.INT8, s.INT16):
        half = 1 << (7 if schema.type == s.INT8 else 15)
        return lambda number: (number + half) % (2 * half) - half
    return Float32 if schema.type == s.FLOAT32 else lambda value: value


def _map_reader(schema, field, options):
    entry = field.message_type
    key, value = (
        _single_reader(each, entry.fields_by_name[name], options) for each, name in ((schema.key_schema, "key"), (schema.value_schema, "value"))
    )
    if entry.GetOptions().map_entry:
        return lambda items: {key(each): value(items[each]) for each in items}
    return lambda items: {as_key(key(each.key)): value(each.value) for each in items}


def _read_date(message):
    try:
        return Instant((datetime.date(message.year, message.month, message.day).toordinal() - _EPOCH) * DAY_MS)
    except ValueError as error:
        raise DataError(f"A google.type.Date of {message.year}-{message.month}-{message.day} is not a date: {error}.") from None


def _read_time(message):
    return Instant(((message.hours * 60 + message.minutes) * 60 + message.seconds) * 1000 + message.nanos // 1_000_000)


def _read_timestamp(message):
    return Instant(message.seconds * 1000 + message.nanos // 1_000_000)
