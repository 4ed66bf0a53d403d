"""The output of connectctl: tables, colours on a terminal, and --json for every command.

    @group.command(cls=Command)             a command with --json
    emit(data, lambda: table(...))          prints JSON with --json, else the table
    with progress("replaying", 500) as at:  a bar on a terminal, lines elsewhere; at(120) reports progress

On a terminal rich draws tables and bars; pipes and logs get plain lines for scripts and grep.

Control characters in names, traces and records are escaped, so no record can control the terminal.
"""

import contextlib
import json
import os
import re
import sys
import time
import unicodedata

import click

OK, REFUSED, USAGE, SOMETHING_FAILED = 0, 1, 2, 3

_COLOURS = {
    "RUNNING": "green",
    "PAUSED": "yellow",
    "STOPPED": "yellow",
    "RESTARTING": "cyan",
    "UNASSIGNED": "cyan",
    "FAILED": "red",
    "DESTROYED": "red",
    "OK": "green",
    "WARN": "yellow",
    "FAIL": "red",
}
_STATES = re.compile(rf"\b({'|'.join(_COLOURS)})\b")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_JSON = "connectctl.json"
_LINE_SECONDS = 5.0  # between two progress lines


class Command(click.Command):
    """A command with --json; a ConnectError ends it with exit code 1 and its message."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(["--json", "as_json"], is_flag=True, expose_value=False, is_eager=True, callback=_note_json, help="Print JSON, for scripts.")
        )

    def invoke(self, context):
        from standalone.errors import ConnectError

        try:
            return super().invoke(context)
        except ConnectError as error:
            raise click.ClickException(printable(str(error))) from error


class Group(click.Group):
    """A group whose commands all have --json."""

    command_class = Command


def _note_json(context, parameter, value):
    if value:
        context.find_root().meta[_JSON] = True


def wants_json():
    return click.get_current_context().find_root().meta.get(_JSON, False)


def emit(data, render):
    """Print the data as JSON with --json, else call `render()`."""
    if wants_json():
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        render()


def emit_line(data, render):
    """Like `emit`, for one of many items: one line of JSON each."""
    if wants_json():
        click.echo(json.dumps(data, ensure_ascii=False))
    else:
        render()


def done(verb, name, **more):
    """Report what was done to something."""
    emit_line({"name": name, "done": verb, **more}, lambda: click.echo(f"{verb} {printable(name)}"))


def table(heads, rows, empty="nothing"):
    """Print rows of strings as an aligned table; states are coloured."""
    if not rows:
        click.echo(empty)
        return
    shown = [[printable("" if cell is None else str(cell)) for cell in row] for row in rows]
    if is_terminal(sys.stdout):
        console().print(rich_table(heads, shown))
        return
    widths = [max(map(_width, column)) for column in zip(heads, *shown)]
    click.echo(click.style(_line(heads, widths), bold=True))
    for row in shown:
        click.echo(paint_states(_line(row, widths)))


def rich_table(heads, rows):
    """The same for a terminal, with wrapped cells. Rows contain printable strings."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        made.add_column(head, overflow="fold")
    for row in rows:
        made.add_row(*(_painted(Text(cell)) for cell in row))
    return made


def _painted(text):
    for found in _STATES.finditer(text.plain):
        text.stylize(_COLOURS[found[0]], *found.span())
    return text


def console(**more):
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, **more)


def is_terminal(stream):
    return stream.isatty() and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def progress(what, total=None, unit="records"):
    """Show progress on standard error. Yields a function that takes the number done and, optionally, a new total."""
    if wants_json():
        yield lambda done, of=None: None
    elif is_terminal(sys.stderr):
        yield from _bar(what, total, unit)
    else:
        yield from _lines(what, total, unit)


def _bar(what, total, unit):
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    words = [TextColumn(text) for text in ("{task.description}", unit, "{task.fields[rate]}")]
    columns = (words[0], BarColumn(), MofNCompleteColumn(), *words[1:], TimeRemainingColumn())
    began = time.monotonic()
    with Progress(*columns, console=console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total, rate="")

        def at(done, of=None):
            rate = f"{done / max(0.001, time.monotonic() - began):,.0f}/s"
            shown.update(task, completed=done, total=of if of is not None else total, rate=rate)

        yield at


def _lines(what, total, unit):
    began = logged = time.monotonic()

    def at(done, of=None):
        nonlocal logged
        now = time.monotonic()
        if now - logged < _LINE_SECONDS:
            return
        logged = now
        whole = of if of is not None else total
        rate = done / max(0.001, now - began)
        share = f" of {whole:,} ({100 * done / whole:.0f} %)" if whole else ""
        left = f", {(whole - done) / rate:.0f} s left" if whole and rate else ""
        click.echo(f"{what}: {done:,}{share} {unit}, {rate:,.0f}/s{left}", err=True)

    yield at


def paint_states(text):
    """Colour the states in a text."""
    return _STATES.sub(lambda found: click.style(found[0], fg=_COLOURS[found[0]]), text)


def printable(text):
    """Escape characters that would control a terminal."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}" if ord(found[0]) < 256 else f"\\u{ord(found[0]):04x}", text)


def one_line(text):
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _line(cells, widths):
    return "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths)).rstrip()


def _width(text):
    """Columns of a terminal."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
