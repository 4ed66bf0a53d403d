"""Records and failures per second of each connector over the last minutes. Measured only while a client asks, so an idle worker does nothing."""

import collections
import threading

SAMPLE_SECONDS = 2.0
KEPT_SAMPLES = 300  # ten minutes
_LOOKED_AT_SECONDS = 900.0  # measuring stops so long after the last request


def records_of(herder):
    """Return [(connector, runner, records, failures)] of all tasks since their start: records polled or put, and failed records."""
    return [(runner.connector, runner, runner.meter.records, runner.errors.total_record_failures) for runner in herder.runners()]


class Throughput:
    """Thread-safe. `look` starts measuring; `since` is the caller's last sample number."""

    def __init__(self, herder, clock):
        self._herder, self._clock = herder, clock
        self._lock = threading.Lock()
        self._samples = collections.deque(maxlen=KEPT_SAMPLES)  # (number, milliseconds, records and failures per second: {connector: rate})
        self._counts = {}  # runner -> (records, failures)
        self._measured = None
        self._wanted_until = 0.0
        self._measuring = False
        self._never = threading.Event()

    def look(self, since=0):
        """Return {totals: {connector: records since its tasks started}, samples: [{number, at, rates}]} after `since`; with failures and errors."""
        with self._lock:
            self._wanted_until = self._clock.monotonic() + _LOOKED_AT_SECONDS
            if not self._measuring:
                self._measuring = True
                self._measure()
                threading.Thread(target=self._keep_measuring, name="throughput", daemon=True).start()
            samples = [sample for sample in self._samples if sample[0] > since]
        totals, failed = collections.Counter(), collections.Counter()
        for connector, _, records, failures in records_of(self._herder):
            totals[connector] += records
            failed[connector] += failures
        shown = [{"number": number, "at": at, "rates": rates, "errors": errors} for number, at, rates, errors in samples]
        return {"totals": totals, "failures": failed, "samples": shown}

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
        """Take a sample. A restarted task has a new runner, which counts from zero."""
        now = self._clock.monotonic()
        counts, moved, failed = {}, collections.Counter(), collections.Counter()
        for connector, runner, records, failures in records_of(self._herder):
            counts[runner] = records, failures
            records_before, failures_before = self._counts.get(runner, (0, 0))
            moved[connector] += max(0, records - records_before)
            failed[connector] += max(0, failures - failures_before)
        self._counts = counts
        rates = errors = {}
        if self._measured is not None:
            seconds = max(0.001, now - self._measured)
            rates, errors = ({connector: round(count / seconds, 1) for connector, count in each.items()} for each in (moved, failed))
        number = self._samples[-1][0] + 1 if self._samples else self._clock.now_ms()  # above those of an earlier process
        self._samples.append((number, self._clock.now_ms(), rates, errors))
        self._measured = now
