"""connectctl sql: run SQL statements on a running worker, interactively or from a file."""

import contextlib
import sys

import click

from standalone.cli.ctl_rest import Refused
from standalone.cli.ctl_show import printable, table

_PROMPT, _MORE = "sql> ", "...> "


def add_to(main):
    main.add_command(sql)


@click.command(short_help="Run SQL statements: streams, tables and queries on Spark.")
@click.option("-f", "--file", type=click.File(encoding="utf-8"), help="Run the statements in this file; - is standard input.")
@click.option("-s", "--set", "pairs", metavar="NAME=VALUE", multiple=True, help="Query property, such as auto.offset.reset=latest.")
@click.option("-n", "--limit", type=int, help="End a push query or PRINT after this many rows.")
@click.option("--seconds", type=float, help="End it after this many seconds without a row.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per result and row.")
@click.argument("statements", nargs=-1)
@click.pass_obj
def sql(rest, file, pairs, limit, seconds, as_json, statements):
    """Run STATEMENTS, the statements in a file, or statements typed interactively. Each ends with a semicolon.

    CREATE STREAM, CREATE TABLE … AS SELECT, INSERT INTO, SELECT … EMIT CHANGES, SHOW, DESCRIBE, PRINT: see docs/streams.md.
    Ctrl-C ends a push query.
    """
    session = _Session(rest, dict(pair.partition("=")[::2] for pair in pairs), limit, seconds, as_json)
    if statements or file:
        session.run(file.read() if file else " ".join(statements))
        return
    if not sys.stdin.isatty():
        session.run(sys.stdin.read())
        return
    click.echo("Statements end with ;  Ctrl-D leaves.")
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  gives input() line editing and history
    typed = ""
    while True:
        try:
            typed += input(_MORE if typed else _PROMPT) + "\n"
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()
            typed = ""
            continue
        if typed.strip().lower().rstrip(";") in ("exit", "quit"):
            return
        if not typed.strip():
            typed = ""
        elif typed.rstrip().endswith(";"):
            try:
                session.run(typed)
            except Refused as error:
                error.show()
            typed = ""


class _Session:
    def __init__(self, rest, properties, limit, seconds, as_json):
        self._rest, self._properties = rest, properties
        self._limit, self._seconds, self._as_json = limit, seconds, as_json

    def run(self, text):
        for answer in self._rest.ask("POST", "/sql", {"sql": text, "properties": self._properties}):
            if answer["kind"] == "cursor":
                self._follow(answer)
            elif self._as_json:
                _line(answer)
            elif answer["kind"] == "table":
                table([name.upper() for name in answer["columns"]], [[_cell(cell) for cell in row] for row in answer["rows"]])
            else:
                click.echo(printable(answer["message"]))

    def _follow(self, answer):
        """Print a cursor's rows until it is exhausted, the limit is reached, or Ctrl-C."""
        path, given = f"/sql/cursors/{answer['cursor']}", 0
        wait = 10_000 if self._seconds is None else int(self._seconds * 1000)
        if not self._as_json:
            click.echo(" | ".join(name.upper() for name in answer["columns"]))
        done = False
        try:
            while not done:
                found = self._rest.get(f"{path}?wait.ms={wait}")
                done = found["done"] or self._seconds is not None and not found["rows"]
                for row in found["rows"]:
                    _line(dict(zip(answer["columns"], row))) if self._as_json else click.echo(" | ".join(_cell(cell) for cell in row))
                    given += 1
                    if self._limit is not None and given >= self._limit:
                        done = True
                        break
        except KeyboardInterrupt:
            click.echo()
        with contextlib.suppress(Refused):
            self._rest.ask("DELETE", path)


def _line(value):
    import json

    click.echo(json.dumps(value, ensure_ascii=False))


def _cell(value):
    import json

    return printable("null" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
