"""connectctl's commands about connectors and their states: list, status, watch, history, pause, resume, stop, restart, delete."""

import collections
import json
import threading
import time
from datetime import datetime, timezone

import click

from standalone.cli.ctl_rest import Refused, connector_path
from standalone.cli.ctl_show import SOMETHING_FAILED, Command, done, emit, emit_line, paint_states, printable, table, wants_json

FAILED = "FAILED"
_POLL_SECONDS = 0.2


def add_to(main):
    for command in (about, list_connectors, status, watch, history, pause, resume, stop, restart, delete):
        main.add_command(command)


def complete_name(context, parameter, incomplete):
    """Connector names for shell completion; none if no worker answers."""
    from standalone.cli.ctl_rest import Rest

    try:
        names = Rest.of(context.find_root().params).get("/connectors")
    except Refused:
        return []
    return [name for name in names if name.startswith(incomplete)]


one_name = click.argument("name", shell_complete=complete_name)
some_names = click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_name)
any_names = click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_name)


@click.command(cls=Command)
@click.pass_obj
def about(rest):
    """Show the worker's version, cluster and health."""
    found = rest.get("/")
    try:
        health = rest.get("/health")
    except Refused as refused:
        health = {"status": "not ready", "message": refused.message}
    shown = {**found, "url": rest.url, "health": health["status"], "message": health["message"]}
    emit(shown, lambda: [click.echo(f"{key}: {printable(str(value))}") for key, value in shown.items()])


@click.command("list", cls=Command)
@click.pass_context
def list_connectors(context):
    """List all connectors and their states. Exit code 3 if a connector or task is FAILED."""
    found = statuses(context.obj)
    emit(found, lambda: _print_list(found))
    _exit_if_failed(context, found)


def statuses(rest, names=()):
    """{name: status} of these connectors, or of all."""
    if names:
        return {name: rest.get(connector_path(name, "/status")) for name in names}
    return {name: shown["status"] for name, shown in sorted(rest.get("/connectors?expand=status").items())}


def has_failed(found):
    return any(FAILED in [status["connector"]["state"], *(task["state"] for task in status["tasks"])] for status in found.values())


def _exit_if_failed(context, found):
    if has_failed(found):
        context.exit(SOMETHING_FAILED)


def _print_list(found):
    rows = [(name, status["type"], status["connector"]["state"], _counted(status["tasks"])) for name, status in found.items()]
    table(("NAME", "TYPE", "STATE", "TASKS"), rows, empty="no connectors")


def _counted(tasks):
    """As "2 RUNNING, 1 FAILED"."""
    states = collections.Counter(task["state"] for task in tasks)
    return ", ".join(f"{count} {state}" for state, count in states.items()) or "none"


@click.command(cls=Command)
@any_names
@click.pass_context
def status(context, names):
    """Show the states of connectors (default: all) and their tasks, with stack traces of failures. Exit code 3 if one is FAILED."""
    found = statuses(context.obj, names)

    def render():
        for name, shown in found.items():
            _print_status(name, shown)

    emit(found, render)
    _exit_if_failed(context, found)


def _print_status(name, shown):
    click.echo(click.style(printable(name), bold=True) + f" ({shown['type']})")
    for what, part in [("connector", shown["connector"])] + [(f"task {task['id']}", task) for task in shown["tasks"]]:
        more = [f"{key}={_text(value)}" for key, value in part.items() if key not in ("id", "state", "worker_id", "version", "trace")]
        click.echo(paint_states(f"  {what}: {part['state']} on {printable(part['worker_id'])}") + "".join(f"  {printable(each)}" for each in more))
        if part.get("trace"):
            click.echo("".join(f"    {printable(line)}\n" for line in part["trace"].rstrip().splitlines()), nl=False)


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)


@click.command(cls=Command)
@any_names
@click.option("-i", "--interval", type=click.FloatRange(min=0.05), default=2.0, show_default=True, help="Seconds between refreshes.")
@click.option("--times", type=click.IntRange(min=1), help="End after this many refreshes. Default: at Ctrl-C.")
@click.pass_context
def watch(context, names, interval, times):
    """Show the states and refresh them until Ctrl-C. With --json: one line per refresh."""
    never = threading.Event()
    refreshes = 0
    try:
        while True:
            _refresh(context.obj, names)
            refreshes += 1
            if refreshes == times:
                return
            never.wait(interval)
    except KeyboardInterrupt:
        click.echo()


def _refresh(rest, names):
    """Print the states once; if the worker does not answer, print that instead."""
    try:
        found, problem = statuses(rest, names), None
    except Refused as refused:
        if refused.status is not None:
            raise
        found, problem = {}, refused.message
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    if wants_json():
        emit_line({"time": now, **({"error": problem} if problem else {"connectors": found})}, None)
        return
    click.clear()
    click.echo(f"{now}  {rest.url}\n")
    if problem:
        click.echo(click.style(printable(problem), fg="red"))
    else:
        _print_list(found)


@click.command(cls=Command)
@one_name
@click.option("-n", "--count", type=click.IntRange(min=1), default=50, show_default=True, help="How many entries, newest first.")
@click.option("--traces", is_flag=True, help="Print full stack traces, not only their first lines.")
@click.pass_obj
def history(rest, name, count, traces):
    """Show past states of a connector and its tasks, newest first."""
    found = rest.get(connector_path(name, "/history"))[:count]

    def render():
        rows = [
            (_when(each["time"]), "connector" if each.get("task") is None else f"task {each['task']}", each["state"], _first_line(each.get("trace")))
            for each in found
        ]
        table(("TIME", "WHAT", "STATE", "TRACE"), rows, empty="no history yet")
        for each in found if traces else ():
            if each.get("trace"):
                click.echo(f"\n{_when(each['time'])}\n{printable(each['trace'].rstrip())}")

    emit(found, render)


def _when(moment):
    """A time as the worker reports it: milliseconds, or a string."""
    if isinstance(moment, (int, float)):
        return datetime.fromtimestamp(moment / 1000, timezone.utc).astimezone().isoformat(" ", "milliseconds")
    return moment


def _first_line(trace):
    return trace.strip().splitlines()[0] if trace and trace.strip() else ""


# --- Lifecycle -----------------------------------------------------------------------------------------------------


def _each(rest, names, act, verb):
    """Send the request for each connector; report all refusals at the end, with exit code 1."""
    refused = []
    for name in names:
        try:
            act(name)
        except Refused as problem:
            if problem.status is None:
                raise
            refused.append(f"{name}: {problem.message}" if len(names) > 1 else problem.message)
        else:
            done(verb, name)
    if refused:
        raise click.ClickException(printable("\n".join(refused)))


def _act(verb, method, rest_path, said, doc):
    @click.command(verb, cls=Command, help=doc)
    @some_names
    @click.pass_obj
    def act(rest, names):
        _each(rest, names, lambda name: rest.ask(method, connector_path(name, rest_path)), said)

    return act


pause = _act("pause", "PUT", "/pause", "paused", "Pause connectors and their tasks.")
resume = _act("resume", "PUT", "/resume", "resumed", "Resume connectors that are paused or stopped.")
stop = _act("stop", "PUT", "/stop", "stopped", "Stop connectors. Their tasks end; configuration and offsets remain.")
delete = _act("delete", "DELETE", "", "deleted", "Delete connectors. Their offsets remain.")


@click.command(cls=Command)
@some_names
@click.option("--tasks", is_flag=True, help="Restart its tasks as well.")
@click.option("--only-failed", is_flag=True, help="Restart only FAILED connectors and tasks.")
@click.option("--task", type=click.IntRange(min=0), help="Restart only this task.")
@click.option("--wait", "seconds", type=click.FloatRange(min=0), help="Wait up to this many seconds for RUNNING; exit code 3 if one FAILED.")
@click.pass_context
def restart(context, names, tasks, only_failed, task, seconds):
    """Restart connectors and, with --tasks, their tasks."""
    if task is not None and (tasks or only_failed):
        raise click.UsageError("--task restarts one task; it cannot be combined with --tasks or --only-failed.")
    path = f"/restart?includeTasks={str(tasks).lower()}&onlyFailed={str(only_failed).lower()}" if task is None else f"/tasks/{task}/restart"
    _each(context.obj, names, lambda name: context.obj.ask("POST", connector_path(name, path)), "restarted")
    if seconds is not None:
        wait_until_settled(context, names, seconds)


def wait_until_settled(context, names, seconds):
    """Wait until all of these are RUNNING (or PAUSED or STOPPED, if that is the target state); exit code 3 on FAILED, 1 on timeout."""
    deadline = time.monotonic() + seconds
    never = threading.Event()
    while True:
        found = statuses(context.obj, names)
        if has_failed(found):
            if not wants_json():
                for name, shown in found.items():
                    _print_status(name, shown)
            context.exit(SOMETHING_FAILED)
        if all(_is_settled(shown) for shown in found.values()):
            return
        if time.monotonic() >= deadline:
            late = ", ".join(name for name, shown in found.items() if not _is_settled(shown))
            raise click.ClickException(printable(f"Not RUNNING after {seconds:g} s: {late}. See connectctl status."))
        never.wait(_POLL_SECONDS)


def _is_settled(shown):
    if shown["connector"]["state"] in ("PAUSED", "STOPPED"):
        return True
    return shown["connector"]["state"] == "RUNNING" and bool(shown["tasks"]) and all(task["state"] == "RUNNING" for task in shown["tasks"])
