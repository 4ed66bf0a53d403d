"""The rows engine: runs the chain record by record. It is the reference that tests compare the columns engine with."""

import functools
import threading

from standalone.data.record import Header, SinkRecord
from standalone.errors import RetriableError, Stopped, without_frames
from standalone.stage import StageFailed
from standalone.wire import NO_TIMESTAMP, Records

TRANSFORMATION = "TRANSFORMATION"
KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER = "KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER"
DROPPED = None


def class_name(stage):
    """The class name shown for a stage."""
    return type(stage).java_name or f"{type(stage).__module__}.{type(stage).__qualname__}"


class RowsEngine:
    """Interprets one chain. Each method processes one record and raises StageFailed for any error of a stage.

    `retry(call, error)` repeats a call after this RetriableError: it returns the call's result, or raises the error to report. Without
    `retry` the first such error is final.
    """

    def __init__(self, chain, retry=None, queries=None):
        """`queries` runs the links that are SQL statements: {alias: Query}."""
        self._retry = retry
        self.converting = threading.Lock()  # one thread at a time uses converters, as in Java; the next batch is decoded in the background
        self._queries = queries or {}
        self.has_queries = bool(self._queries)
        self._steps = {}  # (low, high) -> steps between these links
        self._links = [
            (link.alias, class_name(link.transform), link.predicate and link.predicate.test, bool(link.negate), self._apply(link))
            for link in chain.links
        ]
        self._key, self._value, self._header = chain.key_converter, chain.value_converter, chain.header_converter
        self._key_from, self._value_from = (converter and converter.from_connect for converter in (self._key, self._value))
        self._writes_headers = any(converter is not None and converter.writes_headers for converter in (self._key, self._value))

    def _apply(self, link):
        query = self._queries.get(link.alias)
        return link.transform.apply if query is None else query.record

    def transform(self, record, row):
        """Return the record after all links, or DROPPED; a list if a link produced several."""
        return self._through(self._links, record, row, record)

    def through(self, items, low, high, failures):
        """Yield (place, row, record) after links low to high; appends (row, failure) to `failures`. Each record passes all links before the
        next one, except at SQL statements, whose jobs take many records at once.
        """
        steps = self._steps.get((low, high))
        if steps is None:
            steps = self._steps[low, high] = self._steps_of(self._links[low:high])
        for step in steps:
            items = step(items, failures)
        return items

    def _steps_of(self, links):
        """One step per statement, and per run of links between statements."""
        runs = [[]]
        for link in links:
            if link[0] in self._queries:
                runs += [[link], []]
            else:
                runs[-1].append(link)
        runs = [run for run in runs if run] or [[]]
        is_query = [bool(run) and run[0][0] in self._queries for run in runs]
        return [functools.partial(self._asked, run[0]) if asks else functools.partial(_worked, self._part(run)) for run, asks in zip(runs, is_query)]

    def transformed(self, records):
        """Transform all these records, {row: record}, together; return a function that looks up the results like `transform`."""
        made, failures = {row: [] for row in records}, []
        for _, row, record in self.through([(row, row, record) for row, record in records.items()], 0, None, failures):
            made[row].append(record)
        failed = dict(failures)

        def transform(record, row):
            if row in failed:
                failed[row].record = record
                raise failed[row]
            return made[row]

        return transform

    def _asked(self, link, items, failures):
        alias, name, test, negate, _ = link
        asked, left = [], []
        for item in items:
            try:
                self._through([(alias, name, test, negate, asked.append)], item[2], item[1])
                left.append(item)
            except StageFailed as failure:
                failures.append((item[1], kept(failure)))
        outcomes = dict(zip(map(id, asked), self._queries[alias].records(asked)))
        for place, row, record in left:
            outcome = outcomes.get(id(record), [record])  # the predicate may exclude it from the statement
            if isinstance(outcome, Exception):
                failure = StageFailed(TRANSFORMATION, alias, row, outcome, None, name)
                failure.__cause__ = outcome
                failures.append((row, kept(failure)))
            else:
                yield from ((place, row, each) for each in outcome)

    def _part(self, links):
        """Return a function like `transform` for these links only."""
        if len(links) != 1 or links[0][2] is not None:
            return functools.partial(self._through, links)
        alias, name, _, _, apply = links[0]

        def alone(record, row):
            try:
                return apply(record)
            except Exception as error:
                return self._again(lambda: apply(record), error, TRANSFORMATION, alias, row, None, name)

        return alone

    def _through(self, links, result, row, record=None):
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

    # --- encoding ---

    def encode(self, record, row):
        """Return (key, value, headers) as bytes."""
        topic = record.topic
        headers = self.encode_headers(topic, record.headers, row, record) if record.headers else None
        key_from, value_from = self._key_from, self._value_from
        if self._writes_headers:
            headers = [] if headers is None else headers
            key_from, value_from = (functools.partial(each.written, headers=headers) for each in (self._key, self._value))
        try:
            key = key_from(topic, record.key_schema, record.key)
        except Exception as error:
            key = self._again(lambda: key_from(topic, record.key_schema, record.key), error, KEY_CONVERTER, class_name(self._key), row, record)
        try:
            return key, value_from(topic, record.value_schema, record.value), headers
        except Exception as error:
            value = self._again(
                lambda: value_from(topic, record.value_schema, record.value), error, VALUE_CONVERTER, class_name(self._value), row, record
            )
            return key, value, headers

    def encode_headers(self, topic, headers, row, record=None):
        def encoded():
            return [(header.name, self._header.from_header(topic, header.name, header.schema, header.value)) for header in headers]

        try:
            return encoded()
        except Exception as error:
            return self._again(encoded, error, HEADER_CONVERTER, class_name(self._header), row, record)

    # --- decoding ---

    def decode(self, topic, partition, records, row, refused=None):
        """Return the SinkRecord of one row of wire.Records; `refused` is the value converter's error if it was called already."""
        with self.converting:
            return self._decoded(topic, partition, records, row, refused)

    def _decoded(self, topic, partition, records, row, refused):
        raw_headers = None if records.headers is None else records.headers[row]
        key_schema, key = self._decode_key(topic, None if records.keys is None else records.keys[row], raw_headers, row)
        data = None if records.values is None else records.values[row]
        if refused is None:
            try:
                value_schema, value = self._value.read(topic, data, raw_headers)
            except Exception as error:
                refused = error
        if refused is not None:
            value_schema, value = self._again(
                lambda: self._value.read(topic, data, raw_headers), refused, VALUE_CONVERTER, class_name(self._value), row
            )
        headers = () if records.headers is None else self.decode_headers(topic, raw_headers, row)
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

    def _decode_key(self, topic, data, headers, row):
        try:
            return self._key.read(topic, data, headers)
        except Exception as error:
            return self._again(lambda: self._key.read(topic, data, headers), error, KEY_CONVERTER, class_name(self._key), row)

    def decode_headers(self, topic, headers, row):
        def decoded():
            return tuple(self._decoded_header(topic, name, data) for name, data in headers or ())

        try:
            return decoded()
        except Exception as error:
            return self._again(decoded, error, HEADER_CONVERTER, class_name(self._header), row)

    def _again(self, call, error, stage, name, row, record=None, class_name=None):
        """Return the result of a failed call after retries; raise StageFailed if it cannot be retried or keeps failing."""
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
    """Return the result of `transform` as a list."""
    return [] if result is DROPPED else result if result.__class__ is list else [result]


def kept(failure):
    """Drop a failure's traceback, whose frames hold whole batches."""
    without_frames(failure.error)
    return failure.with_traceback(None)


def _worked(work, items, failures):
    for place, row, record in items:
        try:
            result = work(record, row)
        except StageFailed as failure:
            failures.append((row, kept(failure)))
            continue
        if result.__class__ is list:
            for each in result:
                yield place, row, each
        elif result is not DROPPED:
            yield place, row, result


def source_rows(engine, records):
    """Process a source's records: ([(row, record, (key, value, headers) as bytes)], failures, dropped rows)."""
    done, failures, dropped = [], [], []
    encode, add = engine.encode, done.append
    transform = engine.transformed(dict(enumerate(records))) if engine.has_queries else engine.transform
    for row, record in enumerate(records):
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
    return done, failures, dropped


def sink_rows(engine, topic, partition, records):
    """Process fetched records: ([(row, SinkRecord)], failures, dropped rows)."""
    done, failures, dropped, listed = [], [], [], _listed(records)
    rows, decode, transform = range(records.count), engine.decode, engine.transform
    if engine.has_queries:
        came = {}
        for row in rows:
            try:
                came[row] = decode(topic, partition, listed, row)
            except StageFailed as failure:
                failures.append(kept(failure))
        rows, decode, transform = came, lambda topic, partition, listed, row: came[row], engine.transformed(came)
    for row in rows:
        try:
            changed = transform(decode(topic, partition, listed, row), row)
            if changed is DROPPED or changed == []:
                dropped.append(row)
            elif changed.__class__ is list:
                done += [(row, each) for each in changed]
            else:
                done.append((row, changed))
        except StageFailed as failure:
            failures.append(kept(failure))
    return done, failures, dropped


def _listed(records):
    """Convert columns to lists, which are faster to read row by row."""
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
