"""connectctl: a client of a running worker's REST API."""

import sys

import click

DEFAULT_URL = "http://127.0.0.1:8083"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--url", envvar="CONNECT_URL", default=DEFAULT_URL, show_default=True, help="The worker's REST listener.")
@click.pass_context
def main(context, url):
    """Look at a running worker and its connectors, and steer them."""
    context.obj = url.rstrip("/")


def _ask(url, method="GET", path="", body=None):
    """The JSON answer, or None; an error answer ends the command with its message."""
    import json
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url + path, method=method, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, None if body is None else json.dumps(body).encode(), timeout=100) as response:
            content = response.read()
            return json.loads(content) if content else None
    except urllib.error.HTTPError as error:
        try:
            message = json.loads(error.read())["message"]
        except (ValueError, KeyError):
            message = str(error)
        raise click.ClickException(message) from None
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise click.ClickException(f"No worker answers at {url}: {reason}. Is it running? --url says where.") from None


def _path(name, rest=""):
    from urllib.parse import quote

    return f"/connectors/{quote(name, safe='')}{rest}"


@main.command("list")
@click.pass_obj
def list_connectors(url):
    """The connectors and their states."""
    for name, shown in sorted(_ask(url, path="/connectors?expand=status").items()):
        status = shown["status"]
        tasks = " ".join(task["state"] for task in status["tasks"])
        click.echo(f"{name}\t{status['type']}\t{status['connector']['state']}\t{tasks}")


@main.command()
@click.argument("name")
@click.pass_obj
def status(url, name):
    """One connector's state and that of its tasks, with the trace of what failed. Exit code 3 if something has."""
    shown = _ask(url, path=_path(name, "/status"))
    parts = [("connector", shown["connector"])] + [(f"task {task['id']}", task) for task in shown["tasks"]]
    for what, part in parts:
        click.echo(f"{what}: {part['state']}")
        if part.get("trace"):
            click.echo(part["trace"].rstrip())
    if any(part["state"] == "FAILED" for _, part in parts):
        sys.exit(3)


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.pass_obj
def create(url, file):
    """Create a connector from its .properties or .json file."""
    from standalone import properties
    from standalone.errors import ConnectError

    try:
        found = properties.load_connector(file)
    except ConnectError as error:
        raise click.ClickException(str(error)) from None
    body = {"name": found.name, "config": found.config}
    if found.initial_state:
        body["initial_state"] = found.initial_state
    click.echo(f"created {_ask(url, 'POST', '/connectors', body)['name']}")


def _act(verb, method, rest, said, doc):
    @main.command(verb, help=doc)
    @click.argument("name")
    @click.pass_obj
    def act(url, name):
        _ask(url, method, _path(name, rest))
        click.echo(f"{said} {name}")

    return act


_act("pause", "PUT", "/pause", "paused", "Pause a connector and its tasks.")
_act("resume", "PUT", "/resume", "resumed", "Resume a paused or stopped connector.")
_act("stop", "PUT", "/stop", "stopped", "Stop a connector: its tasks end, its configuration and offsets stay.")
_act("restart", "POST", "/restart?includeTasks=true", "restarting", "Restart a connector and its tasks.")
_act("delete", "DELETE", "", "deleted", "Delete a connector.")


if __name__ == "__main__":
    main()
