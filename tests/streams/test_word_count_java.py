"""The word count of config/connect-streams.sql beside Kafka Streams' own, the Java demo: the same lines in one Kafka, the same counts out."""

import collections
import contextlib
import pathlib
import random
import re

import pytest

from standalone.testing import wait_for
from tests.servers.kafka_broker import KafkaBroker
from tests.servers.word_count_demo import INPUT, OUTPUT, WordCountDemo
from tests.streams.on_worker import Sql
from tests.suite.shared import skipped_where_unavailable

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.night]

SAMPLE = pathlib.Path(__file__).parents[2] / "config" / "connect-streams.sql"
WORDS = ["all", "Streams", "lead", "to", "Kafka", "hello", "naïve", "x1", "snake_case", "'quoted'", "(two)", "--", "a.b", ""]


def _lines(count):
    """Each has a letter: of a line without any Java makes no word at all, and SQL an empty one."""
    chance = random.Random(3)
    return [" ".join([*chance.choices(WORDS, k=chance.randrange(1, 6)), "a"]) + chance.choice(("", "", ".", "! ", " end")) for _ in range(count)]


@pytest.mark.timeout(900)
def test_the_counts_are_those_of_the_java_demo(start_worker, tmp_path):
    with contextlib.ExitStack() as running:
        with skipped_where_unavailable():
            broker = running.enter_context(KafkaBroker())
        (tmp_path / "ours.sql").write_text(SAMPLE.read_text().replace(OUTPUT, "ours"))
        worker = start_worker(tmp_path, bootstrap__servers=broker.bootstrap)
        with worker:
            lines = _lines(200)
            worker.send(INPUT, lines)
            worker.process.worker.clients.admin({}).create_topics(OUTPUT, 1, 1, {})
            with skipped_where_unavailable(), WordCountDemo(broker.bootstrap):
                worker.process.create_connectors([tmp_path / "ours.sql"])
                sql = Sql(worker)
                total = sum(len(_words(line)) for line in lines)
                wait_for(lambda: len(sql.records(OUTPUT)) >= total)
                theirs = _updates(sql.records(OUTPUT))
                assert sum(len(counts) for counts in theirs.values()) == total  # as many as the model here says: the demo was understood
                sql.final("ours", dict(sql.records(OUTPUT)))
                for word, counts in _updates(sql.records("ours")).items():
                    assert set(counts) <= set(theirs[word]) and counts == sorted(counts), word  # ours are of batches, theirs of records


def _words(line):
    """As Java's String.split does it: what is empty at the end is left out."""
    found = re.split(r"[^a-zA-Z0-9_]+", line.lower())
    return found if found[-1] else found[:-1]


def _updates(records):
    found = collections.defaultdict(list)
    for word, count in records:
        found[word].append(int.from_bytes(count, "big"))
    return found
