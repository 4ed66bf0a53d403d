"""SimpleHeaderConverter: headers as readable text; types are inferred when reading."""

import logging

from standalone import ConfigDef, DataError, HeaderConverter, Schema
from standalone.data import utf8, values

log = logging.getLogger(__name__)


class SimpleHeaderConverter(HeaderConverter):
    """The default header converter. It writes readable text and infers the smallest matching type when reading: 7 is an int8, true a boolean,
    2020-01-01 a date, [1,2] a list; all other text is a string.
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
            log.warning("Header '%s' of topic %s stays bytes: %s", name, topic, error)
            return Schema.BYTES, bytes(data)
