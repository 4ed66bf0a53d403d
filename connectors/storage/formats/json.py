"""JSON lines, as JsonConverter writes them without schemas."""

import numpy as np

from connectors.storage.formats.text import LinesFormat
from standalone import ByteColumn, ConnectError, DataError, SinkBatch
from standalone.converters.json import JsonConverter


class JsonFormat(LinesFormat):
    _extension = ".json"

    def __init__(self, settings):
        super().__init__(settings)
        self._converter = json_converter(settings["json.decimal.format"])

    def encode(self, topic, schema, values, count):
        return json_rows(self._converter, schema, values, count)


def json_converter(decimal_format="BASE64"):
    return JsonConverter.of({"schemas.enable": "false", "decimal.format": decimal_format})


def json_rows(converter, schema, values, count):
    """Return (ByteColumn of JSON, {row: error})."""
    if values is None:
        return ByteColumn.repeat(None, count), {}
    done = converter.encode("", schema, values, count)
    if done is not None and done[1] is None:
        return done[0], {}
    found, bad = [], {}
    for row, value in enumerate(_plain(schema, values, count)):
        try:
            found.append(None if value is None else converter.from_connect("", schema, value))
        except (ConnectError, ValueError, TypeError) as error:
            bad[row] = error if isinstance(error, DataError) else DataError(f"The value cannot be written as JSON: {error}")
            found.append(None)
    return ByteColumn.of(found), bad


def _plain(schema, values, count):
    return [record.value for record in SinkBatch(count, "", values, schema, partition=0, offsets=np.arange(count)).records()]
