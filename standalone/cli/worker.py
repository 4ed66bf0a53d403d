"""connect-standalone: the command that runs the worker.

Exit codes: 0 after SIGTERM or SIGINT, 1 wrong usage, 2 the worker could not start, 3 a connector could not be created.
"""

import logging
import os
import signal
import sys
import threading

import click

USAGE, NOT_STARTED, NOT_CREATED = 1, 2, 3

log = logging.getLogger(__name__)


@click.command(name="connect-standalone", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-daemon", "--daemon", is_flag=True, help="Go on in the background; output goes to $LOG_DIR (logs)/connect-standalone.out.")
@click.version_option(package_name="connect-standalone", prog_name="connect-standalone")
@click.argument("worker", metavar="WORKER.PROPERTIES")
@click.argument("connectors", nargs=-1, metavar="[CONNECTOR.PROPERTIES | CONNECTOR.JSON]...")
def command(daemon, worker, connectors):
    """Run Kafka Connect's standalone mode: one worker, and the connectors whose files are given.

    WORKER.PROPERTIES says where Kafka is (bootstrap.servers; left out: a log of the worker's own), how records are
    converted, and where source offsets are kept. More connectors can be made by the REST API.
    """
    if daemon:
        _into_background()
    sys.exit(run(worker, connectors))


def main():
    """The console script."""
    try:
        command(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except click.Abort:
        sys.exit(USAGE)


def run(worker_file, connector_files):
    """Run until a signal comes; the exit code."""
    from standalone.cli.logs import set_up_logs

    set_up_logs(os.environ.get("CONNECT_LOG_LEVEL", "INFO"))
    asked_to_stop = threading.Event()
    _on_signals(asked_to_stop)

    from standalone import properties
    from standalone.errors import ConnectError
    from standalone.runtime.process import Process

    sys.setswitchinterval(0.0005)  # a thread that computes in Python holds up its neighbours no longer than this
    process = Process()
    try:
        try:
            process.open(properties.load(worker_file))
        except ConnectError as error:
            log.error("The worker cannot start: %s", error)
            return NOT_STARTED
        try:
            process.create_connectors(connector_files)
        except ConnectError as error:
            log.error("%s", error)
            return NOT_CREATED
        asked_to_stop.wait()
        log.info("Stopping")
        return 0
    finally:
        process.close()


def _on_signals(asked_to_stop):
    def stop(number, frame):
        if asked_to_stop.is_set():
            os._exit(128 + number)  # asked again: do not wait for anything
        asked_to_stop.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _into_background():
    """Detach from the terminal; the parent ends at once."""
    folder = os.environ.get("LOG_DIR", "logs")
    os.makedirs(folder, exist_ok=True)
    out = os.open(os.path.join(folder, "connect-standalone.out"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDONLY)
    for to, fd in ((0, null), (1, out), (2, out)):
        os.dup2(fd, to)


if __name__ == "__main__":
    main()
