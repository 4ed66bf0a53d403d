"""While a sink's task has a batch, the one behind it is fetched and decoded, also where no Spark is asked."""

import threading

import pytest

from standalone import SinkConnector, SinkTask
from standalone.converters.json import JsonConverter
from standalone.runtime.tasks.look_ahead import LookAhead
from tests.runtime.local import LocalWorker, wait_for
from tests.suite.patience import PATIENCE_SECONDS

HERE = "tests.runtime.test_sink_overlap"
COUNT, FETCH_BYTES = 8000, 2_500_000


class Watched(JsonConverter):
    """Is at the first batch until the second is fetched."""

    batches = 0
    is_fetched = is_begun = None  # events of the second batch

    def decode(self, topic, column):
        Watched.batches += topic == "t"  # it is tried beforehand, too
        if topic != "t":
            pass
        elif Watched.batches == 1:
            Watched.is_fetched.wait(PATIENCE_SECONDS)
        else:
            Watched.is_begun.set()
        return super().decode(topic, column)


class Waiting(SinkTask):
    """Its first put ends when the second batch is begun to be decoded."""

    takes_batches = True
    offsets = []
    was_ahead = None

    def put(self, batches):
        if batches and Waiting.was_ahead is None:
            Waiting.was_ahead = Watched.is_begun.wait(PATIENCE_SECONDS)
        for batch in batches:
            Waiting.offsets += batch.offsets.tolist()


class WaitingSink(SinkConnector):
    task_class = Waiting


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(Watched, "batches", 0)
    monkeypatch.setattr(Watched, "is_fetched", threading.Event())
    monkeypatch.setattr(Watched, "is_begun", threading.Event())
    add, added = LookAhead.add, []

    def noting(ahead, batch, work, nbytes):
        added.append(batch)
        if len(added) > 1:
            Watched.is_fetched.set()
        add(ahead, batch, work, nbytes)

    monkeypatch.setattr(LookAhead, "add", noting)
    monkeypatch.setattr(Waiting, "offsets", [])
    monkeypatch.setattr(Waiting, "was_ahead", None)


def test_the_next_batch_is_decoded_while_the_task_has_this_one(tmp_path):
    text = "x" * 1000
    with LocalWorker(tmp_path, value__converter=f"{HERE}:Watched", value__converter__schemas__enable="false") as worker:
        worker.send("t", [f'{{"id":{number},"text":"{text}"}}' for number in range(COUNT)])
        fetch = {f"consumer.override.{name}": FETCH_BYTES for name in ("fetch.max.bytes", "max.partition.fetch.bytes")}
        worker.create("sink", {"connector.class": f"{HERE}:WaitingSink", "topics": "t", **fetch})
        wait_for(lambda: len(Waiting.offsets) == COUNT, what="all records")
    assert Waiting.was_ahead and Waiting.offsets == list(range(COUNT))
