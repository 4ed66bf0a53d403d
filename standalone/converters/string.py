"""StringConverter: values as text in Java's toString format; text is read as a string."""

import codecs

from standalone import HIGH, STRING, ByteColumn, ConfigDef, Converter, HeaderConverter, Option, Schema, SerializationError, java_text
from standalone.converters import text_column
from standalone.converters.part import PART
from standalone.data import utf8
from standalone.data.column import values_of

_UTF_8 = "utf-8"


class StringConverter(Converter, HeaderConverter):
    """Text in the log. Values are written in Java's toString format, and read as a string or null.

    Bytes are written unchanged: Java would write their memory address.
    """

    java_name = "org.apache.kafka.connect.storage.StringConverter"
    config_def = ConfigDef(
        PART,
        Option(
            *("converter.encoding", STRING, HIGH, "The name of the character set in Java.", "UTF-8"),
            width="MEDIUM",
            display="Encoding",
        ),
    )

    def configure(self, config):
        self._charset = _charset(config["converter.encoding"])

    # Row form: the reference.
    def from_connect(self, topic, schema, value):
        if value is None:
            return None
        if isinstance(value, (bytes, bytearray)):
            return bytes(value)
        text = value if isinstance(value, str) else java_text(value, schema)
        return utf8.encode(text) if self._charset == _UTF_8 else _encoded(text, self._charset)

    def to_connect(self, topic, data):
        if data is None:
            return Schema.OPTIONAL_STRING, None
        return Schema.OPTIONAL_STRING, utf8.decode(data) if self._charset == _UTF_8 else _decoded(data, self._charset)

    def from_header(self, topic, name, schema, value):
        return self.from_connect(topic, schema, value)

    def to_header(self, topic, name, data):
        return self.to_connect(topic, data)

    # Columnar form: bytes are passed on, kernels format numbers; other types and character sets go one by one.
    def encode(self, topic, schema, column, count):
        if column is None:
            return None, None
        if isinstance(column, list):
            return None
        if self._charset == _UTF_8 and (written := text_column.encode(schema, column)) is not None:
            return written
        return ByteColumn.of([self.from_connect(topic, schema, value) for value in values_of(column, schema, count)]), None

    def decode(self, topic, column):
        """Return the column itself: readers replace invalid UTF-8."""
        if self._charset != _UTF_8:
            column = ByteColumn.of([None if item is None else utf8.encode(_decoded(item, self._charset)) for item in column])
        return Schema.OPTIONAL_STRING, column, None


# --- Character sets ------------------------------------------------------------------------------------------------


def _charset(name):
    """Return Python's name of a Java character set."""
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        found = None
    if found is None or not found._is_text_encoding:
        raise SerializationError(f"converter.encoding: unknown character set '{name}'. Use one such as UTF-8 or ISO-8859-1.")
    return found.name


# Java writes these big-endian, and reads big-endian without a byte order mark; only UTF-16 is written with a
# mark.
_WIDE = {"utf-16": ("utf-16-be", codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE), "utf-32": ("utf-32-be", codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE)}


def _encoded(text, charset):
    if charset not in _WIDE:
        return text.encode(charset, "replace")
    big, mark, _ = _WIDE[charset]
    return (mark if text and charset == "utf-16" else b"") + text.encode(big, "replace")


def _decoded(data, charset):
    data = bytes(data)
    if charset not in _WIDE:
        return data.decode(charset, "replace")
    big, big_mark, little_mark = _WIDE[charset]
    if data.startswith(little_mark):
        return data[len(little_mark) :].decode(charset + "-le", "replace")
    return data.removeprefix(big_mark).decode(big, "replace")
