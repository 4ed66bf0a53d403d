"""SimpleHeaderConverter: headers as readable text, read as whatever they look like."""

import logging

from standalone import ConfigDef, DataError, HeaderConverter, Schema
from standalone.data import utf8, values

log = logging.getLogger(__name__)


class SimpleHeaderConverter(HeaderConverter):
    """The default for headers. Written is readable text; read is the smallest type that the text may be: 7 is an int8, true a boolean,
    2020-01-01 a date, [1,2] a list, and what looks like nothing else a string.
    """

    java_name = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
    config_def = ConfigDef()

    def from_header(self, topic, name, schema, value):
        return None if value is None else utf8.encode(values.to_text(value, schema))

    def to_header(self, topic, name, data):
        if data is None:
            return None, None
        try:
            return values.parse(utf8.decode(data))
        except (DataError, RecursionError, ArithmeticError) as error:
            log.warning("Header '%s' of topic %s is kept as bytes: %s", name, topic, error)
            return Schema.BYTES, bytes(data)
