"""Statements on a worker, and what they bring into its log."""

import json
import os
import uuid

from standalone.testing import wait_for


class Sql:
    """Statements on a worker; a name `x_` in them is this test's own."""

    def __init__(self, worker):
        self.worker = worker
        self.engine = worker.process.worker.streaming.get()
        self.own = f"q{uuid.uuid4().hex[:6]}_"

    def text(self, text):
        return text.replace("x_", self.own)

    def __call__(self, text, **properties):
        answers = self.engine.execute(self.text(text), {key.replace("__", "."): str(value) for key, value in properties.items()})
        return answers[-1]

    def rows(self, text):
        return [tuple(row) for row in self(text)["rows"]]

    def records(self, name):
        """[(key, value)] of what is committed in a topic, by partition and offset."""
        return committed_pairs(self.worker.process.worker.clients, self.text(name))

    def topic(self, name, count, seconds=150):
        """The same, once there are so many."""
        wait_for(lambda: len(self.records(name)) >= count, seconds, f"{count} records in {name}; {self.trouble()}")
        return self.records(name)

    def final(self, name, wanted, seconds=150):
        """Until the newest value of each key of a topic is what is wanted: {key: value}."""

        def found():
            return {key: value for key, value in dict(self.records(name)).items() if value is not None}

        try:
            wait_for(lambda: found() == wanted, seconds)
        except AssertionError:
            assert found() == wanted, self.trouble()
            raise

    def trouble(self):
        for name in self.engine.queries.names():
            for part in self.engine.queries.status(name)["tasks"]:
                if part.get("trace"):
                    return part["trace"]
        return None

    def push(self, text, count, seconds=60, **properties):
        """So many rows of a push query."""
        cursor, rows = self(text, **properties)["cursor"], []
        wait_for(lambda: rows.extend(self.engine.cursors.rows(cursor, 1.0)["rows"]) or len(rows) >= count, seconds)
        return [tuple(row) for row in rows]

    def clear(self):
        for name in self.engine.queries.names():
            if self.own in self.engine.queries.config(name)["statement"]:
                self.engine.execute(f"TERMINATE {name};")


def committed_pairs(clients, topic):
    """[(key, value)] of what is committed in a topic, by partition and offset."""
    from standalone.streams.ranges import Ranges

    ranges = Ranges(clients)
    try:
        pairs, found = ranges.pairs(topics=[topic]), []
        begins, ends = ranges.begins(pairs), ranges.ends(pairs)
        for pair in pairs:
            for records in ranges.read(*pair, begins[pair], ends[pair]):
                empty = [None] * len(records)
                found += zip(records.keys or empty, records.values or empty)
        return found
    finally:
        ranges.close()


def worked(checkpoint):
    """How far the batches of a query are that are committed: (offset, watermark), of one topic of one partition."""
    try:
        last = max(int(name) for name in os.listdir(os.path.join(checkpoint, "commits")) if name.isdigit())
        with open(os.path.join(checkpoint, "offsets", str(last)), encoding="utf-8") as file:
            _, metadata, offsets = file.read().splitlines()
        (partitions,) = json.loads(offsets).values()
        return partitions["0"], json.loads(metadata)["batchWatermarkMs"]
    except (OSError, ValueError):
        return None
