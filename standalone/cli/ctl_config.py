"""connectctl's commands about configurations: create, apply, config, validate, plugins, loggers."""

from urllib.parse import quote

import click

from standalone.cli.ctl_connectors import one_name, wait_until_settled
from standalone.cli.ctl_rest import Refused, connector_path
from standalone.cli.ctl_show import Command, Group, done, emit, emit_line, one_line, printable, table

HIDDEN = "[hidden]"  # the worker shows this in place of a secret
_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow"), "sent": ("=", None)}
LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")

files_argument = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, allow_dash=False))
wait_option = click.option(
    "--wait", "seconds", type=click.FloatRange(min=0), help="Wait up to this many seconds for RUNNING; exit code 3 if one FAILED."
)


def add_to(main):
    for command in (create, apply, config, validate, plugins, loggers):
        main.add_command(command)


# --- Files to connectors -------------------------------------------------------------------------------------------


@click.command(cls=Command)
@files_argument
@wait_option
@click.pass_context
def create(context, files, seconds):
    """Create connectors from files: .properties, a JSON map, or JSON with name, config and initial_state."""
    rest = context.obj

    def create_one(found):
        body = {"name": found.name, "config": found.config}
        if found.initial_state:
            body["initial_state"] = found.initial_state
        rest.ask("POST", "/connectors", body)
        done("created", found.name)

    _work_files(context, files, create_one, seconds)


@click.command(cls=Command)
@files_argument
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@wait_option
@click.pass_context
def apply(context, files, dry_run, seconds):
    """Create or update connectors to match their files. Connectors that match already, or have no file here, are left unchanged.

    initial_state applies only when a connector is created. The worker hides secrets, so they cannot be compared: a configuration
    with secrets is always sent again.
    """
    rest = context.obj

    def apply_one(found):
        try:
            before = rest.get(connector_path(found.name, "/config"))
        except Refused as refused:
            if refused.status != 404:
                raise
            before = None
        changes = differences(before or {}, {**found.config, "name": found.name})
        verb = "unchanged" if not changes else "created" if before is None else "changed"
        if changes and not dry_run:
            if before is None and found.initial_state:
                rest.ask("POST", "/connectors", {"name": found.name, "config": found.config, "initial_state": found.initial_state})
            else:
                rest.ask("PUT", connector_path(found.name, "/config"), found.config)
        _say_changes(found.name, f"would be {verb}" if dry_run and changes else verb, {} if before is None else changes)

    _work_files(context, files, apply_one, None if dry_run else seconds)


def differences(before, after):
    """{key: (added, removed, changed or sent, old value, new value)} between the configuration that the worker shows and the wanted one."""
    found = {}
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old == HIDDEN and new is not None:
            found[key] = ("sent", HIDDEN, HIDDEN)
        elif old != new:
            found[key] = ("added" if old is None else "removed" if new is None else "changed", old, new)
    return found


def _say_changes(name, verb, changes):
    shown = {key: {"change": kind, "from": old, "to": new} for key, (kind, old, new) in changes.items()}

    def render():
        click.echo(f"{verb} {printable(name)}")
        for key, (kind, old, new) in changes.items():
            sign, colour = _SIGNS[kind]
            texts = {"added": f"{key}={new}", "removed": f"{key}={old}", "changed": f"{key}={old} → {new}"}
            text = texts.get(kind, f"{key} (hidden, sent again)")
            click.echo("  " + click.style(f"{sign} {one_line(text)}", fg=colour))

    emit_line({"name": name, "done": verb, "changes": shown}, render)


def _work_files(context, files, work, seconds):
    """Read all files before the first change: if one cannot be read, nothing is changed."""
    found = [load(path) for path in files]
    refused = []
    for each in found:
        try:
            work(each)
        except Refused as problem:
            if problem.status is None:
                raise
            refused.append(f"{each.path}: {problem.message}")
    if refused:
        raise click.ClickException(printable("\n".join(refused)))
    if seconds is not None:
        wait_until_settled(context, [each.name for each in found], seconds)


def load(path):
    from standalone import properties

    return properties.load_connector(path)


# --- One connector's configuration ---------------------------------------------------------------------------------


@click.group(cls=Group)
def config():
    """Show a connector's configuration, or change some of its keys."""


@config.command()
@one_name
@click.pass_obj
def show(rest, name):
    """Print a connector's configuration in .properties format. Secrets are hidden."""
    from standalone import properties

    found = rest.get(connector_path(name, "/config"))
    emit(found, lambda: click.echo(properties.dump(dict(sorted(found.items()))), nl=False))


@config.command()
@one_name
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--unset", metavar="KEY", multiple=True, help="Key to remove; repeatable.")
@click.pass_obj
def patch(rest, name, pairs, unset):
    """Change some keys of a connector's configuration and keep the others."""
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong or not pairs and not unset:
        raise click.UsageError(f"Give changes as KEY=VALUE{f', not {wrong[0]}' if wrong else ''}, or --unset KEY.")
    changes = dict(pair.split("=", 1) for pair in pairs)
    before = rest.get(connector_path(name, "/config"))
    after = rest.ask("PATCH", connector_path(name, "/config"), {**changes, **dict.fromkeys(unset)})["config"]
    _say_changes(name, "changed", {key: change for key, change in differences(before, after).items() if change[0] != "sent" or key in changes})


@click.command(cls=Command)
@files_argument
@click.option(
    "-w", "--worker", type=click.Path(exists=True, dir_okay=False), help="Validate locally against this worker.properties, without a running worker."
)
@click.pass_context
def validate(context, files, worker):
    """Validate connector files without creating anything, and list the errors of each key. Exit code 1 if there are any."""
    here = _checker(worker) if worker else lambda found: _validated_there(context.obj, found)
    results = {}
    for path in files:
        found = load(path)
        results[path] = {"name": found.name, "errors": here(found)}

    def render():
        for path, result in results.items():
            rows = [(key, one_line(message)) for key, messages in result["errors"].items() for message in messages]
            if rows:
                click.echo(click.style(f"{path}: {len(rows)} error{'s' * (len(rows) != 1)}", fg="red"))
                table(("KEY", "ERROR"), rows)
            else:
                click.echo(f"{path}: {click.style('valid', fg='green')}")

    emit(results, render)
    if any(result["errors"] for result in results.values()):
        context.exit(1)


def _validated_there(rest, found):
    connector_class = found.config.get("connector.class")
    if not connector_class:
        return {"connector.class": ["is missing; it names the connector's class"]}
    answer = rest.ask("PUT", f"/connector-plugins/{quote(connector_class, safe='')}/config/validate", {**found.config, "name": found.name})
    return {each["value"]["name"]: each["value"]["errors"] for each in answer["configs"] if each["value"]["errors"]}


def _checker(worker_file):
    """Validates a connector in this process."""
    from standalone import properties
    from standalone.errors import ConfigError
    from standalone.runtime.configuration.connector_config import ConnectorConfig
    from standalone.runtime.configuration.worker_config import WorkerConfig

    worker = WorkerConfig.of(properties.load(worker_file))

    def check(found):
        try:
            ConnectorConfig.of({**found.config, "name": found.name}, worker.plugins, worker)
        except ConfigError as error:
            return {key: [message] for key, message in error.errors.items()} or {"": [str(error)]}
        return {}

    return check


# --- Plugins and loggers -------------------------------------------------------------------------------------------


@click.command(cls=Command)
@click.argument("name", required=False)
@click.option("--all", "every", is_flag=True, help="Also list converters, transforms and predicates.")
@click.pass_obj
def plugins(rest, name, every):
    """List the installed connectors; or the configuration keys of one plugin."""
    if name:
        found = rest.get(f"/connector-plugins/{quote(name, safe='')}/config")
        rows = [(key["name"], key["type"], _default(key), key["importance"], one_line(key.get("documentation") or "")) for key in found]
        emit(found, lambda: table(("KEY", "TYPE", "DEFAULT", "IMPORTANCE", "WHAT IT IS"), rows, empty="no keys"))
        return
    found = rest.get(f"/connector-plugins?connectorsOnly={str(not every).lower()}")
    rows = [(each["class"], each["type"], each.get("version")) for each in found]
    emit(found, lambda: table(("CLASS", "TYPE", "VERSION"), rows))


def _default(key):
    return "(required)" if key.get("required") else one_line(str(key.get("default_value") if key.get("default_value") is not None else ""))


@click.group(cls=Group)
def loggers():
    """Show or set the levels of the worker's loggers. They survive a restart."""


@loggers.command("list")
@click.pass_obj
def list_loggers(rest):
    """List the loggers with an explicit level."""
    found = rest.get("/admin/loggers")
    emit(found, lambda: table(("LOGGER", "LEVEL"), [(name, shown["level"]) for name, shown in found.items()]))


@loggers.command("set")
@click.argument("name")
@click.argument("level", type=click.Choice(LEVELS, case_sensitive=False))
@click.pass_obj
def set_logger(rest, name, level):
    """Set the level of a logger and its children; `root` sets all."""
    touched = rest.ask("PUT", f"/admin/loggers/{quote(name, safe='')}", {"level": level.upper()}) or []
    emit(touched, lambda: click.echo(f"{level.upper()}: {printable(', '.join(touched))}"))
