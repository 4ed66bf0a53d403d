"""Kafka Streams' word count, as its demo has it: the same topics, and what its console consumer prints; in SQL and in ten lines of Python."""

import pathlib

import pytest

from tests.streams.on_worker import Sql

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SAMPLE = pathlib.Path(__file__).parents[2] / "config" / "connect-streams.sql"
LINES = ["all streams lead to kafka", "hello kafka streams", "join kafka summit"]
INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"
TWO_LINES = {"all": 1, "streams": 2, "lead": 1, "to": 1, "kafka": 2, "hello": 1}
ALL_LINES = {**TWO_LINES, "kafka": 3, "join": 1, "summit": 1}


def test_the_sample_counts_words_over_a_restart(start_worker, tmp_path):
    worker = start_worker(tmp_path)
    worker.files = [SAMPLE]
    with worker:
        sql = Sql(worker)
        worker.send(INPUT, LINES[:2])
        sql.final(OUTPUT, _bytes(TWO_LINES))
        assert sorted(sql.rows("SELECT * FROM counts;")) == sorted(TWO_LINES.items())
        assert len(sql.rows("SHOW QUERIES;")) == 2
    with worker:
        sql = Sql(worker)
        worker.send(INPUT, LINES[2:])
        sql.final(OUTPUT, _bytes(ALL_LINES))
        assert len(sql.rows("SHOW QUERIES;")) == 2  # statements that were run before are skipped
        written = sql.records(OUTPUT)
        for word, count in ALL_LINES.items():  # each count once: what the console consumer of the demo prints for the word
            assert [value for key, value in written if key == word.encode()][-1] == _bytes(ALL_LINES)[word.encode()]
            assert len([key for key, _ in written if key == word.encode()]) <= count


def test_ten_lines_of_python_count_them_too(spark_holder, worker, tmp_path, topic):
    from standalone.streams import Streams

    worker.send(topic, LINES)
    streams = Streams(spark_holder.wait(120), topic, {"bootstrap.servers": worker.bootstrap}, str(tmp_path))
    lines = streams.stream(topic)
    words = lines.flat_map("split(lower(value), ' ')").filter(lambda word: word != "")
    counts = words.group_by("value").count()
    counts.to(f"{topic}-out")
    streams.start()
    try:
        streams.done()
        assert dict(Sql(worker).records(f"{topic}-out")) == _bytes(ALL_LINES)
    finally:
        streams.stop()


def _bytes(counts):
    return {word.encode(): count.to_bytes(8, "big") for word, count in counts.items()}
