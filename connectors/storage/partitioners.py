"""Partitioners (partitioner.class): choose a record's folder within its topic.

A custom partitioner is a class with one method:

    class ByCountry(Partitioner):
        def encode_partition(self, record):
            return f"country={record.value['country']}"

The result must depend only on the record, so that after a crash a redelivered record goes to the same folder.
"""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.storage.classes import Choice
from connectors.storage.date_patterns import DatePattern, zone_of
from connectors.storage.fields import field_column, field_value, missing, texts_of
from connectors.storage.names import safe_segment
from standalone import DataError

_INTEGERS = ("int8", "int16", "int32", "int64")
_QUARTER_MS = 900_000  # since 1980 every zone's offset is a multiple of it
_SINCE_MS = 315_532_800_000
_KEPT = 10_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


class Partitioner:
    by_time = False  # whether it needs times

    def configure(self, config):
        """Called with the connector's parsed keys; `config.originals` has all of them as strings."""

    def encode_partition(self, record):
        """Return the folder below the topic's. Raise DataError if the record has none."""
        raise NotImplementedError(f"{type(self).__name__} must define encode_partition(record)")

    def encode(self, batch, times=None):
        """Return (folder index of each row, folders, {row: error}) of a batch."""
        folders, numbers, bad = {}, np.zeros(len(batch), np.int64), {}
        for row, record in enumerate(batch.records()):
            try:
                numbers[row] = folders.setdefault(self.encode_partition(record), len(folders))
            except DataError as error:
                bad[row] = error
        return numbers, list(folders) or [""], bad


class DefaultPartitioner(Partitioner):
    """partition=0: the topic's partition."""

    def encode_partition(self, record):
        return f"partition={record.original_partition}"

    def encode(self, batch, times=None):
        return np.zeros(len(batch), np.int64), [f"partition={batch.origin[1]}"], {}


class FieldPartitioner(Partitioner):
    """country=de/year=2024: fields of the value (partition.field.name) that are strings, integers or booleans."""

    def configure(self, config):
        self._paths, self._delimiter = config["partition.field.name"], config["directory.delim"]

    def encode(self, batch, times=None):
        columns = [field_column(batch, path) for path in self._paths]
        if any(column is None or not _is_plain(column[0]) for column in columns):
            return super().encode(batch)
        numbers, folders = np.zeros(len(batch), np.int64), [""]
        for path, (schema, array) in zip(self._paths, columns):
            if schema.default is not None and array.null_count:
                return super().encode(batch)
            codes, texts = texts_of(pc.fill_null(array.cast(pa.string()), "null"))
            mixed = numbers * len(texts) + codes
            used, numbers = np.unique(mixed, return_inverse=True)
            folders = [_under(folders[each // len(texts)], self._delimiter, path, texts[each % len(texts)]) for each in used.tolist()]
        return numbers, folders, {}

    def encode_partition(self, record):
        folder = ""
        for path in self._paths:
            there, value = field_value(record.value, path)
            if not there:
                raise missing(path, record)
            if value is not None and not isinstance(value, (str, int)):
                raise DataError(f"The field '{path}' is a {type(value).__name__}: only strings, integers and booleans can name folders.")
            text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            folder = _under(folder, self._delimiter, path, text)
        return folder


def _is_plain(schema):
    return not schema.name and schema.type in (*_INTEGERS, "string", "boolean")


def _under(folder, delimiter, path, text):
    return f"{folder}{delimiter if folder else ''}{path.rpartition('.')[2]}={safe_segment(text)}"


class TimeBasedPartitioner(Partitioner):
    """year=2024/month=02/day=29: path.format applied to the start of the record's time span (partition.duration.ms)."""

    by_time = True
    duration_ms = pattern = None

    def configure(self, config):
        self._duration = self.duration_ms or config["partition.duration.ms"]
        self._zone = zone_of(config["timezone"])
        pattern = self.pattern.replace("/", config["directory.delim"]) if self.pattern else config["path.format"]
        self._pattern = DatePattern(pattern, self._zone, config["locale"])
        self._known = {}

    def encode(self, batch, times=None):
        if not len(batch):
            return np.zeros(0, np.int64), [""], {}
        step = _QUARTER_MS if self._duration % _QUARTER_MS == 0 and int(times.min()) >= _SINCE_MS else 1000 if self._duration % 1000 == 0 else 1
        starts, numbers = np.unique(np.floor_divide(times, step) * step, return_inverse=True)
        folders, mapped = {}, []
        for start in starts.tolist():
            mapped.append(folders.setdefault(self.folder(start), len(folders)))
        return np.array(mapped, np.int64)[numbers], list(folders), {}

    def folder(self, ms):
        known = self._known.get(ms)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            known = self._known[ms] = self._pattern.format(self.beginning(ms))
        return known

    def beginning(self, ms):
        """Return the start of the span that contains a point in time: spans count from local midnight of 1 January 1970."""
        offset = self._offset(ms)
        start = (ms + offset) // self._duration * self._duration
        begin = start - offset
        return start - self._offset(begin)  # daylight saving may have changed in between

    def _offset(self, ms):
        moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(milliseconds=ms)
        return moment.astimezone(self._zone).utcoffset() // datetime.timedelta(milliseconds=1)


class HourlyPartitioner(TimeBasedPartitioner):
    """year=2024/month=02/day=29/hour=13"""

    duration_ms, pattern = HOUR_MS, "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"


class DailyPartitioner(TimeBasedPartitioner):
    """year=2024/month=02/day=29"""

    duration_ms, pattern = DAY_MS, "'year'=YYYY/'month'=MM/'day'=dd"


_JAVA = ("io.confluent.connect.storage.partitioner.", "io.confluent.connect.hdfs.partitioner.")
PARTITIONERS = Choice(
    "partitioner.class",
    {
        name: found
        for found in (DefaultPartitioner, FieldPartitioner, TimeBasedPartitioner, HourlyPartitioner, DailyPartitioner)
        for name in (found.__name__.removesuffix("Partitioner"), found.__name__, *(package + found.__name__ for package in _JAVA))
    },
    Partitioner,
    "partitioner",
)
