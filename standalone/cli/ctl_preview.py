"""connectctl preview and explain: records through a connector's chain before it runs, and what a running one does. No offset moves."""

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
    """The options that say where records come from; see `_opened`."""
    for option in reversed(
        (
            click.option("-n", "--count", type=click.IntRange(min=1), default=10, show_default=True, help="So many records at most."),
            click.option("--stdin", is_flag=True, help="Take lines of standard input: texts for a source, bytes from the log for a sink."),
            click.option("-K", "--key-separator", help="With --stdin, for a sink: what is between key and value on each line."),
            click.option("--from-beginning", is_flag=True, help="A source: as if it had no stored offsets. (A sink begins there anyway.)"),
            click.option("--newest", is_flag=True, help="A sink: the newest records of its topics, not the oldest."),
            click.option("--seconds", type=click.FloatRange(min=0.1), default=5.0, show_default=True, help="How long to wait for records."),
            click.option("-b", "--bootstrap", help="A sink: where the log is, if not where the worker's file says."),
        )
    ):
        command = option(command)
    return command


def _opened(worker, connector, count, stdin, key_separator, from_beginning, newest, seconds, bootstrap):
    """(a ConnectorPreview of these files, the records taken)"""
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
    """Show records before and after every transform, and the bytes that would be written.

    A source is run for a moment, on offsets that it can only read; a sink's topics are read without a group. Nothing is written and no
    offset moves.
    """
    opened, taken = _opened(worker, connector, **records)
    traces = opened.traces(taken)

    def render():
        if not traces:
            click.echo("no records came (--seconds waits longer, --stdin takes lines)")
        for number, trace in enumerate(traces, 1):
            _print_trace(number, trace)

    emit(traces, render)


@click.command(cls=Command)
@click.argument("name", metavar="NAME|WORKER.PROPERTIES", shell_complete=complete_name)
@click.argument("connector", metavar="[CONNECTOR.PROPERTIES]", type=_FILE, required=False)
@_records_from
@click.pass_obj
def explain(rest, name, connector, **records):
    """Show what a connector's chain is compiled to, and which engine does what.

    Of a running connector by its NAME: which engine did how many records, why some went by rows, and Spark's plans so far. Of files, for
    records such as there are: Spark's plans, logical and physical; starts Spark. The options are for files.
    """
    if connector is None:
        if os.path.isfile(name):
            raise click.UsageError(f"{name} is a file: give the connector's file after it, or the name of a running connector.")
        _explain_running(rest.get(connector_path(name, "/pipeline")))
        return
    if not os.path.isfile(name):
        raise click.UsageError(f"There is no file {name}: give the worker's file before the connector's.")
    opened, taken = _opened(name, connector, **records)
    words, plans = opened.explain(taken)

    def render():
        click.echo(printable(words))
        for plan in plans:
            click.echo("\n" + click.style(printable(plan["title"]), bold=True))
            click.echo(printable(plan["spark"] or "nothing to compute: no Spark job"))

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
        click.echo(f"  of these {task['redone']:,} were done again by rows")
    if task["failed_batches"]:
        said = f"  {task['failed_batches']:,} batches failed in columns and were done by rows; the worker's log says why"
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
        words = {"skipped": "not for this record, its predicate says"}.get(outcome, outcome)
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
    """Its parts; after the first link only those that changed."""
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
