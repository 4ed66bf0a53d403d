"""The data source `connect`: topics as tables and streams of Spark, both ways, through our converters."""

import json

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _rows(frame):
    return [tuple(row) for row in frame.collect()]


def _drain(frame, tmp_path, **how):
    """All rows of a stream up to its end now, and the sizes of its batches."""
    rows, sizes = [], []

    def take(batch, _):
        found = [tuple(row) for row in batch.collect()]
        sizes.append(len(found))
        rows.extend(found)

    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start(**how)
    query.awaitTermination()
    return rows, sizes


def test_a_topic_is_a_table(spark, worker, options, topic):
    worker.send(topic, [("a", '{"n": 1, "Name": "Ann"}'), ("b", '{"n": 2}'), ("c", None)])
    frame = spark.read.format("connect").options(**options, topics=topic).schema("_key string, n int, name string, _offset bigint, _topic string").load()
    assert _rows(frame) == [("a", 1, "Ann", 0, topic), ("b", 2, None, 1, topic), ("c", None, None, 2, topic)]


def test_offsets_say_which_part_of_it(spark, worker, options, topic):
    worker.send(topic, [(None, f'{{"n": {n}}}') for n in range(10)])
    at = {"startingOffsets": json.dumps({topic: {"0": 3}}), "endingOffsets": json.dumps({topic: {"0": 6}})}
    frame = spark.read.format("connect").options(**options, **at, topics=topic, minPartitions=2).schema("n int").load()
    assert _rows(frame.selectExpr("n", "spark_partition_id()")) == [(3, 0), (4, 1), (5, 1)]
    frame = spark.read.format("connect").options(**options, topics=topic, maxRecordsPerPartition=4).schema("n int").load()
    assert _rows(frame.selectExpr("n", "spark_partition_id()")) == [(n, 0 if n < 3 else 1 if n < 6 else 2) for n in range(10)]


def test_its_columns_are_told_by_the_newest_record(spark, worker, options, topic):
    envelope = {"schema": {"type": "struct", "fields": [{"field": "n", "type": "int64"}]}, "payload": {"n": 7}}
    worker.send(topic, [("k", json.dumps(envelope))])
    given = {**options, "value.converter.schemas.enable": "true"}
    frame = spark.read.format("connect").options(**given, **{"topics.regex": topic}).load()
    assert frame.schema["_value"].dataType.simpleString() == "struct<n:bigint>"
    assert _rows(frame.select("_key", "_value.n", "_partition")) == [("k", 7, 0)]


def test_a_stream_goes_on_where_its_checkpoint_says(spark, worker, options, topic, tmp_path):
    worker.send(topic, [(None, f'{{"n": {n}}}') for n in range(7)])
    stream = spark.readStream.format("connect").options(**options, topics=topic, startingOffsets="earliest", maxOffsetsPerTrigger=3)
    rows, sizes = _drain(stream.schema("n int").load(), tmp_path)
    assert rows == [(n,) for n in range(7)] and sizes == [3, 3, 1]
    worker.send(topic, [(None, '{"n": 7}')])
    assert _drain(stream.schema("n int").load(), tmp_path) == ([(7,)], [1])


def test_a_record_that_cannot_be_read_is_named(spark, worker, options, topic):
    worker.send(topic, [(None, '{"n": 1}'), (None, '{"n": "x"}'), (None, "{")])
    read = spark.read.format("connect").options(**options, topics=topic).schema("n int")
    with pytest.raises(Exception, match=f"column 'n' of {topic}-0 at offset 1|The value of {topic}-0 at offset 2"):
        read.load().collect()
    assert _rows(read.option("errors.tolerance", "all").load()) == [(1,)]


def test_rows_are_written_to_a_topic(spark, worker, options, topic):
    frame = spark.createDataFrame([("a", 1, [1.5], 1_700_000_000), ("b", 2, None, 1_700_000_001)], "_key string, n int, xs array<double>, s bigint")
    frame = frame.selectExpr("_key", "n", "xs", "timestamp_seconds(s) AS _timestamp", "n > 1 AS _tombstone").coalesce(1)
    frame.write.format("connect").options(**options, topic=topic).mode("append").save()
    found = [(record.key, record.value, record.timestamp) for record in worker.records(topic, 2)]
    assert found == [(b"a", b'{"n":1,"xs":[1.5]}', 1_700_000_000_000), (b"b", None, 1_700_000_001_000)]


def test_a_stream_is_written_to_a_topic(spark, worker, options, topic, tmp_path):
    worker.send(topic, [("a", '{"n": 1}'), ("b", '{"n": 2}')])
    frame = spark.readStream.format("connect").options(**options, topics=topic, startingOffsets="earliest").schema("_key string, n int").load()
    writer = frame.writeStream.format("connect").options(**options, topic=f"{topic}-out", checkpointLocation=str(tmp_path / "c"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert [(record.key, record.value) for record in worker.records(f"{topic}-out", 2)] == [(b"a", b'{"n":1}'), (b"b", b'{"n":2}')]


def test_a_source_connector_is_a_stream(spark, tmp_path):
    lines = tmp_path / "lines"
    lines.write_text("one\ntwo\n")
    given = {"connector.class": "FileStreamSource", "file": str(lines), "topic": "lines"}
    stream = spark.readStream.format("connect").options(**given).load().select("_topic", "_value")
    assert _drain(stream, tmp_path)[0] == [("lines", "one"), ("lines", "two")]
    with lines.open("a") as more:
        more.write("three\n")
    assert _drain(stream, tmp_path)[0] == [("lines", "three")]


def test_a_sink_connector_is_a_writer(spark, tmp_path):
    frame = spark.createDataFrame([("one",), ("two",)], "_value string").coalesce(1)
    given = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out")}
    frame.write.format("connect").options(**given).mode("append").save()
    assert (tmp_path / "out").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    "given, said",
    [
        ({}, "topics"),
        ({"topics": "a", "bootstrap.servers": ""}, "bootstrap.servers"),
        ({"topics": "a", "consumer.sasl.jaas.config": "x required password='p4ss';"}, "is a secret"),
        ({"topics": "a", "startingOffsets": "now"}, "earliest, latest"),
        ({"topics": "is-not-there"}, "is-not-there, which the log does not have"),
    ],
)
def test_options_that_will_not_do_are_refused(spark, worker, options, given, said):
    worker.send("a", ["x"])
    with pytest.raises(Exception, match=said) as refused:
        spark.read.format("connect").options(**{**options, **given}).schema("n int").load().collect()
    assert "p4ss" not in str(refused.value)


def test_secrets_stay_in_the_file_that_is_named(spark, worker, options, topic, tmp_path):
    worker.send(topic, [("a", '{"n": 1}')])
    file = tmp_path / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in {**options, "consumer.ssl.key.password": "p4ss"}.items()))
    frame = spark.read.format("connect").options(config=str(file), topics=topic).schema("n int").load()
    assert _rows(frame) == [(1,)]
    assert "p4ss" not in frame._jdf.queryExecution().toString()
