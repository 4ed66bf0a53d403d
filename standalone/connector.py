"""The connector API: the base classes, their contexts, and the order of calls.

A *connector* validates its configuration and splits the work into task configurations. A *task* does the work, on its own thread.

    source:  SourceConnector.start → task_configs → SourceTask.initialize → start → poll, poll, … → stop
             commit_record after each acknowledgement, commit after each fsync of the offsets
    sink:    SinkConnector.start → task_configs → SinkTask.initialize → start → open → put, put, … (pre_commit → flush) → close → stop

All methods of a task are called on its own thread, except `stop` of a source task: another thread calls it, possibly while poll is
waiting. Raise RetriableError to be called again later with the same records; anything else fails the task.

A sink reports single bad records and continues:

    reporter = self.context.errant_record_reporter()        in start(); None if error reporting is not configured
    reporter.report(record, error)                          in put() or flush()

A sink with an idempotent put() declares `put_is_idempotent = True`: with errors.tolerance=all a failed batch is then bisected, put()
is called again with each half, and the bad records are reported.
"""

import enum


class ExactlyOnceSupport(enum.Enum):
    """Whether a source supports exactly-once delivery: every record has an offset from which the source can resume."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class ConnectorTransactionBoundaries(enum.Enum):
    """Whether a source can define its own transaction boundaries."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class Connector:
    """Base of both kinds. `self.context` and `self.config` (the unparsed configuration) are set before start."""

    config_def = None
    java_name = None
    version = None
    task_class = None
    passing = ()  # prefixes of keys that are valid though not in config_def: settings of the connector's clients

    context = None
    config = None

    def initialize(self, context):
        self.context = context

    def start(self, config):
        """Receive the configuration (a dict of strings). Called once, before all other methods."""
        self.config = config

    def task_configs(self, max_tasks):
        """A list of at most `max_tasks` configurations, one per task."""
        return [dict(self.config)]

    def stop(self):
        pass

    def validate(self, config):
        """Check a configuration beyond config_def: return {key: message} of the errors. Must not use the network: see try_out."""
        return {}

    def try_out(self, config):
        """Check whether the external systems in the configuration can be reached: {key: message} of the errors.

        Only validation calls it. It never prevents a connector's creation: a system that is down now may be up when the task starts.
        """
        return {}


class SourceConnector(Connector):
    """Reads data from an external system."""

    def alter_offsets(self, config, offsets):
        """Check offsets that an operator sets ([(source_partition, source_offset or None), …]). Raise ConnectError to refuse them.

        Return True if the connector applied the change to its own external offsets, or has none.
        """
        return False

    def exactly_once_support(self, config):
        """An ExactlyOnceSupport for this configuration; None if unknown: exactly.once.support=required is then refused."""
        return None

    def has_end(self, config):
        """Whether tasks with this configuration end, and report it by `context.end()`. The worker exits once all such sources have
        ended."""
        return False

    def can_define_transaction_boundaries(self, config):
        """A ConnectorTransactionBoundaries: whether transaction.boundary=connector may be set."""
        return ConnectorTransactionBoundaries.UNSUPPORTED


class SinkConnector(Connector):
    """Writes data to an external system."""

    def alter_offsets(self, config, offsets):
        """Check offsets that an operator sets ({(topic, partition): offset or None}). Raise ConnectError to refuse them."""
        return False


class ConnectorContext:
    """The worker's services for a connector."""

    name = None

    def request_task_reconfiguration(self):
        """The input has changed: request new task configurations."""
        raise NotImplementedError

    def raise_error(self, error):
        """Report that the connector cannot continue: it becomes FAILED."""
        raise NotImplementedError

    def offset_reader(self):
        """The OffsetReader of a source connector's stored offsets."""
        raise NotImplementedError


class OffsetReader:
    """Reads the last stored source offsets."""

    def offset(self, partition):
        """The source offset of a source partition (a dict), or None."""
        raise NotImplementedError

    def offsets(self, partitions):
        """The offsets of multiple source partitions: a list in the same order."""
        return [self.offset(partition) for partition in partitions]


class SourceTask:
    """Polls records."""

    context = None
    config = None

    def initialize(self, context):
        """`context` is a SourceTaskContext."""
        self.context = context

    def start(self, config):
        """Receive this task's configuration, open resources, and read the starting offset from self.context.offset_reader."""
        self.config = config

    def poll(self):
        """A list of SourceRecords, or a SourceBatch (or a list of them), or None if there is no data.

        May wait for data, but must return within about a second, and when stop() is called.
        """
        raise NotImplementedError(f"{type(self).__name__} must define poll()")

    def commit_record(self, record, metadata):
        """The record is acknowledged. `metadata` has its topic, partition and offset; it is None if a transform dropped the record, or it failed.

        Called once per record. If a transform made several records of it: after the last of those, with its metadata.
        """

    def commit_batch(self, batch, rows, topic, partition, offset):
        """Replaces commit_record for tasks that poll batches: these rows of a batch (an array of row numbers) are acknowledged, in this
        order, from `offset` on (None if the broker no longer knows it). Not called for rows that were dropped or failed."""

    def commit(self):
        """The offsets of all acknowledged records are stored. Called every `offset.flush.interval.ms`, even without new offsets."""

    def stop(self):
        """Called from another thread: make a waiting poll return. Close resources in `close`, after poll has returned."""

    def close(self):
        """Close resources. Called on the task's own thread after the last poll."""


class SourceTaskContext:
    connector = None  # the connector's name
    task = None  # the task's number
    configs = None  # the task's current configuration
    offset_reader = None
    transaction_context = None  # a TransactionContext if transaction.boundary=connector, else None

    def end(self):
        """Declare this poll the last. Its records are published and their offsets stored; then the task ends."""
        raise NotImplementedError


class TransactionContext:
    """Defines a source's transaction boundaries. A boundary after a record takes effect even if a transform drops the record.

    `record` is an object that the current or next poll returns. Without it the boundary is after the last polled record.
    """

    def commit_transaction(self, record=None):
        """Commit the transaction after this record, or after the whole poll."""
        raise NotImplementedError

    def abort_transaction(self, record=None):
        """Abort the transaction after this record: read_committed consumers skip its records. Its offset is stored nevertheless."""
        raise NotImplementedError


class SinkTask:
    """Puts records."""

    takes_batches = False  # True: put() gets a list of SinkBatch, in columns; False: a list of SinkRecord
    put_is_idempotent = False  # True: repeating puts in the same order changes nothing; bad records are then found by bisection

    context = None
    config = None

    def initialize(self, context):
        """`context` is a SinkTaskContext."""
        self.context = context

    def start(self, config):
        self.config = config

    def open(self, partitions):
        """These (topic, partition) pairs are assigned to this task."""

    def prepare(self, batch):
        """Return `batch.prepared` for a SinkBatch ahead of its put(): slow work on this batch alone can overlap with puts of earlier ones.

        Only for tasks that take batches. Called from any thread, also concurrently, but not for every batch. Exceptions are ignored.
        """
        return None

    def put(self, records):
        """Write these records. They need not be durable before flush."""
        raise NotImplementedError(f"{type(self).__name__} must define put(records)")

    def flush(self, offsets):
        """Make all records durable: `offsets` ({(topic, partition): next offset}) are about to be committed."""

    def pre_commit(self, offsets):
        """The offsets that are safe to commit. Default: all, after flush.

        On a RetriableError nothing is committed now. On any other exception the task rewinds to the last committed offsets.
        """
        self.flush(offsets)
        return offsets

    def close(self, partitions):
        """These (topic, partition) pairs are revoked. Unless this raises, the offsets returned by pre_commit are then committed."""

    def stop(self):
        """Close resources. Called last."""

    def metrics(self):
        """The task's own metrics for /metrics: {name: number}, or {(name, label, label value): number}. Called from any thread.

        Names consist of lowercase letters and hyphens and start with the system's name. A name that ends in `-total` is a counter."""
        return {}


class SinkTaskContext:
    """The worker's services for a sink task. Call them on the task's own thread only."""

    connector = None
    task = None
    configs = None

    def assignment(self):
        """The (topic, partition) pairs assigned to this task."""
        raise NotImplementedError

    def offset(self, offsets):
        """Seek to {(topic, partition): offset} before the next put."""
        raise NotImplementedError

    def pause(self, *partitions):
        """Pause these partitions."""
        raise NotImplementedError

    def resume(self, *partitions):
        raise NotImplementedError

    def request_commit(self):
        """Request an offset commit before the interval has passed."""
        raise NotImplementedError

    def timeout(self, ms):
        """Call put again within this time (after a RetriableError: exactly then)."""
        raise NotImplementedError

    def spark(self, work):
        """Run `work(session)` in the worker's Spark session, which is started if necessary, and return its result.

        Keep no reference to Spark objects beyond `work`, except its result. Raises RetriableError if the task is being stopped or Spark's JVM
        ended during the work, which may then be partly done; ConnectError if Spark does not start.
        """
        raise NotImplementedError

    def errant_record_reporter(self):
        """An ErrantRecordReporter, or None if neither a dead letter queue nor errors.log.enable is configured."""
        return None


class ErrantRecordReporter:
    """Receives records that the sink refuses, from any thread."""

    def report(self, record, error):
        """Report a record from put(); returns a Future that completes once the report is stored.

        Until then neither is its offset committed nor pre_commit called. Raises ConnectError if errors are not tolerated: do not
        catch it, so that the task fails.
        """
        raise NotImplementedError
