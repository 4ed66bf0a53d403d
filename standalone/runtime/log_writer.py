"""Produces a single record for the UI: sends it and waits for the acknowledgement."""

import threading

import numpy as np

from standalone.errors import ConnectError
from standalone.log.producer import Producer
from standalone.wire import ByteColumn, Records

_WRITE_SECONDS = 20.0


class LogWriter:
    """`config` is the ProducerConfig of the worker's own clients. Each record gets a new producer, as single records are rare."""

    def __init__(self, cluster, config, clock):
        self._cluster, self._config, self._clock = cluster, config, clock

    def write(self, topic, key, value):
        """(partition, offset) of the acknowledged record; the offset is None if the broker no longer knows it. Raises LogError."""
        producer = Producer(self._cluster, self._config, self._clock)
        sender = threading.Thread(target=producer.run, name="send-one", daemon=True)
        sender.start()
        finished, outcome = threading.Event(), []

        def done(delivered):
            outcome.append(delivered)
            finished.set()

        try:
            records = Records(1, ByteColumn.of([key]), ByteColumn.of([value]), np.array([self._clock.now_ms()], np.int64))
            producer.send(topic, None, records, done)
            if not self._clock.wait(finished, _WRITE_SECONDS):
                raise ConnectError(f"The record was not acknowledged within {_WRITE_SECONDS:.0f} s; it may still be written to the topic '{topic}'.")
            if outcome[0].error is not None:
                raise outcome[0].error
            _, partition, offset, _ = outcome[0].acks[0]
            return partition, None if offset < 0 else offset
        finally:
            producer.close()
            sender.join()
