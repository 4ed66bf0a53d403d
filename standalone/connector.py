"""What a connector is: the classes to derive from, the contexts they are given, and the order in which they are called.

A *connector* decides: it checks its configuration and splits the work into task configurations. A *task* works, on its own thread.

    source:  SourceConnector.start → task_configs → SourceTask.initialize → start → poll, poll, … → stop
             after each poll's acknowledgement commit_record, after each fsync of the offsets commit
    sink:    SinkConnector.start → task_configs → SinkTask.initialize → start → open → put, put, … (pre_commit → flush) → close → stop

All methods of one task are called on its own thread, but for `stop` of a source task, which comes from another while poll may be
waiting. Raise RetriableError to be called again later with the same records; anything else fails the task.

A sink that finds single records bad reports them and continues:

    reporter = self.context.errant_record_reporter()        in start(); None where nobody would read reports
    reporter.report(record, error)                          in put() or flush()

and one whose put() may be given the same records twice declares `put_is_idempotent = True`: with errors.tolerance=all a batch that it
refuses is put again by halves, until the bad records are alone; those are reported for it.
"""

import enum


class ExactlyOnceSupport(enum.Enum):
    """Whether a source can say for each record where to continue after it, so that in transactions each comes exactly once."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class ConnectorTransactionBoundaries(enum.Enum):
    """Whether a source says itself where its transactions end."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"


class Connector:
    """Base of both kinds. `self.context` and `self.config` (the connector's strings) are set before start."""

    config_def = None
    java_name = None
    version = None
    task_class = None
    passing = ()  # beginnings of keys that config_def does not name and that are read all the same: settings of its own clients

    context = None
    config = None

    def initialize(self, context):
        self.context = context

    def start(self, config):
        """Take the configuration (a dict of strings). Called once, first."""
        self.config = config

    def task_configs(self, max_tasks):
        """A list of at most `max_tasks` configurations, one for each task that there shall be."""
        return [dict(self.config)]

    def stop(self):
        pass

    def validate(self, config):
        """Check a configuration beyond what config_def says: return {key: message} of what is wrong. Ask nobody outside: see try_out."""
        return {}

    def try_out(self, config):
        """Whether the configuration reaches what it names, for who has it validated: {key: message} of what is wrong.

        No connector is refused by it: what is away now may be there when the task starts, or starts again.
        """
        return {}


class SourceConnector(Connector):
    """Brings data in."""

    def alter_offsets(self, config, offsets):
        """May the operator set these offsets ([(source_partition, source_offset or None), …])? Raise ConnectError if not.

        Return True if the connector itself has carried the change out beyond the offsets file, or needs nothing more.
        """
        return False

    def exactly_once_support(self, config):
        """An ExactlyOnceSupport for this configuration; None: nobody knows, so that exactly.once.support=required is refused."""
        return None

    def has_end(self, config):
        """Whether its tasks come to an end with this configuration, and tell it by `context.end()`. When all sources that have one are there,
        the worker ends."""
        return False

    def can_define_transaction_boundaries(self, config):
        """A ConnectorTransactionBoundaries: whether transaction.boundary=connector may be set."""
        return ConnectorTransactionBoundaries.UNSUPPORTED


class SinkConnector(Connector):
    """Brings data out."""

    def alter_offsets(self, config, offsets):
        """May the operator set these offsets ({(topic, partition): offset or None})? Raise ConnectError if not."""
        return False


class ConnectorContext:
    """What a connector may ask of the worker."""

    name = None

    def request_task_reconfiguration(self):
        """The input has changed: ask task_configs again, soon."""
        raise NotImplementedError

    def raise_error(self, error):
        """The connector cannot continue: mark it FAILED."""
        raise NotImplementedError

    def offset_reader(self):
        """Of a source connector: the OffsetReader of its stored offsets."""
        raise NotImplementedError


class OffsetReader:
    """The source offsets that were stored last."""

    def offset(self, partition):
        """The source offset of that source partition (a dict), or None."""
        raise NotImplementedError

    def offsets(self, partitions):
        """The same for several: a list in their order."""
        return [self.offset(partition) for partition in partitions]


class SourceTask:
    """Polls records."""

    context = None
    config = None

    def initialize(self, context):
        """`context` is a SourceTaskContext."""
        self.context = context

    def start(self, config):
        """Take this task's configuration; open what there is to open; read where to continue from self.context.offset_reader."""
        self.config = config

    def poll(self):
        """A list of SourceRecords, or a SourceBatch (or several in a list), or None for nothing.

        Wait for data if there is none, but come back soon (within about a second) or when stop() is called.
        """
        raise NotImplementedError(f"{type(self).__name__} must define poll()")

    def commit_record(self, record, metadata):
        """That record is acknowledged: `metadata` has its topic, partition, offset; or None if a transform dropped it, or it failed.

        Once for each record, also where a transform made several of it: then after the last of those, with its metadata.
        """

    def commit_batch(self, batch, rows, topic, partition, offset):
        """In place of commit_record, of tasks that poll batches: these rows of one (an array of their numbers) are acknowledged, in that
        order, from `offset` on; None where the log no longer knows it. Rows that a transform dropped, or that failed, are not told."""

    def commit(self):
        """The offsets of what has been acknowledged have been stored: after each `offset.flush.interval.ms`, also where nothing is new."""

    def stop(self):
        """Make a waiting poll return, from another thread. Close what is open only once poll is over: see `close`."""

    def close(self):
        """Called last, on the task's own thread, after the last poll."""


class SourceTaskContext:
    connector = None  # the connector's name
    task = None  # the task's number
    configs = None  # the task's configuration as the worker has it now
    offset_reader = None
    transaction_context = None  # a TransactionContext, where transaction.boundary=connector; else None

    def end(self):
        """This poll is the last. What was polled is published and its offsets are stored; then the task has ended, and rests."""
        raise NotImplementedError


class TransactionContext:
    """Where a source's transactions end. What is asked for after a record holds whatever happens to it: also if a transform drops it.

    `record` is one of those (the same object) that the poll which continues returns, or the next; without one, what is polled last.
    """

    def commit_transaction(self, record=None):
        """Commit after that record, or after all of the poll."""
        raise NotImplementedError

    def abort_transaction(self, record=None):
        """Nobody who reads committed records sees what was polled since the last end up to that record; its offset is stored all the same."""
        raise NotImplementedError


class SinkTask:
    """Puts records."""

    takes_batches = False  # True: put() gets a list of SinkBatch, in columns; False: a list of SinkRecord
    put_is_idempotent = False  # True: putting records again, in their order, changes nothing; bad ones are then found by halving

    context = None
    config = None

    def initialize(self, context):
        """`context` is a SinkTaskContext."""
        self.context = context

    def start(self, config):
        self.config = config

    def open(self, partitions):
        """These (topic, partition) pairs are now this task's."""

    def prepare(self, batch):
        """What to find in `batch.prepared` when that SinkBatch is put: what is made of it alone, and takes long, can be made while others are put.

        Only for tasks that take batches. Any thread may call, several at once; not every batch is prepared, and nothing is said of what it raises.
        """
        return None

    def put(self, records):
        """Take these records. What has been put need not be stored before flush."""
        raise NotImplementedError(f"{type(self).__name__} must define put(records)")

    def flush(self, offsets):
        """Store everything that was put: `offsets` ({(topic, partition): next offset}) are about to be committed."""

    def pre_commit(self, offsets):
        """The offsets that may be committed now. By default all, after flush.

        RetriableError: not now. With whatever else it raises, what was put since the last commit is put again.
        """
        self.flush(offsets)
        return offsets

    def close(self, partitions):
        """These (topic, partition) pairs are this task's no more. What pre_commit has agreed to is committed after it, unless it raises."""

    def stop(self):
        """Close what is open. Called last."""

    def metrics(self):
        """What it has counted itself, for /metrics: {name: number}, or {(name, label, value of the label): number}. Any thread may ask.

        A name is of small letters and hyphens and begins with the system's name; one that ends in `-total` is a counter."""
        return {}


class SinkTaskContext:
    """What a sink task may ask of the worker. All calls from the task's own thread."""

    connector = None
    task = None
    configs = None

    def assignment(self):
        """The (topic, partition) pairs of this task."""
        raise NotImplementedError

    def offset(self, offsets):
        """Go on reading from here: {(topic, partition): offset}, at the next put."""
        raise NotImplementedError

    def pause(self, *partitions):
        """No more records of these for now."""
        raise NotImplementedError

    def resume(self, *partitions):
        raise NotImplementedError

    def request_commit(self):
        """Commit offsets soon, before the interval is over."""
        raise NotImplementedError

    def timeout(self, ms):
        """Call put again after this long at the latest (after a RetriableError: exactly that long)."""
        raise NotImplementedError

    def spark(self, work):
        """What `work(session)` makes in the worker's Spark session: one job among those of the chains. The session is started if there is none.

        Keep nothing of Spark's beyond `work` but what it returns. RetriableError: the task is being stopped, or Spark's Java process ended
        under the work; what it has done until then must be found out. ConnectError: Spark does not start.
        """
        raise NotImplementedError

    def errant_record_reporter(self):
        """An ErrantRecordReporter, or None where neither a dead letter queue nor errors.log.enable is configured."""
        return None


class ErrantRecordReporter:
    """Takes records that the sink refuses. Any thread may report."""

    def report(self, record, error):
        """Report one, as it was put; returns a Future that is done once the report is stored.

        No offset of it is committed before, and pre_commit is not called before. Raises ConnectError if errors are not tolerated:
        let it pass, the task fails by it.
        """
        raise NotImplementedError
