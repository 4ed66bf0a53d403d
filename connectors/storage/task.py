"""The base of file sink tasks: pass batches to partition writers, bound memory, and return offsets of stored
records."""

import time
from concurrent.futures import ThreadPoolExecutor

from standalone import DataError, RetriableError, SinkTask

MEMORY_BYTES = 128 << 20  # of all open files of a task; beyond it the largest are spilled until half remains
CLOSES = 8  # closed in parallel, as closing mostly waits for I/O


class Parts:
    """What the writers of a task share."""

    def __init__(self, format, partitioner, extractor, compatibility, run):
        self.format, self.partitioner, self.extractor = format, partitioner, extractor
        self.compatibility = compatibility
        self.run = run  # (call, items): calls for each item, several at once
        # A kind of storage may change the following.
        self.sides = ()  # companion files of the values: .suffix, .format, .encode(batch)
        self.writes_nulls = format.takes_nulls
        self.null_value = _refuse_null  # (record, report) handles a null value that is not written
        self.tombstones = None  # folder of records with null values, if companion files are written


def _refuse_null(record, report):
    report(record, DataError("The value is null, which this file format cannot store. Drop such records with the transform Filter."))


class StorageTask(SinkTask):
    """Subclasses define `open_storage(config)`, `writer_of(origin)` and `close_storage()`."""

    takes_batches = True
    now_ms = staticmethod(lambda: time.time_ns() // 1_000_000)

    def start(self, config):
        self._writers = {}
        self._pool = ThreadPoolExecutor(CLOSES, thread_name_prefix="closes")
        self._reporter = self.context.errant_record_reporter() if self.context is not None else None
        self.open_storage(config)

    def open(self, partitions):
        for origin in partitions:
            writer = self._writers[origin] = self.writer_of(origin)
            next_offset = self._guarded(writer, lambda writer: writer.recover())
            if next_offset is not None:
                self.context.offset({origin: next_offset})

    def put(self, records):
        now = self.now_ms()
        for batch in records:
            self._guarded(self._writers[batch.origin], lambda writer, batch=batch: writer.take(batch, now))
            self._bound_memory()
        for writer in self._writers.values():
            self._guarded(writer, lambda writer: writer.commit_if_due(now))
        self.behind_commits()
        for origin, writer in self._writers.items():
            if writer.rewound:  # only now, so that no record of this put is delivered again
                writer.rewound = False
                self.context.offset({origin: writer.next_offset})
        due = [each for each in (writer.due_in_ms(now) for writer in self._writers.values()) if each is not None]
        if due:
            self.context.timeout(max(1, min(due)))

    def pre_commit(self, offsets):
        return {origin: self._writers[origin].safe_offset(offset) for origin, offset in offsets.items() if origin in self._writers}

    def close(self, partitions):
        for origin in partitions:
            writer = self._writers.pop(origin, None)
            if writer is not None:
                writer.release()

    def stop(self):
        self.close(list(self._writers))
        self._pool.shutdown()
        self.close_storage()

    def run(self, call, items):
        """Call for each item, several at once; raise the first error when all have finished."""
        if len(items) < 2:
            return [call(item) for item in items]
        futures = [self._pool.submit(call, item) for item in items]
        errors = [error for error in (future.exception() for future in futures) if error is not None]
        if errors:
            raise errors[0]
        return [future.result() for future in futures]

    def report(self, record, error):
        """Report a bad record to the dead letter queue if there is one; else fail the task."""
        if self._reporter is None:
            raise error
        self._reporter.report(record, error)

    def _bound_memory(self):
        files = [file for writer in self._writers.values() for file in writer.open_files]
        held = sum(file.memory for file in files)
        if held <= MEMORY_BYTES:
            return
        for file in sorted(files, key=lambda file: file.memory, reverse=True):
            if held <= MEMORY_BYTES // 2:
                break
            size = file.memory
            self._guarded(None, lambda _, file=file: file.spill())
            held -= size

    def _guarded(self, writer, call):
        """Convert file system errors for users and the worker: retriable or permanent."""
        try:
            return call(writer)
        except OSError as error:
            self._raise(writer, error)
        except RetriableError:
            self._pause()
            raise

    def _raise(self, writer, error):
        if writer is not None and isinstance(error, FileNotFoundError):
            writer.must_be_owner(error)
        found = self.files.wrong(f"{self.label} cannot write to {self.files.name}", error)
        if isinstance(found, RetriableError):
            self._pause()
        raise found from error

    def _pause(self):
        if self.context is not None:
            self.context.timeout(self.config_values["retry.backoff.ms"])

    # --- Defined by each kind of storage ---
    label = "The sink"
    files = None
    config_values = None

    def open_storage(self, config):
        raise NotImplementedError

    def writer_of(self, origin):
        raise NotImplementedError

    def behind_commits(self):
        """Called once files are in place."""

    def close_storage(self):
        pass
