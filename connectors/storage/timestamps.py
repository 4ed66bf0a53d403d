"""Timestamp extractors (timestamp.extractor): the record time in milliseconds, for a whole batch at once."""

import datetime
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.storage.classes import Choice
from connectors.storage.fields import field_column, field_value, missing
from connectors.storage.lake_types import TIMESTAMP
from standalone import DataError, Instant

NONE = np.iinfo(np.int64).min  # marks rows without a time


class TimestampExtractor:
    """A custom class defines `extract(record)`: it returns milliseconds, or raises DataError if the record has no time."""

    by_clock = False  # whether time passes without records

    def configure(self, config):
        """Called with the connector's parsed keys; `config.originals` has all of them as strings."""

    def extract(self, record):
        raise NotImplementedError(f"{type(self).__name__} must define extract(record)")

    def times(self, batch, now_ms):
        """Return (array of milliseconds, {row: error})."""
        found, bad = np.full(len(batch), NONE, np.int64), {}
        for row, record in enumerate(batch.records()):
            try:
                found[row] = self.extract(record)
            except DataError as error:
                bad[row] = error
        return found, bad


class WallclockExtractor(TimestampExtractor):
    """The time at which the record is written."""

    by_clock = True

    def times(self, batch, now_ms):
        return np.full(len(batch), now_ms, np.int64), {}


class RecordExtractor(TimestampExtractor):
    """The record's timestamp in the log."""

    def times(self, batch, now_ms):
        times = np.full(len(batch), -1, np.int64) if batch.timestamps is None else batch.timestamps
        bad = {int(row): DataError("The record has no timestamp, which timestamp.extractor=Record needs.") for row in np.flatnonzero(times < 0)}
        return times, bad


class RecordFieldExtractor(TimestampExtractor):
    """A field of the value, optionally nested (a.b): a Timestamp, a number of milliseconds, or a string in ISO 8601."""

    def configure(self, config):
        self._path = config["timestamp.field"]

    def times(self, batch, now_ms):
        found = field_column(batch, self._path)
        if found is None or (numbers := _milliseconds(*found)) is None:
            return super().times(batch, now_ms)
        bad = {int(row): _no_time(self._path, None) for row in np.flatnonzero(np.asarray(found[1].is_null()))}
        return numbers, bad

    def extract(self, record):
        there, value = field_value(record.value, self._path)
        if not there:
            raise missing(self._path, record)
        return milliseconds_of(self._path, value)


def _milliseconds(schema, array):
    if schema.name == TIMESTAMP or not schema.name and schema.type in ("int32", "int64"):
        return pc.fill_null(array.cast(pa.int64()), NONE).to_numpy(zero_copy_only=False)
    return None


def milliseconds_of(path, value):
    if isinstance(value, Instant):
        return value.ms
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        try:
            return _of_text(value.strip())
        except ValueError:
            raise DataError(f"The field '{path}' holds '{value}', which is not a time in ISO 8601 (2024-02-29T12:30:00.000Z).") from None
    raise _no_time(path, value)


_ISO = re.compile(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?))?)?(?:T(?:(\d\d?)(?::(\d\d?)(?::(\d\d?)(?:[.,](\d+))?)?)?)?(Z|[+-]\d\d:?(?:\d\d)?)?)?")


def _of_text(text):
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    clock = [int(each or 0) for each in (hour, minute, second)]
    when = datetime.datetime(int(year), int(month or 1), int(day or 1), *clock, tzinfo=datetime.timezone.utc)
    ms = (when - _EPOCH) // datetime.timedelta(milliseconds=1) + int((fraction or "0")[:3].ljust(3, "0"))
    if zone and zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        offset = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
        ms -= -offset if zone[0] == "-" else offset
    return ms


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def _no_time(path, value):
    return DataError(f"The field '{path}' holds {'null' if value is None else 'a ' + type(value).__name__}, which is not a time.")


_JAVA = "io.confluent.connect.storage.partitioner.TimeBasedPartitioner$"
EXTRACTORS = Choice(
    "timestamp.extractor",
    {
        name: found
        for short, java, found in (
            ("Wallclock", "WallclockTimestampExtractor", WallclockExtractor),
            ("Record", "RecordTimestampExtractor", RecordExtractor),
            ("RecordField", "RecordFieldTimestampExtractor", RecordFieldExtractor),
        )
        for name in (short, _JAVA + java)
    },
    TimestampExtractor,
    "timestamp extractor",
)
