"""connectctl preview and explain: dry-run a connector's transform chain, and show how a running chain executes. No offset is committed."""

import json
import os

import click

from standalone.cli.ctl_connectors import complete_name
from standalone.cli.ctl_rest import connector_path
from standalone.cli.ctl_show import Command, emit, one_line, printable

_PLACE = ("topic", "partition", "timestamp")
_MOST_TEXT = 4000


def add_to(main):
    for command in (preview, explain):
        main.add_command(command)


_FILE = click.Path(exists=True, dir_okay=False)


def _records_from(command):
    """The options that select the input records; see `_opened`."""
    for option in reversed(
        (
            click.option("-n", "--count", type=click.IntRange(min=1), default=10, show_default=True, help="Maximum number of records."),
            click.option("--stdin", is_flag=True, help="Read lines from standard input: strings for a source, serialized values for a sink."),
            click.option("-K", "--key-separator", help="Sink with --stdin: separator of key and value on each line."),
            click.option("--from-beginning", is_flag=True, help="Source: ignore stored offsets. (A sink always starts at the beginning.)"),
            click.option("--newest", is_flag=True, help="Sink: the newest records of its topics instead of the oldest."),
            click.option("--seconds", type=click.FloatRange(min=0.1), default=5.0, show_default=True, help="Seconds to wait for records."),
            click.option("-b", "--bootstrap", help="Sink: bootstrap servers. Default: those in the worker's file."),
        )
    ):
        command = option(command)
    return command


def _opened(worker, connector, count, stdin, key_separator, from_beginning, newest, seconds, bootstrap):
    """(a ConnectorPreview of these files, the input records)"""
    from standalone import properties
    from standalone.tools.preview import ConnectorPreview

    found = properties.load_connector(connector)
    opened = ConnectorPreview(properties.load(worker), found.name, found.config, bootstrap)
    if not stdin:
        return opened, opened.take(count, seconds, from_beginning, newest)
    lines = (line.rstrip(b"\n").removesuffix(b"\r") for line in click.get_binary_stream("stdin"))
    return opened, opened.take_lines(lines, count, key_separator.encode() if key_separator else None)


@click.command(cls=Command)
@click.argument("worker", metavar="WORKER.PROPERTIES", type=_FILE)
@click.argument("connector", metavar="CONNECTOR.PROPERTIES", type=_FILE)
@_records_from
def preview(worker, connector, **records):
    """Show records before and after every transform, and the serialized result.

    Runs a source briefly with read-only offsets; reads a sink's topics without a consumer group. Nothing is written and no offset is
    committed.
    """
    opened, taken = _opened(worker, connector, **records)
    traces = opened.traces(taken)

    def render():
        if not traces:
            click.echo("no records arrived (wait longer with --seconds, or pipe lines in with --stdin)")
        for number, trace in enumerate(traces, 1):
            _print_trace(number, trace)

    emit(traces, render)


@click.command(cls=Command)
@click.argument("name", metavar="NAME|WORKER.PROPERTIES", shell_complete=complete_name)
@click.argument("connector", metavar="[CONNECTOR.PROPERTIES]", type=_FILE, required=False)
@_records_from
@click.pass_obj
def explain(rest, name, connector, **records):
    """Show what a connector's transform chain is compiled to, and which engine runs which part.

    For a running connector's NAME: the number of records each engine ran, why records ran by rows, and Spark's plans so far. For files:
    Spark's logical and physical plans for the input records; starts Spark. The options apply to files only.
    """
    if connector is None:
        if os.path.isfile(name):
            raise click.UsageError(f"{name} is a file: name the connector's file after it, or give the name of a running connector.")
        _explain_running(rest.get(connector_path(name, "/pipeline")))
        return
    if not os.path.isfile(name):
        raise click.UsageError(f"No such file: {name}. Give the worker's file before the connector's.")
    opened, taken = _opened(name, connector, **records)
    words, plans = opened.explain(taken)

    def render():
        click.echo(printable(words))
        for plan in plans:
            click.echo("\n" + click.style(printable(plan["title"]), bold=True))
            click.echo(printable(plan["spark"] or "no Spark job needed"))

    emit({"chain": words.splitlines(), "plans": plans}, render)


def _explain_running(found):
    def render():
        if not found["tasks"]:
            click.echo("no task is running")
        for task in found["tasks"]:
            _print_task(task)

    emit(found, render)


def _print_task(task):
    whole = sum(task["records"].values())
    shares = [f"{engine} {records:,} ({records / whole:.0%})" for engine, records in task["records"].items() if records]
    click.echo(click.style(f"task {task['id']}", bold=True) + f": {', '.join(shares) or 'no records yet'}")
    if task["redone"]:
        click.echo(f"  {task['redone']:,} of these were rerun by rows")
    if task["failed_batches"]:
        said = f"  {task['failed_batches']:,} batches failed in columns and were rerun by rows; see the worker's log for the cause"
        click.echo(click.style(said, fg="yellow"))
    for each in task["by_rows"]:
        click.echo(f"  {each['records']:,} by rows: {printable(each['reason'])}")
    for line in task["chain"]:
        click.echo("  " + printable(line))
    for plan in task["spark_plans"]:
        click.echo("\n  " + click.style(f"Spark's plan, {printable(plan['title'])}", bold=True))
        for line in plan["spark"].splitlines():
            click.echo("  " + printable(line))


# --- A trace as text -----------------------------------------------------------------------------------------------

_OUTCOMES = {"dropped": "yellow", "failed": "red", "skipped": "cyan", "unchanged": None, "changed": "green"}


def _print_trace(number, trace):
    click.echo(click.style(f"record {number}", bold=True))
    before = []
    for step in trace["steps"]:
        outcome = step.get("outcome")
        title = printable(step["step"]) + (f" ({printable(step['class'])})" if step.get("class") else "")
        words = {"skipped": "skipped by its predicate"}.get(outcome, outcome)
        click.echo(f"  {title}" + (f": {click.style(words, fg=_OUTCOMES[outcome])}" if outcome else ""))
        if "bytes" in step:
            _print_bytes(step["bytes"])
        if "error" in step:
            click.echo(click.style(f"    {printable(step['error']['class'])}: {one_line(step['error']['message'])}", fg="red"))
        after = step["records"] if "records" in step else [step["record"]] if "record" in step else []
        for at, record in enumerate(after):
            _print_number(at, after)
            _print_record(record, before[at] if len(before) == len(after) else {})
        before = after or before
    if "written" in trace:
        click.echo(f"  would be {click.style('written', fg='green')}")
        written = trace["written"] if isinstance(trace["written"], list) else [trace["written"]]
        for at, said in enumerate(written):
            _print_number(at, written)
            _print_bytes(said)
    elif trace["outcome"] == "put":
        click.echo(f"  would be {click.style('put', fg='green')} into the sink as {'it is' if len(before) == 1 else 'they are'} then")
    click.echo()


def _print_number(at, all_of_them):
    if len(all_of_them) > 1:
        click.echo(f"   {at + 1} of {len(all_of_them)}")


def _print_record(record, before):
    """The record's parts; after the first transform only those that changed."""
    place = [f"{name} {printable(str(record[name]))}" for name in _PLACE if record[name] != before.get(name) and record[name] is not None]
    if place:
        click.echo(f"    {', '.join(place)}")
    for name in ("key", "value"):
        part = record[name]
        if part != before.get(name) and (before or part["value"] is not None or part["schema"]):
            click.echo(f"    {name:<8} {_cut(json.dumps(part['value'], ensure_ascii=False))}  {click.style(part['schema'] or 'no schema', dim=True)}")
    if record["headers"] != before.get("headers", []):
        for header in record["headers"]:
            shown = _cut(json.dumps(header["value"], ensure_ascii=False))
            click.echo(f"    header   {printable(header['name'])}={shown}  {click.style(header['schema'] or 'no schema', dim=True)}")
        if not record["headers"]:
            click.echo("    headers  none")


def _print_bytes(said):
    place = [f"{name} {printable(str(said[name]))}" for name in (*_PLACE, "offset") if said.get(name) is not None]
    click.echo(f"    {', '.join(place)}")
    for name in ("key", "value"):
        click.echo(f"    {name:<8} {_shown(said[name])}")
    for header in said["headers"]:
        click.echo(f"    header   {printable(header['name'])}={_shown(header['value'])}")


def _shown(data):
    if data is None:
        return "null"
    return _cut(data) if isinstance(data, str) else f"(base64) {_cut(data['base64'])}"


def _cut(text):
    return one_line(text[:_MOST_TEXT]) + (" …" if len(text) > _MOST_TEXT else "")
