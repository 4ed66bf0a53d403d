"""The rows engine: the chain record by record, as its row meanings say. It is the truth that the columns engine is held to."""

import numpy as np

from standalone.data.record import Header, SinkRecord
from standalone.errors import RetriableError, Stopped, without_frames
from standalone.stage import StageFailed
from standalone.wire import NO_TIMESTAMP, Records

TRANSFORMATION = "TRANSFORMATION"
KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER = "KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER"
DROPPED = None
NOTHING = {}


def class_name(stage):
    """The class a stage is known by."""
    return type(stage).java_name or f"{type(stage).__module__}.{type(stage).__qualname__}"


class RowsEngine:
    """Interprets one chain. Each method works one record and raises StageFailed, whatever it was that a stage raised.

    `retry(call, error)` repeats a call that asked for it with this RetriableError: it returns what the call returns at last, or raises
    the error to report. Without it the first such error counts.
    """

    def __init__(self, chain, retry=None, queries=None):
        """`queries` runs the links that are SQL statements: {alias: Query}."""
        self._retry = retry
        self._queries = queries or {}
        self._links = [
            (link.alias, class_name(link.transform), link.predicate and link.predicate.test, bool(link.negate), self._apply(link))
            for link in chain.links
        ]
        self._key, self._value, self._header = chain.key_converter, chain.value_converter, chain.header_converter
        self._key_from, self._value_from = (converter and converter.from_connect for converter in (self._key, self._value))

    def _apply(self, link):
        query = self._queries.get(link.alias)
        return link.transform.apply if query is None else query.record

    def transform(self, record, row):
        """The record behind all links, or DROPPED; a list where a link makes several of one."""
        return self._through(self._links, record, row, record)

    def through(self, items, low, high):
        """[(place, row, record)] behind the links from low to high, and [(row, failure)], whose failures know no record."""
        links = self._links[low:high]
        if any(alias in self._queries for alias, *_ in links):
            worked, failures = self.transform_all([((place, row), record) for place, row, record in items], links)
            made = [(place, row, each) for (place, row), records in worked for each in records]
            for failure in failures:
                failure.row = failure.row[1]
            return made, [(failure.row, failure) for failure in failures]
        made, failures, work = [], [], self._part(links)
        for place, row, record in items:
            try:
                result = work(record, row)
            except StageFailed as failure:
                failures.append((row, kept(failure)))
                continue
            if result.__class__ is list:
                made += [(place, row, each) for each in result]
            elif result is not DROPPED:
                made.append((place, row, result))
        return made, failures

    def _part(self, links):
        """The like of `transform` that does only these links."""
        if len(links) != 1 or links[0][2] is not None:
            return lambda record, row: self._through(links, record, row, None)
        alias, name, _, _, apply = links[0]

        def alone(record, row):
            try:
                return apply(record)
            except Exception as error:
                return self._again(lambda: apply(record), error, TRANSFORMATION, alias, row, None, name)

        return alone

    def _through(self, links, result, row, record):
        links = iter(links)
        for alias, name, test, negate, apply in links:
            try:
                if test is not None and bool(test(result)) is negate:
                    continue
                result = apply(result)
            except Exception as error:

                def again(result=result, test=test, negate=negate, apply=apply):
                    return result if test is not None and bool(test(result)) is negate else apply(result)

                result = self._again(again, error, TRANSFORMATION, alias, row, record, name)
            if result is None:
                return DROPPED
            if result.__class__ is list:
                rest = tuple(links)
                return [last for each in result for last in listed(self._through(rest, each, row, record))]
        return result

    def transform_all(self, items, links=None):
        """The same for [(row, record)], link by link, for chains with queries: their jobs are as quick for many records as for one.

        Returns ([(row, list of records)], failures).
        """
        current, failures = [(row, record, [record]) for row, record in items], []
        for link in self._links if links is None else links:
            alias, name, test, negate, apply = link
            query = self._queries.get(alias)
            if query is None:
                current = self._each(current, failures, lambda each, row, record, link=link: listed(self._through((link,), each, row, record)))
                continue
            asked = []

            def ask(each, row, record, link=(alias, name, test, negate, asked.append)):
                self._through((link,), each, row, record)
                return [each]

            def outcome(each, row, record, alias=alias, name=name):
                made = told.get(id(each), [each])
                if isinstance(made, Exception):
                    raise StageFailed(TRANSFORMATION, alias, row, made, record, name) from made
                return made

            current = self._each(current, failures, ask)
            told = dict(zip(map(id, asked), query.records(asked)))

            current = self._each(current, failures, outcome)
        return [(row, records) for row, _, records in current], failures

    def transformed(self, rows, records):
        """What stands for `transform` on these records: they are worked all at once."""
        worked, failures = self.transform_all(list(zip(rows, records)))
        made = dict(worked)
        failed = {failure.row: failure for failure in failures}

        def transform(record, row):
            if row in failed:
                raise failed[row]
            return made[row]

        return transform

    @staticmethod
    def _each(current, failures, work):
        after = []
        for row, record, records in current:
            try:
                after.append((row, record, [made for each in records for made in work(each, row, record)]))
            except StageFailed as failure:
                failures.append(kept(failure))
        return after

    @property
    def has_queries(self):
        return bool(self._queries)

    # --- to the log ---

    def encode(self, record, row):
        """(key, value, headers) as bytes."""
        topic = record.topic
        headers = self.encode_headers(topic, record.headers, row, record) if record.headers else None
        try:
            key = self._key_from(topic, record.key_schema, record.key)
        except Exception as error:
            key = self._again(
                lambda: self._key_from(topic, record.key_schema, record.key), error, KEY_CONVERTER, class_name(self._key), row, record
            )
        try:
            return key, self._value_from(topic, record.value_schema, record.value), headers
        except Exception as error:
            value = self._again(
                lambda: self._value_from(topic, record.value_schema, record.value), error, VALUE_CONVERTER, class_name(self._value), row, record
            )
            return key, value, headers

    def encode_headers(self, topic, headers, row, record=None):
        def encoded():
            return [(header.name, self._header.from_header(topic, header.name, header.schema, header.value)) for header in headers]

        try:
            return encoded()
        except Exception as error:
            return self._again(encoded, error, HEADER_CONVERTER, class_name(self._header), row, record)

    # --- from the log ---

    def decode(self, topic, partition, records, row, refused=None):
        """The SinkRecord of one row of wire.Records; `refused` is what its value's converter has raised already, if it was asked."""
        key_schema, key = self.decode_key(topic, None if records.keys is None else records.keys[row], row)
        data = None if records.values is None else records.values[row]
        if refused is None:
            try:
                value_schema, value = self._value.to_connect(topic, data)
            except Exception as error:
                refused = error
        if refused is not None:
            value_schema, value = self._again(
                lambda: self._value.to_connect(topic, data), refused, VALUE_CONVERTER, class_name(self._value), row
            )
        headers = () if records.headers is None else self.decode_headers(topic, records.headers[row], row)
        timestamp = NO_TIMESTAMP if records.timestamps is None else int(records.timestamps[row])
        return SinkRecord.fetched(
            (topic, partition),
            int(records.offsets[row]),
            records.timestamp_type,
            topic,
            partition,
            key_schema,
            key,
            value_schema,
            value,
            None if timestamp == NO_TIMESTAMP else timestamp,
            headers,
        )

    def decode_key(self, topic, data, row):
        try:
            return self._key.to_connect(topic, data)
        except Exception as error:
            return self._again(lambda: self._key.to_connect(topic, data), error, KEY_CONVERTER, class_name(self._key), row)

    def decode_headers(self, topic, headers, row):
        def decoded():
            return tuple(self._decoded_header(topic, name, data) for name, data in headers or ())

        try:
            return decoded()
        except Exception as error:
            return self._again(decoded, error, HEADER_CONVERTER, class_name(self._header), row)

    def _again(self, call, error, stage, name, row, record=None, class_name=None):
        """What the call that failed so gives when it is repeated; StageFailed where it is not, or in vain."""
        if self._retry is not None and isinstance(error, RetriableError):
            try:
                return self._retry(call, error)
            except Stopped:
                raise
            except Exception as last:
                error = last
        raise StageFailed(stage, name, row, error, record, class_name) from error

    def _decoded_header(self, topic, name, data):
        schema, value = self._header.to_header(topic, name, data) or (None, None)
        return Header(name, value, schema)


def listed(result):
    """What `transform` gives, as a list."""
    return [] if result is DROPPED else result if result.__class__ is list else [result]


def kept(failure):
    """A failure without the frames that it came by, which hold whole batches."""
    without_frames(failure.error)
    return failure.with_traceback(None)


def source_rows(engine, records, rows):
    """Work these records of a source: (EncodedRows, failures, dropped rows). `rows` are their row numbers."""
    done, failures, dropped = [], [], []
    transform, encode, add = engine.transform, engine.encode, done.append
    if engine.has_queries:
        records = list(records)
        transform = engine.transformed(rows, records)
    for row, record in zip(rows, records):
        try:
            changed = transform(record, row)
            if changed is DROPPED:
                dropped.append(row)
            elif changed.__class__ is list:
                done += [(row, each, encode(each, row)) for each in changed]
                dropped += [] if changed else [row]
            else:
                add((row, changed, encode(changed, row)))
        except StageFailed as failure:
            failure.record = record
            failures.append(kept(failure))
    return EncodedRows(done), failures, dropped


def sink_rows(engine, topic, partition, records, rows, refused=NOTHING):
    """Work these rows of what was fetched: ([(row, SinkRecord)], failures, dropped rows). `refused` is what Ends.decode noted there."""
    done, failures, dropped = [], [], []
    if 2 * len(rows) > records.count:
        records = _listed(records)
    decoded = []
    for row in rows:
        try:
            record = engine.decode(topic, partition, records, row, refused.get(row))
            if engine.has_queries:
                decoded.append((row, record))
                continue
            changed = engine.transform(record, row)
            if changed is DROPPED or changed == []:
                dropped.append(row)
            elif changed.__class__ is list:
                done += [(row, each) for each in changed]
            else:
                done.append((row, changed))
        except StageFailed as failure:
            failures.append(kept(failure))
    if decoded:
        worked, failed = engine.transform_all(decoded)
        done = [(row, each) for row, made in worked for each in made]
        dropped = [row for row, made in worked if not made]
        failures = sorted(failures + failed, key=lambda failure: failure.row)
    return done, failures, dropped


def _listed(records):
    """The same with lists as columns, which are quicker to look into row by row."""
    keys, values, times = records.keys, records.values, records.timestamps
    return Records(
        records.count,
        None if keys is None else list(keys),
        None if values is None else list(values),
        None if times is None else times.tolist(),
        records.headers,
        records.offsets.tolist(),
        records.timestamp_type,
    )


class EncodedRows:
    """Records on their way to the log, as lists: what the rows engine makes of a source's records."""

    __slots__ = ("topics", "partitions", "keys", "values", "timestamps", "headers", "rows")

    def __init__(self, done):
        """`done` is a list of (row, record, (key, value, headers) as bytes)."""
        self.rows = [row for row, _, _ in done]
        self.topics = [record.topic for _, record, _ in done]
        self.partitions = [record.partition for _, record, _ in done]
        self.timestamps = [record.timestamp for _, record, _ in done]
        self.keys = [encoded[0] for _, _, encoded in done]
        self.values = [encoded[1] for _, _, encoded in done]
        self.headers = [encoded[2] for _, _, encoded in done]

    def times(self):
        if self.timestamps.count(None) == len(self.timestamps):
            return None
        return np.array([NO_TIMESTAMP if time is None else time for time in self.timestamps], np.int64)
