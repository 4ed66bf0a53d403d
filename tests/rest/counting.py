"""Connectors that count their starts and stops, and fail when they are told to. Named by path: tests.rest.counting:CountingSource.

`COUNTS` holds starts and stops of "connector" and of each task's number; names in `FAIL` fail when they start.
"""

import collections
import threading

from standalone import LOW, STRING, ConfigDef, ConnectError, Option, SinkConnector, SinkTask, SourceConnector, SourceRecord, SourceTask

COUNTS = collections.Counter()
FAIL = set()
TASKS = 4


class _Counting:
    config_def = ConfigDef(
        Option("topic", STRING, LOW, "Where records go.", "counted"),
        Option("records", STRING, LOW, "How many each task makes.", "10"),
        Option("managed", STRING, LOW, "Whether offsets need nothing more.", "false"),
    )

    def start(self, config):
        super().start(config)
        COUNTS["connector starts"] += 1
        if "connector" in FAIL:
            raise ConnectError("the connector was told to fail")

    def task_configs(self, max_tasks):
        return [{"number": str(number)} for number in range(max_tasks)]

    def stop(self):
        COUNTS["connector stops"] += 1

    def alter_offsets(self, config, offsets):
        return config.get("managed") == "true"


class CountingSourceTask(SourceTask):
    def start(self, config):
        super().start(config)
        self._number, self._over = int(config["number"]), threading.Event()
        COUNTS[f"{self._number} starts"] += 1
        if self._number in FAIL:
            raise ConnectError(f"task {self._number} was told to fail")
        self._partition = {"task.id": f"{config['name']}-{self._number}"}
        saved = self.context.offset_reader.offset(self._partition) or {"saved": 0}
        self._left = range(saved["saved"] + 1, int(config.get("records", "10")) + 1)
        self._topic = config.get("topic", "counted")

    def poll(self):
        records = [SourceRecord(self._topic, str(n), self._partition, {"saved": n}) for n in self._left]
        self._left = ()
        if not records:
            self._over.wait(0.2)
        return records

    def stop(self):
        COUNTS[f"{self._number} stops"] += 1
        self._over.set()


class CountingSource(_Counting, SourceConnector):
    task_class = CountingSourceTask


class CountingSinkTask(SinkTask):
    def start(self, config):
        pass

    def put(self, records):
        pass

    def stop(self):
        pass


class CountingSink(_Counting, SinkConnector):
    task_class = CountingSinkTask
