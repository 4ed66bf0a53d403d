"""A stream at the end of its topic: the broker is asked to wait for more, and not asked again and again whether there is some."""

import threading

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from standalone.streams.ranges import Ranges
from standalone.streams.source import TopicStreamReader
from standalone.testing import LocalWorker

pytestmark = pytest.mark.slow


def test_the_broker_waits_at_the_end_of_a_topic(tmp_path, monkeypatch):
    asked, ends = [], Ranges.ends
    monkeypatch.setattr(Ranges, "ends", lambda ranges, *args, **more: asked.append(args) or ends(ranges, *args, **more))
    with LocalWorker(tmp_path) as worker:
        worker.send("t", ["one"])
        options, start = {"bootstrap.servers": worker.bootstrap, "topics": "t"}, {"t": {"0": 1}}
        reader = TopicStreamReader({**options, "maxWaitMs": "1000"}, None)
        assert reader.latestOffset(start, ReadAllAvailable()) == start
        assert len(asked) <= 3, "before the broker waited, and after that"
        asked.clear()
        threading.Timer(0.3, worker.send, ("t", ["two"])).start()
        patient = TopicStreamReader({**options, "maxWaitMs": "60000"}, None)
        assert patient.latestOffset(start, ReadAllAvailable()) == {"t": {"0": 2}}
        assert len(asked) <= 3
        reader.stop()
        patient.stop()
