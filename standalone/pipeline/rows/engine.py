"""The rows engine: the chain record by record, as its row forms say. It is the truth that the columns engine is checked against."""

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
        self.converting = threading.Lock()  # converters are one thread's at a time, as in Java; the next batch is decoded in the background
        self._queries = queries or {}
        self.has_queries = bool(self._queries)
        self._steps = {}  # (low, high) -> what to do between these links
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
        """The record after all links, or DROPPED; a list where a link makes several of one."""
        return self._through(self._links, record, row, record)

    def through(self, items, low, high, failures):
        """An iterator of (place, row, record) after the links from low to high; the list `failures` gets (row, failure) on the way. Each
        record goes all the way before the next one comes, but for statements: their jobs are as quick for many records as for one.
        """
        steps = self._steps.get((low, high))
        if steps is None:
            steps = self._steps[low, high] = self._steps_of(self._links[low:high])
        for step in steps:
            items = step(items, failures)
        return items

    def _steps_of(self, links):
        """A step for each statement, and for each run of links between them."""
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
        """What stands for `transform` on these records, {row: record}, which are processed all at once."""
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
            outcome = outcomes.get(id(record), [record])  # the predicate may say that it is not for the statement
            if isinstance(outcome, Exception):
                failure = StageFailed(TRANSFORMATION, alias, row, outcome, None, name)
                failure.__cause__ = outcome
                failures.append((row, kept(failure)))
            else:
                yield from ((place, row, each) for each in outcome)

    def _part(self, links):
        """The like of `transform` that does only these links."""
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

    # --- to the log ---

    def encode(self, record, row):
        """(key, value, headers) as bytes."""
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

    # --- from the log ---

    def decode(self, topic, partition, records, row, refused=None):
        """The SinkRecord of one row of wire.Records; `refused` is what its value's converter has raised already, if it was asked."""
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
        """What the call that failed so gives when it is repeated; StageFailed where it is not, or without success."""
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
    """Work the records of a source: ([(row, record, (key, value, headers) as bytes)], failures, dropped rows)."""
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
    """Work what was fetched: ([(row, SinkRecord)], failures, dropped rows)."""
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
