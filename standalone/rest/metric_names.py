"""Every metric of /metrics: name, labels and description. docs/metrics.md and the HELP lines are generated from it."""

import collections

Family = collections.namedtuple("Family", "title about prefix labels metrics")  # metrics: {name after the prefix: description}

STATES = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")
_TASK = ("connector", "task")
_MINUTE = "Averages, maxima and rates are of the last minute."


def _startup(what):
    return {
        f"{what}_startup_attempts_total": f"Starts of {what}s that were tried.",
        f"{what}_startup_success_total": "Of these, those that came up.",
        f"{what}_startup_failure_total": "Of these, those that failed.",
        f"{what}_startup_success_percentage": "Share of those that came up, from 0 to 1; 0 before the first.",
        f"{what}_startup_failure_percentage": "Share of those that failed, from 0 to 1.",
    }


FAMILIES = [
    Family(
        "The worker",
        "",
        "kafka_connect_worker_",
        (),
        {
            "connector_count": "Connectors that there are, in whatever state.",
            "task_count": "Their tasks.",
            **_startup("connector"),
            **_startup("task"),
        },
    ),
    Family(
        "Connectors",
        "A status is a series of the value 1, with the state as a label in lower case.",
        "kafka_connect_connector_",
        ("connector",),
        {
            ("status", "status"): "1 for the state that the connector is in: running, paused, stopped, failed, unassigned, restarting.",
            ("info", "class", "type", "version"): "1; the labels tell its class, whether it is a source or a sink, and its version.",
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
            ("status", "status"): "1 for the state that the task is in.",
            "running_ratio": "Share of its life in which it was RUNNING.",
            "pause_ratio": "Share of its life in which it was PAUSED.",
            "batch_size_avg": "Records a poll of a source, or a put of a sink: average.",
            "batch_size_max": "The same: greatest.",
            "offset_commit_avg_time_ms": "How long it took to make offsets durable (source) or to commit them (sink): average.",
            "offset_commit_max_time_ms": "The same: longest.",
            "offset_commit_success_percentage": "Share of these that succeeded, from 0 to 1, since the task's start.",
            "offset_commit_failure_percentage": "Share of these that failed.",
        },
    ),
    Family(
        "Source tasks",
        _MINUTE,
        "kafka_connect_source_task_",
        _TASK,
        {
            "poll_batch_avg_time_ms": "How long a poll that gave records took: average.",
            "poll_batch_max_time_ms": "The same: longest.",
            "source_record_poll_total": "Records that the connector gave, before transforms.",
            "source_record_poll_rate": "The same, a second.",
            "source_record_write_total": "Records that the log acknowledged, after transforms.",
            "source_record_write_rate": "The same, a second.",
            "source_record_active_count": "Records polled that are neither acknowledged nor left out yet.",
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
            "put_batch_avg_time_ms": "How long a put took: average.",
            "put_batch_max_time_ms": "The same: longest.",
            "sink_record_read_total": "Records fetched, before transforms.",
            "sink_record_read_rate": "The same, a second.",
            "sink_record_send_total": "Records that put() has taken, after transforms.",
            "sink_record_send_rate": "The same, a second.",
            "sink_record_active_count": "Records that put() has taken and whose offsets are not committed yet.",
            "sink_record_active_count_avg": "The same: average.",
            "sink_record_active_count_max": "The same: greatest.",
            "sink_record_lag_max": "Records in the log that the task has not got: of the partition that is furthest behind.",
            "partition_count": "Partitions that are assigned to it.",
            "offset_commit_seq_no": "Commits so far; each has the next number.",
            "offset_commit_completion_total": "Commits that succeeded.",
            "offset_commit_completion_rate": "The same, a second.",
            "offset_commit_skip_total": "Commits that were not done: the task could not flush, or bad records were not stored in time.",
            "offset_commit_skip_rate": "The same, a second.",
        },
    ),
    Family(
        "Records that fail",
        "Of each task, since its start. What is meant by tolerated is in [errors.md](errors.md).",
        "kafka_connect_task_error_",
        _TASK,
        {
            "total_record_failures": "Attempts that failed, at a record, a poll or a put.",
            "total_record_errors": "Records that failed for good.",
            "total_records_skipped": "Of these, those that were tolerated and left out.",
            "total_retries": "Attempts that were repeated.",
            "total_errors_logged": "Failures written to the log (errors.log.enable).",
            "deadletterqueue_produce_requests": "Records sent to the dead letter queue.",
            "deadletterqueue_produce_failures": "Of these, those that it did not take.",
            "last_error_timestamp": "When the last one failed, in milliseconds since 1970; 0 if none did.",
        },
    ),
    Family(
        "Chains",
        "`connectctl explain NAME` says why.",
        "kafka_connect_pipeline_",
        _TASK,
        {
            ("records_total", "engine"): (
                "Records by what did the chain on them: `identity`, their bytes went straight through; `columns`, edits of the schema in columns; "
                "`spark`, a Spark job did some of it; `rows`, one by one in Python, also where they were done again."
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
            "outgoing_byte_total": "Bytes of the batches that they were in, compressed.",
            "request_total": "Requests sent.",
            "record_retry_total": "Batches sent again.",
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
            ("records_lag", "topic", "partition"): "Records in the partition's log that the task has not got.",
            "records_lag_max": "The greatest of them.",
        },
    ),
    Family(
        "Spark and the embedded log",
        "What Connect has no name for.",
        "connect_standalone_",
        (),
        {
            "spark_up": "1 while there is a Spark session.",
            "spark_starts_total": "How often one was started.",
            "spark_jobs_total": "Jobs that ran.",
            "spark_job_seconds_total": "How long they took together.",
            "spark_waiting_jobs": "Jobs that wait for a free core.",
            ("embedded_log_bytes", "topic", "partition"): "Bytes of a partition on disk.",
            ("embedded_log_records", "topic", "partition"): "Offsets from its first record to its end.",
            ("build_info", "version"): "1; the label is this program's version.",
        },
    ),
    Family(
        "What sinks count themselves",
        "Of each task, since its start.",
        "connect_standalone_task_",
        _TASK,
        {
            "elasticsearch_documents_total": "Documents that the server has taken.",
            "elasticsearch_bytes_total": "Bytes of the requests that it has answered.",
            "elasticsearch_requests_total": "These requests.",
            "elasticsearch_request_seconds_total": "How long they took, all together.",
            "elasticsearch_request_longest_seconds": "How long the longest took.",
            "elasticsearch_retried_total": "Documents that were sent again.",
            "elasticsearch_older_total": "Documents that were older than what the server has: sent again after a crash, or overtaken.",
            ("elasticsearch_refused_total", "reason"): "Documents that the server has refused for good, by its word for the reason.",
        },
    ),
    Family(
        "Queries of SQL",
        "Of each query, since it was last started ([streams.md](streams.md)).",
        "connect_standalone_query_",
        ("query",),
        {
            ("status", "status"): "1 for the state that the query is in.",
            "batches_total": "Batches that it has done.",
            "rows_read_total": "Records that it has read.",
            "rows_written_total": "Records that it has written.",
            "state_rows": "Rows that it remembers: groups, windows, what joins wait for.",
            "lag": "Offsets of its topics that it has not read yet.",
            "last_batch_ms": "How long it took to work out its last batch and to write it.",
            "restarts_total": "How often it was started again since the worker's start.",
        },
    ),
    Family("The version of Connect", "", "kafka_connect_app_", ("version", "commit_id"), {"info": "1; the labels are those of `GET /`."}),
    Family(
        "The process",
        "As every Prometheus client tells them.",
        "process_",
        (),
        {
            "virtual_memory_bytes": "Virtual memory.",
            "resident_memory_bytes": "Resident memory.",
            "start_time_seconds": "When it was started, since 1970.",
            "cpu_seconds_total": "CPU seconds spent.",
            "open_fds": "Open file descriptors.",
            "max_fds": "How many it may open.",
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
