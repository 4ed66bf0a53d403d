"""connectctl dlq: list and inspect dead letters, and replay them to the topics that they come from."""

import collections
import functools
import json

import click

from standalone.cli.ctl_log import as_json, log_options
from standalone.cli.ctl_show import Group, emit, one_line, printable, progress, table

_QUEUE_KEYS = ("errors.deadletterqueue.topic.name", "errors.source.deadletterqueue.topic.name")
_SHOWN = ("stage", "class.name", "exception.class.name", "exception.message")
_MOST_TEXT = 2000


def add_to(main):
    main.add_command(dlq)


@click.group(cls=Group)
def dlq():
    """Dead letter queues: list, show, replay.

    A queue is named by its topic. Connectors with errors.deadletterqueue.context.headers.enable=true describe the failure in
    headers. Without these headers a letter has no error class and no original topic.
    """


def which(command):
    """Options that select letters; the command gets `choice`."""
    @click.option("--error-class", help="Only letters with this exception class; full or simple name, such as DataException.")
    @click.option("-p", "--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this partition of the queue.")
    @click.option("--offsets", metavar="A-B", help="Only letters at these offsets of the queue: 5, 5-9, 5- or -9.")
    @functools.wraps(command)
    def with_choice(*args, error_class, partitions, offsets, **kwargs):
        from standalone.tools.replay import Choice

        low, high = _span(offsets)
        return command(*args, choice=Choice(error_class, tuple(partitions), low, high), **kwargs)

    return with_choice


def _span(text):
    if text is None:
        return 0, None
    low, dash, high = text.strip().partition("-")
    if not (low + high).isdigit() or not dash and not low:
        raise click.UsageError(f"--offsets takes 5, 5-9, 5- or -9, not '{text}'.")
    return int(low or 0), int(high) if high else None if dash else int(low)


@dlq.command("list")
@log_options
@click.option("-t", "--topic", "topics", multiple=True, help="Queue to list; repeatable. Default: the queues of all connectors.")
@click.pass_obj
def list_queues(rest, reach, topics):
    """List the queues with their numbers of letters, by error class, and of replayed letters."""
    from standalone.tools.replay import read_letters, replayed

    owners = dict.fromkeys(topics, ()) or _queues(rest)
    found = []
    with reach() as log:
        there = log.admin.list_topics()
        for queue, connectors in sorted(owners.items()):
            errors, again, total = collections.Counter(), 0, 0
            if queue in there:
                done = replayed(log, queue)
                for letters in read_letters(log, queue):
                    total += len(letters)
                    again += sum(letter.offset in done[letter.partition] for letter in letters)
                    errors.update(letter.error_class for letter in letters)
            found.append({"queue": queue, "connectors": list(connectors), "letters": total, "replayed": again, "errors": dict(errors.most_common())})

    def render():
        rows = [(each["queue"], " ".join(each["connectors"]) or "-", each["letters"], each["replayed"]) for each in found]
        table(("QUEUE", "CONNECTORS", "LETTERS", "REPLAYED"), rows, empty="no connector has a dead letter queue (name one with --topic)")
        classes = [(each["queue"], name, count) for each in found for name, count in each["errors"].items()]
        if classes:
            click.echo()
            table(("QUEUE", "ERROR CLASS", "LETTERS"), classes)

    emit(found, render)


def _queues(rest):
    """{queue: connectors that write to it}"""
    owners = collections.defaultdict(list)
    for name, shown in sorted(rest.get("/connectors?expand=info").items()):
        for key in _QUEUE_KEYS:
            if queue := (shown["info"]["config"].get(key) or "").strip():
                owners[queue].append(name)
    return owners


@dlq.command()
@click.argument("queue")
@log_options
@which
@click.option("-n", "--count", type=click.IntRange(min=1), default=10, show_default=True, help="Maximum number of letters.")
@click.option("--newest", is_flag=True, help="Show the newest letters instead of the oldest.")
@click.option("--new", "only_new", is_flag=True, help="Only letters that were not replayed.")
@click.option("--traces", is_flag=True, help="Print stack traces.")
def show(queue, reach, choice, count, newest, only_new, traces):
    """Show letters: the record, its origin and the error."""
    from standalone.tools.replay import read_letters, replayed

    found = collections.deque(maxlen=count)
    with reach() as log:
        done = replayed(log, queue)
        for letters in read_letters(log, queue, choice):
            for letter in letters:
                if not (only_new and letter.offset in done[letter.partition]) and (newest or len(found) < count):
                    found.append(letter)
            if not newest and len(found) == count:
                break

    def render():
        for letter in found:
            _print_letter(queue, letter, letter.offset in done[letter.partition], traces)

    emit([_letter_json(queue, letter, letter.offset in done[letter.partition]) for letter in found], render)


def _letter_json(queue, letter, again):
    shown = as_json(queue, letter.partition, letter.offset, letter.timestamp, letter.key, letter.value, letter.headers)
    return {**shown, "error": letter.context, "replayed": again}


def _print_letter(queue, letter, again, traces):
    click.echo(click.style(f"{printable(queue)}-{letter.partition} offset {letter.offset}", bold=True) + ("  (replayed)" if again else ""))
    context = letter.context
    if context.get("topic"):
        place = "-".join(filter(None, (context["topic"], context.get("partition"))))
        offset = f" offset {context['offset']}" if context.get("offset") else ""
        by = f"{printable(context.get('connector.name') or '?')} task {context.get('task.id') or '?'}"
        click.echo(f"  from       {printable(place)}{offset}, by {by}")
    if context.get("source.partition"):
        click.echo(f"  source     {one_line(context['source.partition'])} at {one_line(context.get('source.offset') or 'null')}")
    if context.get("exception.class.name"):
        click.echo(f"  failed     in {printable(context.get('stage') or '?')} ({printable(context.get('class.name') or '?')})")
        message = one_line(context.get("exception.message") or "")
        click.echo(f"  error      {click.style(printable(letter.error_class), fg='red')}{': ' * bool(message)}{message}")
    for name, data in (("key", letter.key), ("value", letter.value)):
        click.echo(f"  {name:<10} {_decoded(data)}")
    for name, data in letter.headers:
        click.echo(f"  header     {printable(name)}={_decoded(data)}")
    if traces and context.get("exception.stacktrace"):
        click.echo("".join(f"    {printable(line)}\n" for line in context["exception.stacktrace"].rstrip().splitlines()), nl=False)


def _decoded(data):
    """Bytes in readable form: JSON, text, or hexadecimal."""
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"{len(data)} bytes: {data[: _MOST_TEXT // 3].hex(' ')}{' …' * (len(data) > _MOST_TEXT // 3)}"
    try:
        text = json.dumps(json.loads(text), ensure_ascii=False) if text[:1] in "{[" else text
    except ValueError:
        pass  # bad bytes may be the very error of this letter
    return one_line(text[:_MOST_TEXT]) + (" …" if len(text) > _MOST_TEXT else "")


@dlq.command()
@click.argument("queue")
@log_options
@which
@click.option("--to", metavar="TOPIC", help="Send to this topic. Default: each letter's original topic and partition.")
@click.option("-n", "--count", type=click.IntRange(min=1), help="Maximum number of letters.")
@click.option("--dry-run", is_flag=True, help="Report without sending.")
@click.option("--again", is_flag=True, help="Also send letters that were replayed before.")
@click.option("--as-polled", is_flag=True, help="Also send source records that failed before conversion, serialized by the source's own converter.")
def replay(queue, reach, choice, to, count, dry_run, again, as_polled):
    """Replay letters with their original key, value, timestamp and headers, without the headers that describe the failure.

    Offsets of replayed letters are committed in the consumer group connectctl-dlq-QUEUE, so a second replay skips them.
    """
    from standalone.tools.replay import replay as send

    with reach() as log:
        total = sum(end - begin for begin, end in log.ranges(log.partitions(queue)).values())
        with progress("looked at", total, "letters") as at:
            outcome = send(log, queue, choice, to, dry_run, again, as_polled, count, at)
    sent = sum(outcome.sent.values())
    found = {"queue": queue, "dry_run": dry_run, "sent": dict(outcome.sent), "replayed_before": outcome.before, "left": dict(outcome.left)}

    def render():
        verb = "would be sent" if dry_run else "sent"
        for topic, number in sorted(outcome.sent.items()):
            click.echo(f"{number} {verb} to {printable(topic)}")
        if not sent:
            click.echo(f"nothing {verb}")
        if outcome.before:
            click.echo(f"skipped {outcome.before} replayed before (send them again with --again)")
        for why, number in outcome.left.items():
            click.echo(click.style(f"{number} left: {why}", fg="yellow"))

    emit(found, render)
