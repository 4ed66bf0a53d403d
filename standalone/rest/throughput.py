"""Records a second of each connector over the last minutes. Measured only while somebody looks, so that a worker left alone does nothing."""

import collections
import threading

SAMPLE_SECONDS = 2.0
KEPT_SAMPLES = 300  # ten minutes
_LOOKED_AT_SECONDS = 900.0  # how long after the last look it is still measured


def records_of(herder):
    """[(connector, runner, records)] of all tasks: polled by sources, given to sinks, since each task started."""
    return [(runner.connector, runner, runner.meter.records) for runner in herder.runners()]


class Throughput:
    """Thread-safe. `look` starts the measuring; `since` is the number of the last sample that the caller has."""

    def __init__(self, herder, clock):
        self._herder, self._clock = herder, clock
        self._lock = threading.Lock()
        self._samples = collections.deque(maxlen=KEPT_SAMPLES)  # (number, milliseconds, {connector: records a second})
        self._counts = {}  # runner -> records
        self._measured = None
        self._wanted_until = 0.0
        self._measuring = False
        self._never = threading.Event()

    def look(self, since=0):
        """{totals: {connector: records since its tasks started}, samples: [{number, at, rates}]} with all later samples."""
        with self._lock:
            self._wanted_until = self._clock.monotonic() + _LOOKED_AT_SECONDS
            if not self._measuring:
                self._measuring = True
                self._measure()
                threading.Thread(target=self._keep_measuring, name="throughput", daemon=True).start()
            samples = [sample for sample in self._samples if sample[0] > since]
        totals = collections.Counter()
        for connector, _, records in records_of(self._herder):
            totals[connector] += records
        return {"totals": totals, "samples": [{"number": number, "at": at, "rates": rates} for number, at, rates in samples]}

    def _keep_measuring(self):
        while True:
            self._clock.wait(self._never, SAMPLE_SECONDS)
            with self._lock:
                if self._clock.monotonic() > self._wanted_until:
                    self._measuring = False
                    self._samples.clear()
                    self._measured = None
                    return
                self._measure()

    def _measure(self):
        """Take a sample. A task that was restarted has another runner, which counts from nothing."""
        now = self._clock.monotonic()
        counts, moved = {}, collections.Counter()
        for connector, runner, records in records_of(self._herder):
            counts[runner] = records
            moved[connector] += max(0, records - self._counts.get(runner, 0))
        self._counts = counts
        rates = {}
        if self._measured is not None:
            seconds = max(0.001, now - self._measured)
            rates = {connector: round(records / seconds, 1) for connector, records in moved.items()}
        number = self._samples[-1][0] + 1 if self._samples else self._clock.now_ms()  # above those of an earlier process
        self._samples.append((number, self._clock.now_ms(), rates))
        self._measured = now
