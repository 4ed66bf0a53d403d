"""The rows engine: the chain record by record, as its row meanings say. It is the truth that the columns engine is held to."""

import functools

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
        failures = []
        for links in self._runs(self._links[low:high]):
            items, more = (self._asked if links and links[0][0] in self._queries else self._worked)(links, items)
            failures += more
        return items, failures

    def _runs(self, links):
        """The links in runs: each SQL statement alone, and what stands between them."""
        runs = [[]]
        for link in links:
            if link[0] in self._queries:
                runs += [[link], []]
            else:
                runs[-1].append(link)
        return [run for run in runs if run] or [[]]

    def _worked(self, links, items):
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

    def _asked(self, links, items):
        """The same of a statement, whose jobs are as quick for many records as for one."""
        ((alias, name, test, negate, _),) = links
        asked, left, made, failures = [], [], [], []
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
                made += [(place, row, each) for each in outcome]
        return made, failures

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


def source_rows(engine, records):
    """Work the records of a source: ([(row, record, (key, value, headers) as bytes)], failures, dropped rows)."""
    made, failed = engine.through(((row, row, record) for row, record in enumerate(records)), 0, None)
    done, failures, encode = [], dict(failed), engine.encode
    for _, row, record in made:
        try:
            done.append((row, record, encode(record, row)))
        except StageFailed as failure:
            failures[row] = kept(failure)
    for row, failure in failures.items():
        failure.record = records[row]
    return _settled(done, failures, len(records))


def sink_rows(engine, topic, partition, records):
    """Work what was fetched: ([(row, SinkRecord)], failures, dropped rows)."""
    items, failures, listed, decode = [], {}, _listed(records), engine.decode
    for row in range(records.count):
        try:
            items.append((row, row, decode(topic, partition, listed, row)))
        except StageFailed as failure:
            failures[row] = kept(failure)
    made, failed = engine.through(items, 0, None)
    if failed:
        decoded = {row: record for row, _, record in items}
        for row, failure in failed:
            failure.record = decoded[row]
            failures[row] = failure
    return _settled([(row, record) for _, row, record in made], failures, records.count)


def _settled(done, failures, count):
    """What was done of rows that did not fail, the failures, and the rows that are in neither."""
    if not failures and [each[0] for each in done] == list(range(count)):
        return done, [], []
    if failures:
        done = [each for each in done if each[0] not in failures]
    there = {each[0] for each in done}
    return done, list(failures.values()), [row for row in range(count) if row not in there and row not in failures]


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
