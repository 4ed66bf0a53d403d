"""On an executor: proxies of the worker's offsets, state and group, over the task's channel."""

import threading

import orjson

from standalone.connector import OffsetReader
from standalone.errors import ConnectError, LogFatalError, LogRetriableError
from standalone.runtime.cluster.control_channel import ChannelLost

_ANSWER_SECONDS = 60.0


class OffsetsProxy:
    """The worker's offsets file. `append` sends; the worker stores in that order, and rejects offsets of a task that has a successor."""

    def __init__(self, channel):
        self._channel = channel
        self._trouble = None

    def reader(self, connector):
        return _Reader(self)

    def get(self, connector, partition):
        return self._channel.ask("offset", partition, _ANSWER_SECONDS)

    def all(self, connector):
        return [(partition, offset) for partition, offset in self._channel.ask("all_offsets", None, _ANSWER_SECONDS)]

    def append(self, connector, entries):
        if self._trouble is not None:
            raise ConnectError(self._trouble)
        try:
            self._channel.send("offsets", entries)
        except (TypeError, orjson.JSONEncodeError) as error:
            raise ConnectError(
                f"A source offset of connector '{connector}' cannot be stored: {error}. "
                "Partitions and offsets must be dicts of strings, numbers and booleans."
            ) from error

    def sync(self):
        """Offsets are durable once the worker has responded."""
        return self._channel.ask("sync", None, _ANSWER_SECONDS)

    def refused(self, text):
        self._trouble = text


class _Reader(OffsetReader):
    def __init__(self, offsets):
        self._offsets = offsets

    def offset(self, partition):
        return self._offsets.get(None, partition)


class StateProxy:
    """The part of the worker's state that tasks write."""

    def __init__(self, channel, first_schemas):
        self._channel = channel
        self._first_schemas = first_schemas

    def put_topic(self, connector, topic):
        self._channel.send("topic", topic)

    def first_schemas(self, connector):
        return self._first_schemas

    def put_first_schema(self, connector, topic, text):
        self._channel.send("first_schema", [topic, text])

    def note_event(self, connector, number, state, text):
        self._channel.send("event", [state, text])


class GroupProxy:
    """Connects a RelayedGroup to the worker, which is the group member."""

    def __init__(self, channel, flush_seconds):
        self._channel = channel
        self._flush_seconds = flush_seconds

    def commit(self, offsets, seconds):
        body = [[*pair, *mark] for pair, mark in offsets.items()]
        try:
            refused = self._channel.ask("commit", [body, seconds], (seconds or self._flush_seconds) + self._flush_seconds)
        except ChannelLost as error:
            raise LogRetriableError(f"Offsets cannot be committed: {error}") from error
        if refused is not None:
            kind = LogRetriableError if refused["retriable"] else LogFatalError
            raise kind(refused["message"], refused["java_class"])

    def released(self, pairs):
        try:
            self._channel.send("released", [list(pair) for pair in pairs])
        except ChannelLost:
            return  # they belong to another task already


class Forwarder:
    """Forwards log records and metrics to the worker: drops what cannot be sent at once, so that a task never waits."""

    def __init__(self, channel):
        self._channel = channel
        self._inside = threading.local()

    def __call__(self, kind, body):
        if getattr(self._inside, "now", False):
            return  # logged while sending: would recurse
        self._inside.now = True
        try:
            self._channel.send(kind, body)
        except (ChannelLost, TypeError):
            return
        finally:
            self._inside.now = False
