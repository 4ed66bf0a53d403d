"""connectctl top: a live view of the worker and its connectors, from /metrics."""

import collections
import re
import sys
import threading
import time

import click

from standalone.cli.ctl_connectors import statuses
from standalone.cli.ctl_rest import Refused
from standalone.cli.ctl_show import Command, console, emit_line, is_terminal, printable, rich_table, table, wants_json

_LINE = re.compile(r'([a-z_]+)(?:\{(.*)\})? (\S+)')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_RECORDS = ("kafka_connect_source_task_source_record_poll_total", "kafka_connect_sink_task_sink_record_read_total")
_LAG = "kafka_connect_sink_task_sink_record_lag_max"
_ERRORS = "kafka_connect_task_error_total_record_errors"
_CPU, _MEMORY = "process_cpu_seconds_total", "process_resident_memory_bytes"
_ORDERS = {"records": "records_per_second", "lag": "lag", "errors": "errors", "name": None}


def add_to(main):
    main.add_command(top)


@click.command(cls=Command)
@click.option("-i", "--interval", type=click.FloatRange(min=0.05), default=2.0, show_default=True, help="Seconds between refreshes.")
@click.option("--times", type=click.IntRange(min=1), help="End after this many refreshes. Default: at Ctrl-C.")
@click.option("--sort", "order", type=click.Choice(list(_ORDERS)), default="records", show_default=True, help="Sort order of connectors.")
@click.pass_obj
def top(rest, interval, times, order):
    """Show each connector's records per second, lag and errors, and the worker's CPU and memory. With --json: one line per refresh."""
    never, looks, before = threading.Event(), 0, None
    screen = _screen()
    with screen:
        try:
            while True:
                try:
                    now = _Look(rest)
                    screen.show(now.since(before), order, rest.url)
                    before, looks = now, looks + 1
                except Refused as refused:
                    if before is None or refused.status is not None:
                        raise
                    screen.problem(refused.message)
                if looks == times:
                    return
                never.wait(interval)
        except KeyboardInterrupt:
            return


class _Look:
    """A snapshot of the counters."""

    def __init__(self, rest):
        self.at = time.monotonic()
        self.values = collections.defaultdict(dict)  # metric -> {(connector, task): value}
        for name, labels, value in samples(rest.text("/metrics")):
            if name in (*_RECORDS, _LAG, _ERRORS, _CPU, _MEMORY):
                self.values[name][labels.get("connector"), labels.get("task")] = value
        self.statuses = statuses(rest)

    def since(self, before):
        """{worker: …, connectors: […]} with counters as rates since `before`; the first refresh has no rates."""
        connectors = []
        for name, status in self.statuses.items():
            lags = [value for (connector, _), value in self.values[_LAG].items() if connector == name]
            failed = sum(task["state"] == "FAILED" for task in status["tasks"])
            connectors.append(
                {
                    "name": name,
                    "type": status["type"],
                    "state": status["connector"]["state"],
                    "tasks": len(status["tasks"]),
                    "failed": failed,
                    "records_per_second": self._rate(before, _RECORDS, name),
                    "lag": int(max(lags)) if lags else None,
                    "errors": int(sum(value for (connector, _), value in self.values[_ERRORS].items() if connector == name)),
                }
            )
        cpu = self._rate(before, (_CPU,), None)
        worker = {"cpu_percent": None if cpu is None else round(100 * cpu, 1), "memory_bytes": int(self.values[_MEMORY].get((None, None), 0))}
        return {"worker": worker, "connectors": connectors}

    def _rate(self, before, metrics, connector):
        """A restarted task counts from 0: its whole count is the increase."""
        if before is None:
            return None
        moved = 0.0
        for metric in metrics:
            for place, value in self.values[metric].items():
                if place[0] == connector:
                    then = before.values[metric].get(place, 0.0)
                    moved += value - then if value >= then else value
        return round(moved / max(0.001, self.at - before.at), 3)


def samples(text):
    """(name, labels, value) of each line of Prometheus' text."""
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found:
            yield found[1], {name: _unescaped(value) for name, value in _LABEL.findall(found[2] or "")}, float(found[3])


def _unescaped(value):
    return re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], value)


# --- Output ----------------------------------------------------------------------------------------------------------

_HEADS = ("NAME", "TYPE", "STATE", "TASKS", "RECORDS/S", "LAG", "ERRORS")


def _rows(found, order):
    key = _ORDERS[order]
    ordered = sorted(found["connectors"], key=lambda each: (-(each[key] or 0) if key else 0, each["name"]))
    return [
        (
            printable(each["name"]), each["type"], each["state"],
            f"{each['tasks']}" + (f", {each['failed']} FAILED" if each["failed"] else ""),
            _number(each["records_per_second"]), _number(each["lag"]), _number(each["errors"]),
        )
        for each in ordered
    ]


def _number(value):
    return "-" if value is None else f"{value:,.0f}"


def _head(found, url):
    worker = found["worker"]
    cpu = "-" if worker["cpu_percent"] is None else f"{worker['cpu_percent']:.0f} %"
    return f"{time.strftime('%H:%M:%S')}  {printable(url)}  CPU {cpu}  memory {worker['memory_bytes'] / (1 << 20):,.0f} MiB"


def _screen():
    return _Lines() if wants_json() or not is_terminal(sys.stdout) else _Terminal()


class _Lines:
    """Print refreshes one below the other, for logs and scripts."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def show(self, found, order, url):
        def render():
            click.echo(_head(found, url))
            table(_HEADS, _rows(found, order), empty="no connectors")

        emit_line(found, render)

    def problem(self, said):
        emit_line({"error": said}, lambda: click.echo(printable(said)))


class _Terminal:
    """Redraw the screen on each refresh."""

    def __enter__(self):
        from rich.live import Live

        self._live = Live(console=console(), screen=True, auto_refresh=False)
        self._live.__enter__()
        return self

    def __exit__(self, *problem):
        return self._live.__exit__(*problem)

    def show(self, found, order, url):
        from rich.console import Group

        self._live.update(Group(_text(_head(found, url)), _text(""), rich_table(_HEADS, _rows(found, order))), refresh=True)

    def problem(self, said):
        self._live.update(_text(printable(said), "red"), refresh=True)


def _text(said, style=""):
    from rich.text import Text

    return Text(said, style=style)
