"""How connectctl's commands look: tables, colours where a terminal takes them, and --json on every one.

    @group.command(cls=Command)             a command with --json
    emit(data, lambda: table(...))          prints the data as JSON if that was asked for, else as people read it

What comes from outside (names, traces, records) is shown with its control characters written out: no record steers the terminal.
"""

import json
import re
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
}
_STATES = re.compile(rf"\b({'|'.join(_COLOURS)})\b")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_JSON = "connectctl.json"


class Command(click.Command):
    """A command with --json; what fails in the program's own words ends it with exit code 1."""

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
    """The data as JSON, if that was asked for; else what `render()` prints."""
    if wants_json():
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        render()


def emit_line(data, render):
    """As `emit`, one line of JSON for each of many."""
    if wants_json():
        click.echo(json.dumps(data, ensure_ascii=False))
    else:
        render()


def done(verb, name, **more):
    """Say what was done to something."""
    emit_line({"name": name, "done": verb, **more}, lambda: click.echo(f"{verb} {printable(name)}"))


def table(heads, rows, empty="nothing"):
    """Print rows of texts below their heads, columns aligned; words that are states have their colours."""
    if not rows:
        click.echo(empty)
        return
    shown = [[printable("" if cell is None else str(cell)) for cell in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(heads, *shown)]
    click.echo(click.style(_line(heads, widths), bold=True))
    for row in shown:
        click.echo(paint_states(_line(row, widths)))


def paint_states(text):
    """The text with each state in its colour."""
    return _STATES.sub(lambda found: click.style(found[0], fg=_COLOURS[found[0]]), text)


def printable(text):
    """The text without characters that would steer a terminal."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}" if ord(found[0]) < 256 else f"\\u{ord(found[0]):04x}", text)


def one_line(text):
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _line(cells, widths):
    return "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths)).rstrip()


def _width(text):
    """Columns of a terminal."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
