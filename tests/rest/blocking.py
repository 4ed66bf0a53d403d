"""A source and a sink of which one method never comes back. Named by path: tests.rest.blocking:BlockingSource.

`BLOCK.at(hook)` says which, such as "Task.poll"; `BLOCK.reached` is set once somebody waits there; `BLOCK.release()` lets all go.
"""

import threading

from standalone import ConfigDef, SinkConnector, SinkTask, SourceConnector, SourceRecord, SourceTask


class Block:
    def __init__(self):
        self.at(None)

    def at(self, hook):
        self._hook = hook
        self.reached = threading.Event()
        self._released = threading.Event()

    def release(self):
        self._hook = None
        self._released.set()

    def here(self, hook):
        if hook == self._hook:
            self.reached.set()
            self._released.wait()


BLOCK = Block()


class _Asked:
    """A class attribute that is a call, as in Java."""

    def __init__(self, hook, value):
        self._hook, self._value = hook, value

    def __get__(self, instance, owner):
        BLOCK.here(self._hook)
        return self._value


class _Blocking:
    config_def = _Asked("Connector.config", ConfigDef())
    version = _Asked("Connector.version", "1")

    def initialize(self, context):
        super().initialize(context)
        BLOCK.here("Connector.initialize")

    def start(self, config):
        super().start(config)
        BLOCK.here("Connector.start")

    def task_configs(self, max_tasks):
        BLOCK.here("Connector.task_configs")
        return [{}]

    def stop(self):
        BLOCK.here("Connector.stop")

    def validate(self, config):
        BLOCK.here("Connector.validate")
        return super().validate(config)

    def alter_offsets(self, config, offsets):
        BLOCK.here("Connector.alter_offsets")
        return True


class _BlockingTask:
    def initialize(self, context):
        super().initialize(context)
        BLOCK.here("Task.initialize")

    def start(self, config):
        BLOCK.here("Task.start")

    def stop(self):
        BLOCK.here("Task.stop")


class BlockingSourceTask(_BlockingTask, SourceTask):
    version = _Asked("Task.version", "1")

    def start(self, config):
        super().start(config)
        self._over = threading.Event()
        self._number = 0

    def poll(self):
        BLOCK.here("Task.poll")
        self._over.wait(0.05)
        self._number += 1
        return [SourceRecord("blocks", value=str(self._number), source_partition={"p": 1}, source_offset={"n": self._number})]

    def commit_record(self, record, metadata):
        BLOCK.here("Task.commit_record")

    def commit(self):
        BLOCK.here("Task.commit")


class BlockingSinkTask(_BlockingTask, SinkTask):
    version = _Asked("Task.version", "1")

    def open(self, partitions):
        BLOCK.here("Task.open")

    def put(self, records):
        if records:
            BLOCK.here("Task.put")

    def flush(self, offsets):
        BLOCK.here("Task.flush")

    def pre_commit(self, offsets):
        BLOCK.here("Task.pre_commit")
        return super().pre_commit(offsets)

    def close(self, partitions):
        BLOCK.here("Task.close")


class BlockingSource(_Blocking, SourceConnector):
    task_class = BlockingSourceTask


class BlockingSink(_Blocking, SinkConnector):
    task_class = BlockingSinkTask
