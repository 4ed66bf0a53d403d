"""Every metric of /metrics: name, labels and description. docs/metrics.md and the HELP lines are generated from it."""

import collections

Family = collections.namedtuple("Family", "title about prefix labels metrics")  # metrics: {name after the prefix: description}

STATES = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")
_TASK = ("connector", "task")
_MINUTE = "Averages, maxima and rates cover the last minute."


def _startup(what):
    return {
        f"{what}_startup_attempts_total": f"Attempted starts of {what}s.",
        f"{what}_startup_success_total": "Successful starts.",
        f"{what}_startup_failure_total": "Failed starts.",
        f"{what}_startup_success_percentage": "Share of successful starts, from 0 to 1; 0 before the first.",
        f"{what}_startup_failure_percentage": "Share of failed starts, from 0 to 1.",
    }


FAMILIES = [
    Family(
        "The worker",
        "",
        "kafka_connect_worker_",
        (),
        {
            "connector_count": "Connectors in any state.",
            "task_count": "Their tasks.",
            **_startup("connector"),
            **_startup("task"),
        },
    ),
    Family(
        "Connectors",
        "A status is a series of the value 1, with the state in lower case as a label.",
        "kafka_connect_connector_",
        ("connector",),
        {
            ("status", "status"): "1 for the connector's state: running, paused, stopped, failed, unassigned, restarting.",
            ("info", "class", "type", "version"): "1; the labels hold its class, its type (source or sink) and its version.",
        },
    ),
    Family(
        "Tasks of a connector",
        "",
        "kafka_connect_worker_connector_",
        ("connector",),
        {"total_task_count": "All its tasks.", **{f"{state}_task_count": f"Its tasks that are {state.upper()}." for state in STATES}},
    ),
    Family(
        "Every task",
        _MINUTE,
        "kafka_connect_connector_task_",
        _TASK,
        {
            ("status", "status"): "1 for the task's state.",
            "running_ratio": "Share of its lifetime in which it was RUNNING.",
            "pause_ratio": "Share of its lifetime in which it was PAUSED.",
            "batch_size_avg": "Records per poll of a source, or per put of a sink: average.",
            "batch_size_max": "The same: greatest.",
            "offset_commit_avg_time_ms": "Time to store offsets (source) or to commit them (sink): average.",
            "offset_commit_max_time_ms": "The same: longest.",
            "offset_commit_success_percentage": "Share of successful commits, from 0 to 1, since the task's start.",
            "offset_commit_failure_percentage": "Share of failed commits.",
        },
    ),
    Family(
        "Source tasks",
        _MINUTE,
        "kafka_connect_source_task_",
        _TASK,
        {
            "poll_batch_avg_time_ms": "Time of a poll that returned records: average.",
            "poll_batch_max_time_ms": "The same: longest.",
            "source_record_poll_total": "Records polled from the connector, before transforms.",
            "source_record_poll_rate": "The same, per second.",
            "source_record_write_total": "Records that the log acknowledged, after transforms.",
            "source_record_write_rate": "The same, per second.",
            "source_record_active_count": "Records polled that are neither acknowledged nor skipped yet.",
            "source_record_active_count_avg": "The same: average.",
            "source_record_active_count_max": "The same: greatest.",
        },
    ),
    Family(
        "Sink tasks",
        _MINUTE,
        "kafka_connect_sink_task_",
        _TASK,
        {
            "put_batch_avg_time_ms": "Time of a put: average.",
            "put_batch_max_time_ms": "The same: longest.",
            "sink_record_read_total": "Records fetched, before transforms.",
            "sink_record_read_rate": "The same, per second.",
            "sink_record_send_total": "Records passed to put(), after transforms.",
            "sink_record_send_rate": "The same, per second.",
            "sink_record_active_count": "Records passed to put() whose offsets are not committed yet.",
            "sink_record_active_count_avg": "The same: average.",
            "sink_record_active_count_max": "The same: greatest.",
            "sink_record_lag_max": "Lag of the partition that is furthest behind, in records.",
            "partition_count": "Partitions assigned to it.",
            "offset_commit_seq_no": "Sequence number of the last commit.",
            "offset_commit_completion_total": "Commits that succeeded.",
            "offset_commit_completion_rate": "The same, per second.",
            "offset_commit_skip_total": "Skipped commits: the task could not flush, or bad records were not stored in time.",
            "offset_commit_skip_rate": "The same, per second.",
        },
    ),
    Family(
        "Records that fail",
        "Per task, since its start. [errors.md](errors.md) explains tolerated errors.",
        "kafka_connect_task_error_",
        _TASK,
        {
            "total_record_failures": "Failed attempts at a record, a poll or a put.",
            "total_record_errors": "Records that failed after all retries.",
            "total_records_skipped": "Of these, those that were tolerated and skipped.",
            "total_retries": "Retries.",
            "total_errors_logged": "Failures written to the log (errors.log.enable).",
            "deadletterqueue_produce_requests": "Records sent to the dead letter queue.",
            "deadletterqueue_produce_failures": "Of these, those that could not be written.",
            "last_error_timestamp": "Time of the last failure, in milliseconds since 1970; 0 if there was none.",
        },
    ),
    Family(
        "Chains",
        "`connectctl explain NAME` says why.",
        "kafka_connect_pipeline_",
        _TASK,
        {
            ("records_total", "engine"): (
                "Records by the engine that processed them: `identity`, bytes passed through; `columns`, schema edits in columns; "
                "`spark`, partly by a Spark job; `rows`, one by one in Python, including repeated ones."
            ),
        },
    ),
    Family(
        "Producers of source tasks",
        "The label is Java's client id: `connector-producer-NAME-TASK`.",
        "kafka_producer_",
        ("clientid",),
        {
            "record_send_total": "Records acknowledged.",
            "outgoing_byte_total": "Bytes of their batches, compressed.",
            "request_total": "Requests sent.",
            "record_retry_total": "Retried batches.",
            "record_error_total": "Records given up.",
            "batch_size_max": "Bytes of the largest batch.",
        },
    ),
    Family(
        "Consumers of sink tasks",
        "The label is Java's client id: `connector-consumer-NAME-TASK`.",
        "kafka_consumer_fetch_manager_",
        ("clientid",),
        {
            ("records_lag", "topic", "partition"): "Lag of the partition, in records.",
            "records_lag_max": "The maximum of these.",
        },
    ),
    Family(
        "Spark and the embedded log",
        "Metrics that Connect does not have.",
        "connect_standalone_",
        (),
        {
            "spark_up": "1 while there is a Spark session.",
            "spark_starts_total": "Number of its starts.",
            "spark_jobs_total": "Jobs that ran.",
            "spark_job_seconds_total": "Total time of these.",
            "spark_waiting_jobs": "Jobs that wait for a free core.",
            ("embedded_log_bytes", "topic", "partition"): "Bytes of a partition on disk.",
            ("embedded_log_records", "topic", "partition"): "Offsets from its first record to its end.",
            ("build_info", "version"): "1; the label is this program's version.",
        },
    ),
    Family(
        "Metrics of sink connectors",
        "Per task, since its start.",
        "connect_standalone_task_",
        _TASK,
        {
            "elasticsearch_documents_total": "Documents stored by the server.",
            "elasticsearch_bytes_total": "Bytes of the requests that it answered.",
            "elasticsearch_requests_total": "These requests.",
            "elasticsearch_request_seconds_total": "Total time of these.",
            "elasticsearch_request_longest_seconds": "Time of the longest one.",
            "elasticsearch_retried_total": "Retried documents.",
            "elasticsearch_older_total": "Documents older than the stored version: redelivered, or overtaken.",
            ("elasticsearch_refused_total", "reason"): "Documents rejected permanently, by the server's error type.",
        },
    ),
    Family(
        "Queries of SQL",
        "Per query, since its last start ([streams.md](streams.md)).",
        "connect_standalone_query_",
        ("query",),
        {
            ("status", "status"): "1 for the query's state.",
            "batches_total": "Completed batches.",
            "rows_read_total": "Records read.",
            "rows_written_total": "Records written.",
            "state_rows": "Rows in its state: groups, windows, rows waiting in joins.",
            "lag": "Lag on its topics, in records.",
            "last_batch_ms": "Time to compute and write its last batch.",
            "restarts_total": "Restarts since the worker's start.",
        },
    ),
    Family("The version of Connect", "", "kafka_connect_app_", ("version", "commit_id"), {"info": "1; the labels are those of `GET /`."}),
    Family(
        "The process",
        "As in every Prometheus client.",
        "process_",
        (),
        {
            "virtual_memory_bytes": "Virtual memory.",
            "resident_memory_bytes": "Resident memory.",
            "start_time_seconds": "Start time, in seconds since 1970.",
            "cpu_seconds_total": "CPU seconds spent.",
            "open_fds": "Open file descriptors.",
            "max_fds": "Maximum open file descriptors.",
        },
    ),
]


def each():
    """Yield (family, name, labels, description) of every metric."""
    for family in FAMILIES:
        for key, meaning in family.metrics.items():
            name, *more = (key,) if isinstance(key, str) else key
            yield family, family.prefix + name, (*family.labels, *more), meaning


MEANINGS = {name: meaning for _, name, _, meaning in each()}


def to_markdown():
    """Yield the page's lines: a table per family."""
    shown = None
    for family, name, labels, meaning in each():
        if family is not shown:
            shown = family
            yield f"\n## {family.title}\n\n" + (f"{family.about}\n\n" if family.about else "") + "| name | labels | |\n|---|---|---|"
        yield f"| `{name}` | {', '.join(f'`{label}`' for label in labels)} | {meaning} |"
