"""connectctl's commands about offsets: show, set and reset them, show the lag of sinks, import and export Java's offsets file."""

import json
import os
import re

import click

from standalone.cli.ctl_connectors import one_name, statuses
from standalone.cli.ctl_log import log_options
from standalone.cli.ctl_rest import connector_path
from standalone.cli.ctl_show import Command, Group, emit, emit_line, printable, table

_PLACE = re.compile(r"(.+):(\d+)")
_WAIT_SECONDS = 30


def add_to(main):
    for command in (offsets, lag, import_offsets, export_offsets):
        main.add_command(command)


@click.group(cls=Group)
def offsets():
    """Show, set or reset the offsets of a connector. Changes require a stopped connector; --stop stops it."""


stop_option = click.option("--stop", "stop_first", is_flag=True, help="Stop the connector first, and resume it afterwards unless it was stopped.")


@offsets.command()
@one_name
@click.pass_obj
def get(rest, name):
    """Show a connector's offsets: a source's from the offsets file, a sink's from its consumer group."""
    found = rest.get(connector_path(name, "/offsets"))

    def render():
        rows = [(_compact(entry["partition"]), _compact(entry["offset"])) for entry in found["offsets"]]
        table(("PARTITION", "OFFSET"), rows, empty="no offsets")

    emit(found, render)


def _compact(value):
    return json.dumps(value, ensure_ascii=False)


@offsets.command(
    "set",
    epilog="""For a source: connectctl offsets set NAME '{"filename":"in.txt"}' '{"position":0}'. """
    "For a sink: connectctl offsets set NAME TOPIC:0 42.",
)
@one_name
@click.argument("partition", required=False)
@click.argument("offset", required=False)
@click.option("-f", "--file", type=click.File("rb"), help="File of offsets in the format of `offsets get --json`; - is standard input.")
@stop_option
@click.pass_obj
def set_offsets(rest, name, partition, offset, file, stop_first):
    """Set the offset of one partition, or all offsets in a file. A null offset resets its partition."""
    if (file is None) == (partition is None) or (partition is None) != (offset is None):
        raise click.UsageError("Give a PARTITION and its OFFSET, or --file.")
    if file is not None:
        body = _parsed(file.read(), "The file")
    else:
        place = _PLACE.fullmatch(partition)
        if place and not partition.lstrip().startswith("{"):
            where = {"kafka_topic": place[1], "kafka_partition": int(place[2])}
            body = {"partition": where, "offset": {"kafka_offset": int(offset)} if offset.isdigit() else _parsed(offset, "OFFSET")}
        else:
            body = {"partition": _parsed(partition, "PARTITION"), "offset": _parsed(offset, "OFFSET")}
        body = {"offsets": [body]}
    _change(rest, name, stop_first, "PATCH", body)


def _parsed(text, what):
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"{what} is not JSON: {error}. For a sink, PARTITION may also be TOPIC:NUMBER and OFFSET a number.") from None


@offsets.command()
@one_name
@stop_option
@click.pass_obj
def reset(rest, name, stop_first):
    """Reset all offsets of a connector: a source starts from the beginning, a sink where auto.offset.reset says."""
    _change(rest, name, stop_first, "DELETE", None)


def _change(rest, name, stop_first, method, body):
    before = rest.get(connector_path(name, "/status"))["connector"]["state"] if stop_first else "STOPPED"
    if before != "STOPPED":
        rest.ask("PUT", connector_path(name, "/stop"))
        _wait_stopped(rest, name)
    try:
        said = rest.ask(method, connector_path(name, "/offsets"), body)
    finally:
        if before == "PAUSED":
            rest.ask("PUT", connector_path(name, "/pause"))
        elif before != "STOPPED":
            rest.ask("PUT", connector_path(name, "/resume"))
    emit_line(said, lambda: click.echo(printable(said["message"])))


def _wait_stopped(rest, name):
    import threading
    import time

    deadline, never = time.monotonic() + _WAIT_SECONDS, threading.Event()
    while (state := rest.get(connector_path(name, "/status"))["connector"]["state"]) != "STOPPED":
        if time.monotonic() > deadline:
            raise click.ClickException(printable(f"{name} is {state} {_WAIT_SECONDS} s after the stop request; its offsets were not changed."))
        never.wait(0.05)


@click.command(cls=Command)
@click.argument("name")
@log_options
@click.pass_obj
def lag(rest, name, reach):
    """Show a sink's lag: committed offset and end offset of each partition."""
    shown = statuses(rest, [name])[name]
    if shown["type"] != "sink":
        raise click.ClickException(printable(f"{name} is a {shown['type']}: only sinks have a lag."))
    entries = rest.get(connector_path(name, "/offsets"))["offsets"]
    committed = {(entry["partition"]["kafka_topic"], entry["partition"]["kafka_partition"]): entry["offset"]["kafka_offset"] for entry in entries}
    config = rest.get(connector_path(name, "/config"))
    topics = {topic.strip() for topic in (config.get("topics") or "").split(",") if topic.strip()}
    with reach() as log:
        there = log.admin.list_topics()
        if config.get("topics.regex"):
            from standalone.runtime.configuration.connector_config import compile_java

            pattern = compile_java(config["topics.regex"])
            topics |= {topic for topic in there if pattern.fullmatch(topic)}
        pairs = {pair for topic in topics & there for pair in log.partitions(topic)} | {pair for pair in committed if pair[0] in there}
        ranges = log.ranges(sorted(pairs))
    found = []
    for (topic, number), (begin, end) in ranges.items():
        at = committed.get((topic, number))
        found.append({"topic": topic, "partition": number, "committed": at, "end": end, "lag": max(0, end - (begin if at is None else at))})

    def render():
        rows = [
            (each["topic"], each["partition"], "-" if each["committed"] is None else each["committed"], each["end"], each["lag"]) for each in found
        ]
        table(("TOPIC", "PARTITION", "COMMITTED", "END", "LAG"), rows, empty="none of its topics exists")
        if found:
            click.echo(f"total lag: {sum(each['lag'] for each in found)}")

    emit({"connector": name, "partitions": found, "lag": sum(each["lag"] for each in found)}, render)


# --- Java's offsets file -------------------------------------------------------------------------------------------

worker_option = click.option(
    "-w", "--worker", required=True, type=click.Path(exists=True, dir_okay=False), help="worker.properties, which names the offsets file."
)
connector_option = click.option("-c", "--connector", "connectors", multiple=True, help="Only offsets of this connector; repeatable.")


@click.command("import-offsets", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@worker_option
@connector_option
@click.option("--overwrite", is_flag=True, help="Replace existing offsets by those in the file.")
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
def import_offsets(file, worker, connectors, overwrite, dry_run):
    """Import the source offsets from FILE of Java's connect-standalone. Both workers must be stopped.

    Not needed if offset.storage.file.filename names Java's own file: the worker imports it at its first start.
    """
    from standalone.clock import SYSTEM
    from standalone.runtime.offsets.exchange import Stopped, read_java, take_in

    entries = read_java(file)
    with Stopped(_worker_config(worker), SYSTEM, look_only=dry_run) as held:
        report = take_in(entries, held, connectors, overwrite, dry_run)
    found = [
        {"connector": connector, "partition": partition, "offset": offset, "before": before, "done": action}
        for connector, partition, offset, before, action in report
    ]

    def render():
        rows = [(each["connector"], _compact(each["partition"]), _compact(each["offset"]), _compact(each["before"]), each["done"]) for each in found]
        table(("CONNECTOR", "PARTITION", "JAVA'S OFFSET", "BEFORE", "WOULD BE" if dry_run else "DONE"), rows, empty="no offsets in that file")
        if any(each["done"] == "kept" for each in found):
            click.echo("kept: an existing offset differs and was not replaced (use --overwrite to replace it)")

    emit({"file": file, "dry_run": dry_run, "offsets": found}, render)


@click.command("export-offsets", cls=Command)
@click.argument("file", type=click.Path(dir_okay=False))
@worker_option
@connector_option
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
def export_offsets(file, worker, connectors, overwrite):
    """Export the source offsets to FILE in the format of Java's connect-standalone. The worker must be stopped."""
    from standalone.clock import SYSTEM
    from standalone.runtime.offsets.exchange import Stopped, write_java

    config = _worker_config(worker)
    with Stopped(config, SYSTEM) as held:
        converter = config.plugins.find("converter", "JsonConverter").of({"schemas.enable": "false"})
        written = write_java(os.path.abspath(file), held, converter, connectors, overwrite)
    found = [{"connector": connector, "partition": partition, "offset": offset} for connector, partition, offset in written]

    def render():
        rows = [(each["connector"], _compact(each["partition"]), _compact(each["offset"])) for each in found]
        table(("CONNECTOR", "PARTITION", "OFFSET"), rows, empty="no offsets")
        click.echo(f"{len(found)} written to {file}")

    emit({"file": file, "offsets": found}, render)


def _worker_config(path):
    from standalone import properties
    from standalone.runtime.configuration.worker_config import WorkerConfig

    return WorkerConfig.of(properties.load(path))
