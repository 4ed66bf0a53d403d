"""The runtime: connectors, tasks, offsets and failures. From a REST call to a running task:

    herder.py → connector.py → instance.py and tasks/group.py → tasks/source_runner.py or tasks/sink_runner.py

    calls.py          calls of plugin code, and mailboxes that serialize them
    queries.py        read-only queries of connectors and plugins
    worker.py         what all connectors share; log_clients.py: the worker's Kafka clients; log_view.py: topics and records for the REST API
    process.py        the whole process: startup and shutdown, in order
    metrics.py        task metrics
    configuration/  tasks/  offsets/  failures/  supervision/     packages, each described in its __init__.py
"""
