"""connect-standalone: the command that runs the worker.

Exit codes: 0 after SIGTERM or SIGINT, 1 wrong usage, 2 the worker could not start, 3 a connector could not be created, 4 a task has failed,
has no restarts left, and task.failure.exit is set.
"""

import atexit
import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import time

import click

from standalone import private

USAGE, NOT_STARTED, NOT_CREATED, FAILED = 1, 2, 3, 4
SWITCH_SECONDS = 0.0005  # the longest that a thread running Python code delays the others; Python's default is ten times as long
GC_THRESHOLD = 10_000, 10, 10  # records are many short-lived dicts without cycles: Python's default of 700 costs a fifth of the time

_LAST_SECONDS = 1.0  # for threads that should have ended
_codes = []  # the exit code of the process

log = logging.getLogger(__name__)


@click.command(name="connect-standalone", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-daemon", "--daemon", is_flag=True, help="Run in the background; output goes to $LOG_DIR (default: logs)/connect-standalone.out.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    envvar="CONNECT_LOG_FORMAT",
    help="Format of log lines: Connect's layout, or one JSON object per line. Overrides the worker's key log.format.",
)
@click.version_option(package_name="connect-standalone", prog_name="connect-standalone")
@click.argument("worker", metavar="WORKER.PROPERTIES")
@click.argument("connectors", nargs=-1, metavar="[CONNECTOR.PROPERTIES | CONNECTOR.JSON | STATEMENTS.SQL]...")
def command(daemon, log_format, worker, connectors):
    """Run Kafka Connect's standalone mode: one worker with the given connectors and SQL statements.

    WORKER.PROPERTIES sets Kafka's address (bootstrap.servers; without it the worker runs an embedded log), the
    converters and the source offsets file. Use the REST API to create more connectors.
    """
    if daemon:
        _into_background()
    _leave(run(worker, connectors, log_format))


def main():
    """The console script."""
    atexit.register(_end_at_once)  # atexit runs handlers in reverse order: registered first, it runs last
    try:
        command(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except click.Abort:
        sys.exit(USAGE)


def run(worker_file, connector_files, log_format=None):
    """Run until a signal arrives; returns the exit code."""
    from standalone.cli.logs import TEXT, change_form, set_up_logs
    from standalone.cli.systemd import Notifier

    set_up_logs(os.environ.get("CONNECT_LOG_LEVEL", "INFO"), log_format or TEXT)
    asked_to_stop = threading.Event()
    _on_signals(asked_to_stop)
    notifier = Notifier()

    from standalone import properties
    from standalone.errors import ConnectError
    from standalone.runtime import early_spark

    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*GC_THRESHOLD)
    try:
        props = properties.load(worker_file)
        change_form(log_format or props.get("log.format", TEXT))
    except ConnectError as error:
        log.error("The worker cannot start: %s", error)
        return NOT_STARTED
    session = early_spark.launch(props, connector_files)

    from standalone.runtime.process import Process  # the worker's modules, a second or more

    process = Process(over=asked_to_stop, session=session)
    try:
        try:
            process.open(props)
        except ConnectError as error:
            log.error("The worker cannot start: %s", error)
            return NOT_STARTED
        try:
            process.create_connectors(connector_files)
        except ConnectError as error:
            log.error("%s", error)
            return NOT_CREATED
        notifier.ready(f"{len(process.herder.names())} connectors, REST on {', '.join(process.rest.addresses)}")
        _live(process, asked_to_stop, notifier)
        log.info("Stopping")
        return NOT_STARTED if process.rest_failed else FAILED if process.failed else 0
    except Exception:
        log.exception("The worker cannot continue")
        return NOT_STARTED
    finally:
        notifier.stopping(f"Stopping: {process.failed} has failed" if process.failed else "Stopping")
        process.close()


def _live(process, asked_to_stop, notifier):
    """Notify systemd's watchdog, if it is on, while the worker is healthy; returns when the worker is to stop."""
    logged = None
    while not asked_to_stop.wait(notifier.interval):
        health_problem = process.health_problem(notifier.interval / 2)
        if health_problem is None:
            notifier.alive()
        elif health_problem != logged:
            log.error("The worker no longer notifies systemd's watchdog, which will restart it: %s", health_problem)
        logged = health_problem


def _leave(code):
    """Exit with this code, even if connectors left threads running."""
    left = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.current_thread()]
    deadline = time.monotonic() + _LAST_SECONDS
    for thread in left:
        thread.join(max(0.0, deadline - time.monotonic()))
    left = [thread.name for thread in left if thread.is_alive()]
    if left:
        log.warning("Exiting while threads of plugins still run: %s", ", ".join(left))
        logging.shutdown()
        os._exit(code)
    _codes.append(code)
    sys.exit(code)


def _end_at_once():
    """Exit without Python's module cleanup, which takes a third of a second: everything is closed and flushed."""
    if _codes:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(_codes[0])


def _on_signals(asked_to_stop):
    def stop(number, frame):
        if asked_to_stop.is_set():
            os._exit(128 + number)  # a second signal: exit immediately
        asked_to_stop.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _into_background():
    """Detach from the terminal; the parent exits immediately."""
    folder = os.environ.get("LOG_DIR", "logs")
    os.makedirs(folder, exist_ok=True)
    out = os.open(os.path.join(folder, "connect-standalone.out"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, private.MODE)
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
