"""Values, schemas and records between the JSON of the golden cases and what the program works with.

A JSON tag names the Java class of a value. Under its own schema type a whole number is read as Python's plain int, as people write
it; elsewhere as the class of that width. On the way back a plain number has the class that its schema says.
"""

import base64
import decimal
import math
from fractions import Fraction

from standalone import (
    BigInt,
    Field,
    Float32,
    Float64,
    Header,
    Instant,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    SinkRecord,
    SourceRecord,
    Struct,
    java_text,
    to_float32,
)
from standalone.data.map_key import as_key

TIMESTAMP_TYPES = {"NO_TIMESTAMP_TYPE": -1, "CREATE_TIME": 0, "LOG_APPEND_TIME": 1}
_WIDTHS = {"int8": Int8, "int16": Int16, "int32": Int32, "int64": Int64}
_TAGS = {"$byte": Int8, "$short": Int16, "$long": Int64, "$bigint": BigInt}
_NAMES = {Int8: "$byte", Int16: "$short", Int64: "$long", BigInt: "$bigint"}


def read_schema(data):
    if data is None:
        return None
    fields = [Field(each["name"], index, read_schema(each["schema"])) for index, each in enumerate(data.get("fields", ()))]
    schema = Schema(
        data["type"].lower(),
        optional=data["optional"],
        name=data.get("name"),
        version=data.get("version"),
        doc=data.get("doc"),
        parameters=data.get("parameters"),
        fields=fields if data["type"] == "STRUCT" else None,
        key_schema=read_schema(data.get("key")),
        value_schema=read_schema(data.get("value")),
    )
    return schema.with_(default=read_value(data["default"], schema)) if "default" in data else schema


def write_schema(schema):
    if schema is None:
        return None
    data = {"type": schema.type.upper(), "optional": schema.optional}
    for name in ("name", "version", "doc"):
        if getattr(schema, name) is not None:
            data[name] = getattr(schema, name)
    if schema.default is not None:
        data["default"] = write_value(schema.default, schema)
    if schema.parameters:
        data["parameters"] = dict(sorted(schema.parameters.items()))
    if schema.type == "map":
        data["key"] = write_schema(schema.key_schema)
    if schema.type in ("map", "array"):
        data["value"] = write_schema(schema.value_schema)
    if schema.type == "struct":
        data["fields"] = [{"name": field.name, "schema": write_schema(field.schema)} for field in schema.fields]
    return data


def read_value(data, schema=None):
    kind = schema.type if schema is not None else None
    if data is None or isinstance(data, (bool, str)):
        return data
    if isinstance(data, int):
        return data if kind == "int32" else Int32(data)
    if isinstance(data, float):
        return _double(data, kind)
    if isinstance(data, list):
        inner = schema.value_schema if kind == "array" else None
        return [read_value(item, inner) for item in data]
    tag = next(iter(data), None)
    if tag in _TAGS:
        number = int(data[tag])
        return number if _WIDTHS.get(kind) is _TAGS[tag] else _TAGS[tag](number)
    if tag == "$double":
        return _double(float(data[tag]), kind)
    if tag == "$float":
        number = float(data[tag])
        return to_float32(decimal.Decimal(data[tag]) if math.isfinite(number) else number)
    if tag == "$decimal":
        return decimal_of(int(Fraction(data[tag]) * Fraction(10) ** data["scale"]), data["scale"])
    if tag == "$bytes":
        return base64.b64decode(data[tag])
    if tag == "$bytebuffer":
        return memoryview(base64.b64decode(data[tag]))
    if tag == "$date":
        return Instant(data[tag])
    keys, values = (schema.key_schema, schema.value_schema) if kind == "map" else (None, None)
    if tag == "$map":
        return {as_key(read_value(key, keys)): read_value(item, values) for key, item in data[tag]}
    if tag == "$struct":
        own = read_schema(data["schema"]) if "schema" in data else schema
        return Struct.trusted(own, [read_value(data[tag][field.name], field.schema) for field in own.fields])
    return {key: read_value(item, values) for key, item in data.items()}


def _double(number, kind):
    return Float64(number) if kind == "float32" else number


def decimal_of(unscaled, scale):
    return decimal.Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


def write_value(value, schema=None):
    kind = schema.type if schema is not None else None
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        own = type(value) if type(value) is not int else _WIDTHS.get(kind, Int64)
        if own is Int32:
            return int(value)
        return {_NAMES[own]: str(int(value)) if own is BigInt else int(value)}
    if isinstance(value, float):
        if isinstance(value, Float32) or kind == "float32" and not isinstance(value, Float64):
            return {"$float": java_text(Float32(value))}
        return float(value) if math.isfinite(value) else {"$double": java_text(value)}
    if isinstance(value, decimal.Decimal):
        return {"$decimal": format(value, "f"), "scale": -value.as_tuple().exponent}
    if isinstance(value, memoryview):
        return {"$bytebuffer": base64.b64encode(value).decode()}
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, Instant):
        return {"$date": value.ms}
    if isinstance(value, list):
        inner = schema.value_schema if kind == "array" else None
        return [write_value(item, inner) for item in value]
    if isinstance(value, Struct):
        stored = zip(value.schema.fields, value.values)
        data = {"$struct": {field.name: write_value(item, field.schema) for field, item in stored}}
        return data if value.schema == schema else {**data, "schema": write_schema(value.schema)}
    if isinstance(value, dict):
        keys, values = (schema.key_schema, schema.value_schema) if kind == "map" else (None, None)
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: write_value(item, values) for key, item in value.items()}
        return {"$map": [[write_value(key, keys), write_value(item, values)] for key, item in value.items()]}
    raise TypeError(f"the encoding has no tag for a {type(value).__name__}")


def read_record(data):
    key_schema, value_schema = read_schema(data["keySchema"]), read_schema(data["valueSchema"])
    shared = {
        "partition": data["partition"],
        "timestamp": data["timestamp"],
        "key_schema": key_schema,
        "key": read_value(data["key"], key_schema),
        "value_schema": value_schema,
        "value": read_value(data["value"], value_schema),
        "headers": [_read_header(*each) for each in data["headers"]],
    }
    if data["kind"] == "source":
        return SourceRecord(data["topic"], **shared)
    return SinkRecord(data["topic"], offset=data["offset"], timestamp_type=TIMESTAMP_TYPES[data["timestampType"]], **shared)


def _read_header(name, schema, value):
    schema = read_schema(schema)
    return Header(name, read_value(value, schema), schema)


def write_record(record):
    is_sink = isinstance(record, SinkRecord)
    data = {
        "kind": "sink" if is_sink else "source",
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "keySchema": write_schema(record.key_schema),
        "key": write_value(record.key, record.key_schema),
        "valueSchema": write_schema(record.value_schema),
        "value": write_value(record.value, record.value_schema),
        "headers": [[header.name, write_schema(header.schema), write_value(header.value, header.schema)] for header in record.headers],
    }
    if is_sink:
        names = {number: name for name, number in TIMESTAMP_TYPES.items()}
        data["timestampType"], data["offset"] = names[record.timestamp_type], record.offset
        data["original"] = [record.original_topic, record.original_partition, record.original_offset]
    return data
