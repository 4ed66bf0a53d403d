"""Who runs it. From a call of the REST API to a running task:

    herder.py → connector.py → instance.py and tasks/group.py → tasks/source_runner.py or tasks/sink_runner.py

    calls.py          the one way into a plugin's code, and mailboxes
    queries.py        what may be asked
    worker.py         what all connectors share; log_clients.py, log_view.py: the log as it and people see it
    process.py        the whole process: what is opened, in which order, and closed again
    metrics.py        what tasks count
    configuration/  tasks/  offsets/  failures/  supervision/     rooms, each with a line at its door
"""
