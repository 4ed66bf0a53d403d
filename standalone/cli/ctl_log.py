"""connectctl's commands on Kafka, either the worker's embedded log or any cluster: topics, produce, consume.

The address comes from --bootstrap, from the client settings of a worker.properties (--worker-config), or from the running worker.
"""

import base64
import collections
import functools
import json
import os
import stat
import sys

import click

from standalone.cli.ctl_connectors import one_name
from standalone.cli.ctl_rest import Refused, connector_path
from standalone.cli.ctl_schemas import ValuesIn, ValuesOut, property_options, registry_props
from standalone.cli.ctl_show import Command, Group, done, emit, one_line, printable, progress, table, wants_json

_BATCH_ROWS, _BATCH_BYTES = 10_000, 512 * 1024
_TOKENS = "%t topic, %p partition, %o offset, %T timestamp, %k key, %s value, %h headers, %K and %S lengths, \\n \\t"


def add_to(main):
    for command in (topics, produce, consume):
        main.add_command(command)


def log_options(command):
    """Options that locate the log; the command gets `reach`, a function that returns a LogAccess."""
    @click.option(
        "-b", "--bootstrap", envvar="CONNECT_BOOTSTRAP", help="Bootstrap servers, HOST:PORT[,...] (CONNECT_BOOTSTRAP). Default: the worker's."
    )
    @click.option("--worker-config", type=click.Path(exists=True, dir_okay=False), help="Connect with the client settings of this worker.properties.")
    @click.option("--command-config", type=click.Path(exists=True, dir_okay=False), help="File of client properties, such as security.protocol.")
    @functools.wraps(command)
    def with_log(*args, bootstrap, worker_config, command_config, **kwargs):
        return command(*args, reach=Reach(click.get_current_context().obj, bootstrap, worker_config, command_config), **kwargs)

    return with_log


def schema_options(said):
    """--key, --value, --registry and --property; the command gets `kinds` and `registry_of`, which returns the registry client's keys."""
    kinds = click.Choice(["avro", "protobuf", "json-schema"])

    def with_options(command):
        @property_options
        @click.option("--value", "value_kind", type=kinds, help=said.format("value", "value"))
        @click.option("--key", "key_kind", type=kinds, help=said.format("key", "key"))
        @functools.wraps(command)
        def with_kinds(*args, registry, properties, key_kind, value_kind, **kwargs):
            worker_config = click.get_current_context().params.get("worker_config")
            kinds = {"key": key_kind, "value": value_kind}
            return command(*args, kinds=kinds, registry_of=lambda: registry_props(registry, properties, worker_config), **kwargs)

        return with_kinds

    return with_options


class Reach:
    """Opens the log that a command's options name."""

    def __init__(self, rest, bootstrap=None, worker_config=None, command_config=None):
        self._rest, self._bootstrap, self._worker_config, self._command_config = rest, bootstrap, worker_config, command_config

    def __call__(self):
        from standalone import properties
        from standalone.tools.log_access import LogAccess

        if self._worker_config:
            from standalone.runtime.configuration.worker_config import WorkerConfig

            props = properties.load(self._worker_config)
            if self._bootstrap:
                props = {**props, "bootstrap.servers": self._bootstrap}
            return LogAccess.of_worker(WorkerConfig.of(props))
        extra = properties.load(self._command_config) if self._command_config else {}
        return LogAccess.at(self._bootstrap or self._reported(), extra)

    def _reported(self):
        """The address that the running worker reports."""
        try:
            return self._rest.get("/ui/api/log")["bootstrap"]
        except (Refused, KeyError, TypeError) as problem:
            why = problem.message if isinstance(problem, Refused) and problem.status is None else f"the worker at {self._rest.url} does not report it"
            raise click.ClickException(f"The log's address is unknown: {why}. Give --bootstrap HOST:PORT, or --worker-config FILE.") from None


# --- Topics --------------------------------------------------------------------------------------------------------


@click.group(cls=Group)
def topics():
    """Topics of the log: list, describe, create, delete; and those that a connector uses (active)."""


@topics.command("list")
@log_options
@click.option("--internal", is_flag=True, help="Include internal topics.")
def list_topics(reach, internal):
    """List topics with their numbers of partitions and records."""
    with reach() as log:
        names = sorted(log.admin.list_topics(internal))
        described = log.admin.describe_topics(*names) if names else {}
        ranges = log.ranges((name, number) for name in names for number in described[name].partitions)
    counts = collections.Counter()
    for (name, _), (begin, end) in ranges.items():
        counts[name] += end - begin
    found = [{"topic": name, "partitions": len(described[name].partitions), "records": counts[name]} for name in names]
    emit(found, lambda: table(("TOPIC", "PARTITIONS", "RECORDS"), [each.values() for each in found], empty="no topics"))


@topics.command()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@log_options
@click.option("--configs", is_flag=True, help="All settings, too.")
def describe(names, reach, configs):
    """Describe topics: configuration, and leader and offset range of each partition."""
    found = {}
    with reach() as log:
        for name in names:
            ranges = log.ranges(log.partitions(name))
            topic = log.admin.describe_topics(name)[name]
            found[name] = {
                "partitions": [
                    {"partition": number, "leader": part.leader, "replicas": list(part.replicas), "in_sync": list(part.in_sync),
                     "begin": ranges[name, number][0], "end": ranges[name, number][1]}
                    for number, part in topic.partitions.items()
                ],
                **({"configs": log.admin.describe_configs(name)} if configs else {}),
            }  # fmt: skip

    def render():
        for name, shown in found.items():
            click.echo(click.style(printable(name), bold=True))
            rows = [
                (part["partition"], part["leader"], _numbers(part["replicas"]), _numbers(part["in_sync"]), part["begin"], part["end"])
                for part in shown["partitions"]
            ]
            table(("PARTITION", "LEADER", "REPLICAS", "IN SYNC", "BEGIN", "END"), rows)
            for key, value in sorted(shown.get("configs", {}).items()):
                click.echo(f"  {key}={printable(value or '')}")

    emit(found, render)


@topics.command()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@log_options
@click.option("-p", "--partitions", type=click.IntRange(min=1), help="Number of partitions. Default: the broker's.")
@click.option("-r", "--replication-factor", type=click.IntRange(min=1), help="Replication factor. Default: the broker's.")
@click.option("-c", "--config", "configs", metavar="KEY=VALUE", multiple=True, help="Topic configuration, such as retention.ms=60000; repeatable.")
def create(names, reach, partitions, replication_factor, configs):
    """Create topics. One that already exists is an error."""
    wrong = [pair for pair in configs if "=" not in pair]
    if wrong:
        raise click.UsageError(f"--config takes KEY=VALUE, not '{wrong[0]}'.")
    settings = dict(pair.split("=", 1) for pair in configs)
    with reach() as log:
        for name in names:
            if not log.admin.create_topics(name, partitions or -1, replication_factor or -1, settings):
                raise click.ClickException(printable(f"The topic '{name}' already exists."))
            done("created", name)


@topics.command()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@log_options
def delete(names, reach):
    """Delete topics and all their records."""
    with reach() as log:
        for name in names:
            log.admin.delete_topics(name)
            done("deleted", name)


@topics.command()
@one_name
@click.option("--reset", is_flag=True, help="Clear the list.")
@click.pass_obj
def active(rest, name, reset):
    """List the topics that a connector has used (REST: /connectors/NAME/topics)."""
    if reset:
        rest.ask("PUT", connector_path(name, "/topics/reset"))
        done("reset", name)
        return
    found = rest.get(connector_path(name, "/topics"))[name]["topics"]
    emit(found, lambda: click.echo("".join(f"{printable(topic)}\n" for topic in found), nl=False))


def _numbers(numbers):
    return ",".join(map(str, numbers))


# --- Records in ----------------------------------------------------------------------------------------------------


@click.command(cls=Command)
@click.argument("topic")
@log_options
@click.option("-f", "--file", type=click.File("rb"), default="-", help="File of lines. Default: standard input.")
@click.option("-K", "--key-separator", help="Separator of key and value on each line.")
@click.option("-H", "--header", "headers", metavar="NAME=VALUE", multiple=True, help="Header of every record; repeatable.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="Target partition. Default: by key.")
@click.option("--null", "null_text", metavar="TEXT", help="Text that stands for null in keys and values; a null value is a tombstone.")
@click.option("--from-json", is_flag=True, help="Read the output of `consume --json`: restores keys, values, headers and timestamps.")
@schema_options("Parse each {} as JSON and serialize it with the schema of --property {}.schema=…, which is registered.")
def produce(topic, reach, file, key_separator, headers, partition, null_text, from_json, kinds, registry_of):
    """Produce one record per line."""
    if from_json and key_separator is not None:
        raise click.UsageError("--from-json and --key-separator are mutually exclusive.")
    if from_json and any(kinds.values()):
        raise click.UsageError("--from-json restores the original bytes; it cannot be combined with --key or --value.")
    wrong = [pair for pair in headers if "=" not in pair]
    if wrong:
        raise click.UsageError(f"--header takes NAME=VALUE, not '{wrong[0]}'.")
    common = [(name, value.encode()) for name, _, value in (pair.partition("=") for pair in headers)]
    separator = None if key_separator is None else key_separator.encode()
    null = None if null_text is None else null_text.encode()
    typed = ValuesIn(topic, kinds, registry_of()) if any(kinds.values()) else None

    def parse(number, line):
        if from_json:
            return _from_json(number, line, common)
        key = None
        if separator is not None:
            key, found, line = line.partition(separator)
            if not found:
                raise click.ClickException(f"Line {number} has no key separator {key_separator!r}. The {count} records before it were written.")
        key, line = None if key == null else key, None if line == null else line
        if typed is not None:
            key, line = typed.data("key", key, number), typed.data("value", line, number)
        return key, line, -1, common

    count = 0
    with reach() as log, progress("read", _size(file), "bytes") as at:
        for batch in _batched(file, parse):
            log.write(topic, partition, _to_records(batch))
            count += len(batch)
            if _size(file):
                at(file.tell())
    emit({"topic": topic, "records": count}, lambda: click.echo(f"{count} record{'s' * (count != 1)} to {printable(topic)}", err=True))


def _size(file):
    """Size of a file on disk in bytes; None if unknown, as of a pipe."""
    try:
        about = os.fstat(file.fileno())
    except (OSError, AttributeError):
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None


def _batched(file, parse):
    """Batches of parsed lines. A batch ends early when no further line can be read without waiting."""
    batch, size = [], 0
    for number, line in enumerate(file, 1):
        if line.endswith(b"\n"):
            line = line[:-1].removesuffix(b"\r")
        try:
            batch.append(parse(number, line))
        except click.ClickException:
            if batch:
                yield batch
            raise
        size += len(line)
        if len(batch) >= _BATCH_ROWS or size >= _BATCH_BYTES or _is_terminal(file):
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _is_terminal(file):
    return bool(getattr(file, "isatty", lambda: False)())


def _from_json(number, line, common):
    try:
        said = json.loads(line)
        headers = [(header["name"], _bytes_of(header.get("value"))) for header in said.get("headers") or ()]
        return _bytes_of(said.get("key")), _bytes_of(said.get("value")), said.get("timestamp", -1) or -1, headers + common
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise click.ClickException(f"Line {number} is not a record printed by `consume --json`: {error}.") from None


def _bytes_of(said):
    """The bytes of a string or of {"base64": …}; any other JSON is serialized as JSON."""
    if said is None:
        return None
    if isinstance(said, str):
        return said.encode()
    if isinstance(said, dict) and set(said) == {"base64"}:
        return base64.b64decode(said["base64"], validate=True)
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def _to_records(rows):
    import numpy as np

    from standalone.wire import ByteColumn, Records

    keys, values, times, headers = zip(*rows)
    times = np.array(times, np.int64)
    return Records(
        len(rows),
        ByteColumn.of(keys) if any(key is not None for key in keys) else None,
        ByteColumn.of(values),
        times if (times >= 0).any() else None,
        list(headers) if any(headers) else None,
    )


# --- Records out ---------------------------------------------------------------------------------------------------


@click.command(cls=Command)
@click.argument("topic")
@log_options
@click.option("--from-beginning", is_flag=True, help="Start at the first record, not at the end.")
@click.option("-n", "--max-messages", "most", type=click.IntRange(min=1), help="Stop after this many records.")
@click.option("-p", "--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this partition; repeatable.")
@click.option("-o", "--offset", help="Start offset in each partition: a number, earliest, latest, or -N for the last N.")
@click.option("-g", "--group", help="Join this consumer group, continue from its committed offsets, and commit what was printed.")
@click.option("-e", "--exit", "at_end", is_flag=True, help="Stop at the current end of the topic.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Stop after this many seconds without a record.")
@click.option(
    "--show", metavar="LIST", default="", help="Fields to print before each value: topic,partition,offset,timestamp,key,headers; or all."
)
@click.option("--format", "form", help=f"Format of each record: {_TOKENS}.")
@schema_options("Deserialize each {} with its schema in the registry, and print it as JSON.")
def consume(topic, reach, from_beginning, most, partitions, offset, group, at_end, timeout, show, form, kinds, registry_of):
    """Print records until Ctrl-C: only their values, one per line, unless --show, --format or --json is given."""
    if group and (partitions or offset or at_end):
        raise click.UsageError("--group starts at committed offsets; it cannot be combined with --partition, --offset or --exit (use --timeout).")
    if offset is not None and from_beginning:
        raise click.UsageError("--offset and --from-beginning are mutually exclusive.")
    write = _writer(show, form, ValuesOut(kinds, registry_of()) if any(kinds.values()) else None)
    left = most if most is not None else float("inf")
    try:
        with reach() as log:
            if group:
                feed = log.read_as(group, [topic], from_beginning, timeout)
            else:
                spans = _spans(log, topic, partitions, "earliest" if from_beginning else offset or "latest", at_end)
                feed = ((*fetched, None) for fetched in log.read(spans, timeout))
            for name, partition, records, commit in feed:
                taken = records.slice(0, int(min(left, len(records))))
                write(name, partition, taken)
                left -= len(taken)
                if commit is not None:
                    commit(len(taken))
                if not left:
                    feed.close()
                    return
    except KeyboardInterrupt:
        return


def _spans(log, topic, partitions, start, at_end):
    """{pair: (from, to or None)}"""
    pairs = log.partitions(topic)
    missing = sorted(set(partitions) - {number for _, number in pairs})
    if missing:
        raise click.ClickException(printable(f"The topic '{topic}' has no partition {missing[0]}; it has {len(pairs)}."))
    spans = {}
    for pair, (begin, end) in log.ranges(pair for pair in pairs if not partitions or pair[1] in partitions).items():
        spans[pair] = (_start(start, begin, end), end if at_end else None)
    return spans


def _start(said, begin, end):
    if said in ("earliest", "beginning"):
        return begin
    if said in ("latest", "end"):
        return end
    try:
        number = int(said)
    except ValueError:
        raise click.UsageError(f"--offset takes a number, earliest, latest or -N, not '{said}'.") from None
    return max(begin, end + number) if number < 0 else min(max(number, begin), end)


def _writer(show, form, typed=None):
    """write(topic, partition, records) to standard output."""
    from standalone.tools.log_access import rows

    if form is None:
        form = "".join(_SHOWN[name] for name in _names(show)) + "%s\\n"
    pieces = _parse_format(form)
    out, terminal = click.get_binary_stream("stdout"), sys.stdout.isatty()

    def write(topic, partition, records):
        for offset, timestamp, key, value, headers in rows(records):
            if typed is not None:
                where = f"the record {topic}-{partition}@{offset}"
                if wants_json():
                    shown = as_json(topic, partition, offset, timestamp, key, value, headers)
                    found = ((part, typed.value(part, data, where, headers)) for part, data in (("key", key), ("value", value)))
                    shown.update((part, each) for part, each in found if not isinstance(each, bytes))
                    out.write(json.dumps(shown, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
                    continue
                key, value = typed.line("key", key, where, headers), typed.line("value", value, where, headers)
            if wants_json():
                line = json.dumps(as_json(topic, partition, offset, timestamp, key, value, headers), ensure_ascii=False)
                out.write(line.encode("utf-8", "surrogatepass") + b"\n")
                continue
            parts = {"t": topic.encode(), "p": b"%d" % partition, "o": b"%d" % offset, "T": b"%d" % timestamp, "k": key, "s": value}
            parts["h"] = b",".join(name.encode() + b"=" + (data if data is not None else b"NULL") for name, data in headers)
            parts["K"], parts["S"] = (b"%d" % (-1 if data is None else len(data)) for data in (key, value))
            line = b"".join(piece if isinstance(piece, bytes) else _shown(parts[piece], terminal) for piece in pieces)
            out.write(line)
        out.flush()

    return write


_SHOWN = {"topic": "%t\t", "partition": "%p\t", "offset": "%o\t", "timestamp": "%T\t", "headers": "%h\t", "key": "%k\t"}


def _names(show):
    names = [name.strip() for name in show.split(",") if name.strip()]
    if names == ["all"]:
        return list(_SHOWN)
    wrong = [name for name in names if name not in _SHOWN]
    if wrong:
        raise click.UsageError(f"--show takes {', '.join(_SHOWN)} or all, not '{wrong[0]}'.")
    return names


def _parse_format(form):
    """Pieces of a format: literal bytes, or the letter of a token."""
    pieces, at = [], 0
    while at < len(form):
        pair = form[at : at + 2]
        if pair[0] == "%" and pair[1:] and pair[1] in "tpoTkshKS":
            pieces.append(pair[1])
        elif pair in ("\\n", "\\t", "%%", "\\\\"):
            pieces.append({"\\n": b"\n", "\\t": b"\t", "%%": b"%", "\\\\": b"\\"}[pair])
        elif pair[0] == "%":
            raise click.UsageError(f"--format knows {_TOKENS} and %%, not '{pair}'.")
        else:
            pieces.append(pair[0].encode())
            at -= 1
        at += 2
    return pieces


def _shown(data, terminal):
    """A part of a record, unchanged; on a terminal, control characters are escaped."""
    if data is None:
        return b"NULL"
    return one_line(data.decode("utf-8", "replace")).encode() if terminal else data


def as_json(topic, partition, offset, timestamp, key, value, headers):
    """A record for JSON: bytes as text, or as {"base64": …} if they are not UTF-8."""
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": timestamp if timestamp >= 0 else None,
        "key": json_bytes(key),
        "value": json_bytes(value),
        "headers": [{"name": name, "value": json_bytes(data)} for name, data in headers],
    }


def json_bytes(data):
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
