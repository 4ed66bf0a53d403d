"""The connector API: base classes, the contexts they get, and the order of calls.

A *connector* validates its configuration and splits the work into task configurations. A *task* does the work, on its own thread.

    source:  SourceConnector.start → task_configs → SourceTask.initialize → start → poll, poll, … → stop
             commit_record after each acknowledgement, commit after each fsync of the offsets
    sink:    SinkConnector.start → task_configs → SinkTask.initialize → start → open → put, put, … (pre_commit → flush) → close → stop

All methods of a task are called on its own thread, except `stop` of a source task, which another thread calls while poll may be
waiting. Raise RetriableError to be called again with the same records; any other exception fails the task.

A sink that finds single bad records reports them and continues:

    reporter = self.context.errant_record_reporter()        in start(); None if reports are not configured
    reporter.report(record, error)                          in put() or flush()

and a sink whose put() may get the same records twice declares `put_is_idempotent = True`: with errors.tolerance=all the worker bisects a
batch that it rejects until each bad record is alone, and reports those.
"""

import enum


class ExactlyOnceSupport(enum.Enum):
    """Whether a source knows the offset after each record, so that transactions can deliver each exactly once."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class ConnectorTransactionBoundaries(enum.Enum):
    """Whether a source defines its own transaction boundaries."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class Connector:
    """Base of both kinds. `self.context` and `self.config` (the unparsed configuration) are set before start."""

    config_def = None
    java_name = None
    version = None
    task_class = None
    passing = ()  # prefixes of keys outside config_def that the connector reads: settings of its own clients

    context = None
    config = None

    def initialize(self, context):
        self.context = context

    def start(self, config):
        """Take the configuration (a dict of strings). Called first, once."""
        self.config = config

    def task_configs(self, max_tasks):
        """Return at most `max_tasks` configurations, one for each task."""
        return [dict(self.config)]

    def stop(self):
        pass

    def validate(self, config):
        """Check a configuration beyond config_def: return {key: error message}. Do not contact other systems: see try_out."""
        return {}

    def try_out(self, config):
        """Check during validation whether the systems in the configuration are reachable: return {key: error message}.

        An error does not prevent the connector's creation: the system may be available when the task starts or restarts.
        """
        return {}


class SourceConnector(Connector):
    """Imports data into Kafka."""

    def alter_offsets(self, config, offsets):
        """Check offsets that an operator sets ([(source_partition, source_offset or None), …]). Raise ConnectError to refuse them.

        Return True if the connector has applied the change outside the offsets file, too, or if nothing more is needed.
        """
        return False

    def exactly_once_support(self, config):
        """An ExactlyOnceSupport for this configuration; None: unknown, so that exactly.once.support=required is refused."""
        return None

    def has_end(self, config):
        """Whether tasks with this configuration are finite and call `context.end()`. The worker exits when all finite sources have
        finished."""
        return False

    def can_define_transaction_boundaries(self, config):
        """A ConnectorTransactionBoundaries: whether transaction.boundary=connector may be set."""
        return ConnectorTransactionBoundaries.UNSUPPORTED


class SinkConnector(Connector):
    """Exports data from Kafka."""

    def alter_offsets(self, config, offsets):
        """Check offsets that an operator sets ({(topic, partition): offset or None}). Raise ConnectError to refuse them."""
        return False


class ConnectorContext:
    """What a connector can request from the worker."""

    name = None

    def request_task_reconfiguration(self):
        """The input has changed: call task_configs again soon."""
        raise NotImplementedError

    def raise_error(self, error):
        """The connector cannot continue: mark it FAILED."""
        raise NotImplementedError

    def offset_reader(self):
        """For a source connector: the OffsetReader of its stored offsets."""
        raise NotImplementedError


class OffsetReader:
    """Reads stored source offsets."""

    def offset(self, partition):
        """The source offset of that source partition (a dict), or None."""
        raise NotImplementedError

    def offsets(self, partitions):
        """The same for several partitions: a list in their order."""
        return [self.offset(partition) for partition in partitions]


class SourceTask:
    """Polls records."""

    context = None
    config = None

    def initialize(self, context):
        """`context` is a SourceTaskContext."""
        self.context = context

    def start(self, config):
        """Take this task's configuration, open resources, and read the stored offsets from self.context.offset_reader."""
        self.config = config

    def poll(self):
        """Return a list of SourceRecords, a SourceBatch (or several in a list), or None for nothing.

        Wait for data if there is none, but return soon (within about a second), or when stop() is called.
        """
        raise NotImplementedError(f"{type(self).__name__} must define poll()")

    def commit_record(self, record, metadata):
        """That record is acknowledged: `metadata` has its topic, partition, offset; None if a transform dropped it, or it failed.

        Called once per record. If a transform made several of it: after the last of those, with its metadata.
        """

    def commit_batch(self, batch, rows, topic, partition, offset):
        """Replaces commit_record for tasks that poll batches: these rows of a batch (an array of row numbers) are acknowledged, in that
        order, from `offset` on; None if the broker no longer knows it. Rows that a transform dropped, or that failed, are not included."""

    def commit(self):
        """The offsets of acknowledged records are stored: after each `offset.flush.interval.ms`, even if nothing is new."""

    def stop(self):
        """Make a waiting poll return; called on another thread. Close resources only after poll has returned: see `close`."""

    def close(self):
        """Called last, on the task's own thread, after the last poll."""


class SourceTaskContext:
    connector = None  # the connector's name
    task = None  # the task's number
    configs = None  # the task's current configuration
    offset_reader = None
    transaction_context = None  # a TransactionContext with transaction.boundary=connector; else None

    def end(self):
        """This poll is the last. Once its records are published and their offsets stored, the task has finished, and rests."""
        raise NotImplementedError


class TransactionContext:
    """Defines a source's transaction boundaries. A boundary after a record applies even if a transform drops that record.

    `record` is one of the records (the same object) of the current or next poll; without it, the boundary follows the whole poll.
    """

    def commit_transaction(self, record=None):
        """Commit after that record, or after the whole poll."""
        raise NotImplementedError

    def abort_transaction(self, record=None):
        """Abort: readers of committed records do not see the records since the last boundary up to that record; its offset is stored."""
        raise NotImplementedError


class SinkTask:
    """Puts records."""

    takes_batches = False  # True: put() gets a list of SinkBatch, in columns; False: a list of SinkRecord
    put_is_idempotent = False  # True: putting the same records again, in order, changes nothing; bad ones are then found by bisection

    context = None
    config = None

    def initialize(self, context):
        """`context` is a SinkTaskContext."""
        self.context = context

    def start(self, config):
        self.config = config

    def open(self, partitions):
        """These (topic, partition) pairs are now assigned to this task."""

    def prepare(self, batch):
        """Compute `batch.prepared` of a SinkBatch before its put: slow work that depends only on the batch, done while others are put.

        Only for tasks that take batches. Called on any thread, even concurrently; not every batch is prepared, and exceptions are ignored.
        """
        return None

    def put(self, records):
        """Take these records. They need not be stored before flush."""
        raise NotImplementedError(f"{type(self).__name__} must define put(records)")

    def flush(self, offsets):
        """Store all records that were put: `offsets` ({(topic, partition): next offset}) are about to be committed."""

    def pre_commit(self, offsets):
        """Return the offsets to commit now. Default: all, after flush.

        RetriableError: not now. After any other exception, records since the last commit are put again.
        """
        self.flush(offsets)
        return offsets

    def close(self, partitions):
        """These (topic, partition) pairs are no longer assigned. Offsets from pre_commit are committed afterwards, unless this raises."""

    def stop(self):
        """Close resources. Called last."""

    def metrics(self):
        """The task's own metrics for /metrics: {name: number}, or {(name, label, value of the label): number}. Called on any thread.

        A name has lower-case letters and hyphens and begins with the system's name; one that ends in `-total` is a counter."""
        return {}


class SinkTaskContext:
    """What a sink task can request from the worker. Called on the task's own thread only."""

    connector = None
    task = None
    configs = None

    def assignment(self):
        """The (topic, partition) pairs assigned to this task."""
        raise NotImplementedError

    def offset(self, offsets):
        """Continue reading at these offsets, {(topic, partition): offset}, from the next put."""
        raise NotImplementedError

    def pause(self, *partitions):
        """Stop fetching these pairs for now."""
        raise NotImplementedError

    def resume(self, *partitions):
        raise NotImplementedError

    def request_commit(self):
        """Commit offsets soon, before the interval has passed."""
        raise NotImplementedError

    def timeout(self, ms):
        """Call put again after this long at the latest (after a RetriableError: after exactly this long)."""
        raise NotImplementedError

    def spark(self, work):
        """Return the result of `work(session)`, run in the worker's Spark session as one job among those of the chains. Starts the session if needed.

        Do not keep Spark objects after `work` returns. RetriableError: the task is being stopped, or Spark's Java process ended
        during the work; check what it has done until then. ConnectError: Spark does not start.
        """
        raise NotImplementedError

    def errant_record_reporter(self):
        """An ErrantRecordReporter, or None if neither a dead letter queue nor errors.log.enable is configured."""
        return None


class ErrantRecordReporter:
    """Takes records that the sink rejects. Thread-safe."""

    def report(self, record, error):
        """Report a record, as it was put; return a Future that is done once the report is stored.

        No offset of it is committed before, and pre_commit is not called before. Raises ConnectError if errors are not tolerated:
        do not catch it, so that the task fails.
        """
        raise NotImplementedError
