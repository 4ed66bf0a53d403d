"""Names that map between Connect's schemas and Protobuf's."""

NAMESPACE = "io.confluent.connect.protobuf"
ENUM, UNION, TAG, TYPE = (f"{NAMESPACE}.{each}" for each in ("Enum", "Union", "Tag", "Type"))
UNION_PREFIX = f"{UNION}."
DEFAULT_NAME = "ConnectDefault"
DECIMAL, DATE, TIME, TIMESTAMP = "confluent.type.Decimal", "google.type.Date", "google.type.TimeOfDay", "google.protobuf.Timestamp"
FILES = {
    DECIMAL: "confluent/type/decimal.proto",
    DATE: "google/type/date.proto",
    TIME: "google/type/timeofday.proto",
    TIMESTAMP: "google/protobuf/timestamp.proto",
}
# Files that protoc does not include
GOOGLE_TYPES = {
    FILES[DATE]: 'syntax = "proto3"; package google.type; message Date { int32 year = 1; int32 month = 2; int32 day = 3; }',
    FILES[
        TIME
    ]: 'syntax = "proto3"; package google.type; message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }',
}
META_FILE, WRAPPERS_FILE = "confluent/meta.proto", "google/protobuf/wrappers.proto"

# In the order of their file
WRAPPERS = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "uint64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "uint32",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}
WRAPPER_OF = {plain: name for name, plain in WRAPPERS.items()}
WRAPPERS_TEXT = 'syntax = "proto3";\npackage google.protobuf;\n\n' + "\n".join(
    f"message {name.rpartition('.')[2]} {{\n  {plain} value = 1;\n}}" for name, plain in WRAPPERS.items()
)
