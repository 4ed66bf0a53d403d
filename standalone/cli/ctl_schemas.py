"""connectctl schemas: list, show, diff, register, delete, compatibility; and the registry options of produce and consume.

The address comes from --registry, from the converters of a worker.properties (--worker-config), or from the running worker.
"""

import functools
import json

import click

from standalone.cli.ctl_rest import Refused
from standalone.cli.ctl_show import Group, done, emit, printable, table

_MARKS = {"-": "red", "+": "green", "@": "cyan"}
KINDS = ("avro", "protobuf", "json-schema")
LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")


def add_to(main):
    main.add_command(schemas)


def property_options(command):
    """--registry and --property of the commands that use a registry."""
    said = "Registry client property, such as basic.auth.user.info; repeatable."
    command = click.option("--property", "properties", metavar="KEY=VALUE", multiple=True, help=said)(command)
    said = "Schema registry URL (CONNECT_REGISTRY). Default: the worker's."
    return click.option("--registry", envvar="CONNECT_REGISTRY", help=said)(command)


def registry_options(command):
    """Options that locate the registry; the command gets `registry`, a client."""

    @property_options
    @click.option("--worker-config", type=click.Path(exists=True, dir_okay=False), help="Use the registry of this worker.properties' converters.")
    @functools.wraps(command)
    def with_registry(*args, registry, properties, worker_config, **kwargs):
        from standalone.tools.schemas import client_of

        return command(*args, registry=client_of(registry_props(registry, properties, worker_config)), **kwargs)

    return with_registry


def registry_props(url, pairs, worker_config=None):
    """The registry client's keys from the options."""
    props = pairs_of(pairs)
    if url:
        props["schema.registry.url"] = url
    if "schema.registry.url" not in props and worker_config:
        from standalone import properties
        from standalone.tools.schemas import props_of_worker

        props = {**(props_of_worker(properties.load(worker_config)) or {}), **props}
    if "schema.registry.url" not in props:
        props["schema.registry.url"] = _reported()
    return props


def pairs_of(pairs):
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise click.UsageError(f"--property takes KEY=VALUE, not '{wrong[0]}'.")
    return dict(pair.split("=", 1) for pair in pairs)


def _reported():
    rest = click.get_current_context().obj
    try:
        return rest.get("/ui/api/schemas/registry")["url"]
    except (Refused, KeyError, TypeError) as problem:
        why = problem.message if isinstance(problem, Refused) else f"the worker at {rest.url} does not report it."
        raise click.ClickException(f"The schema registry's address is unknown: {why} Give --registry URL, or --worker-config FILE.") from None


@click.group(cls=Group)
def schemas():
    """Schemas of the registry: list, show, diff, register, delete, compatibility."""


@schemas.command("list")
@registry_options
@click.option("--prefix", help="Only subjects with this prefix; :*: for all contexts.")
@click.option("--deleted", is_flag=True, help="Include soft-deleted subjects.")
def list_subjects(registry, prefix, deleted):
    """List subjects with their latest version and schema type."""
    found = []
    for subject in registry.subjects(prefix, deleted):
        try:
            version, id, schema = registry.latest(subject)
            found.append({"subject": subject, "versions": len(registry.versions(subject)), "latest": version, "id": id, "kind": schema.kind})
        except Exception as error:
            if not deleted or getattr(error, "status", None) != 404:
                raise
            found.append({"subject": subject, "versions": 0, "latest": None, "id": None, "kind": "deleted"})
    emit(found, lambda: table(("SUBJECT", "VERSIONS", "LATEST", "ID", "KIND"), [each.values() for each in found], empty="no subjects"))


@schemas.command()
@click.argument("subject")
@click.argument("version", default="latest")
@registry_options
@click.option("--all", "every", is_flag=True, help="All versions.")
def show(subject, version, registry, every):
    """Show a version of a subject (default: the latest)."""
    from standalone.tools.schemas import pretty, version_number, versions_of

    if every:
        found = versions_of(registry, subject)
    else:
        number, id, schema = _version(registry, subject, version_number(version))
        references = [{"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references]
        found = [{"version": number, "id": id, "kind": schema.kind, "schema": pretty(schema), "references": references}]

    def render():
        for each in found:
            click.echo(click.style(printable(f"{subject} version {each['version']}, id {each['id']}, {each['kind']}"), bold=True), err=not every)
            for reference in each["references"]:
                click.echo(printable(f"refers to {reference['name']}: {reference['subject']} version {reference['version']}"), err=not every)
            click.echo("\n".join(map(printable, each["schema"].splitlines())))

    emit(found if every else found[0], render)


@schemas.command()
@click.argument("subject")
@click.argument("older", required=False)
@click.argument("newer", default="latest")
@registry_options
def diff(subject, older, newer, registry):
    """Show the differences between two versions of a subject (default: the latest two)."""
    from standalone.tools.schemas import differences, version_number

    if older is None:
        numbers = registry.versions(subject)
        older = str(numbers[-2] if len(numbers) > 1 else numbers[-1])
    first, _, before = _version(registry, subject, version_number(older))
    second, _, after = _version(registry, subject, version_number(newer))
    lines = differences(before, after)

    def render():
        click.echo(click.style(printable(f"{subject} {first} -> {second}"), bold=True))
        for mark, line in lines:
            click.echo(click.style(f"{mark if mark != '@' else ''}{printable(line)}", fg=_MARKS.get(mark)))
        if not lines:
            click.echo("no difference")

    found = {"subject": subject, "older": first, "newer": second, "lines": [{"mark": mark, "text": line} for mark, line in lines]}
    emit(found, render)


@schemas.command()
@click.argument("subject")
@click.argument("file", type=click.File("r"), default="-")
@registry_options
@click.option("-k", "--kind", type=click.Choice(KINDS), default="avro", show_default=True, help="Schema type.")
@click.option("-r", "--reference", "references", metavar="NAME=SUBJECT:VERSION", multiple=True, help="Schema reference; repeatable.")
@click.option("--normalize", is_flag=True, help="Normalize the schema before it is compared and registered.")
@click.option("--dry-run", is_flag=True, help="Only check compatibility.")
def register(subject, file, registry, kind, references, normalize, dry_run):
    """Register the schema in a file or from standard input."""
    from standalone.schema_registry.schema import RegistrySchema
    from standalone.tools.schemas import KINDS

    schema = RegistrySchema(file.read(), KINDS[kind], tuple(map(_reference, references)))
    if dry_run:
        problems = registry.compatible(subject, schema)
        shown = "\n".join(map(printable, problems)) or "compatible"
        emit({"subject": subject, "compatible": not problems, "messages": problems}, lambda: click.echo(shown))
        click.get_current_context().exit(1 if problems else 0)
    id = registry.register(subject, schema, normalize)
    done("registered", subject, id=id)


@schemas.command()
@click.argument("subject")
@click.argument("version", required=False)
@registry_options
@click.option("--permanent", is_flag=True, help="Hard delete. Otherwise the delete is soft: the schema stays readable with --deleted.")
def delete(subject, version, registry, permanent):
    """Delete a subject or one of its versions."""
    from standalone.tools.schemas import version_number

    gone = registry.delete(subject, None if version is None else version_number(version), permanent)
    done("deleted", subject, versions=gone)


@schemas.command()
@click.argument("subject", required=False)
@click.argument("level", required=False, type=click.Choice(LEVELS, case_sensitive=False))
@registry_options
@click.option("--all", "level_of_all", type=click.Choice(LEVELS, case_sensitive=False), help="Set the global level, for subjects without their own.")
def compatibility(subject, level, registry, level_of_all):
    """Show or set the compatibility level of a subject."""
    if level_of_all:
        registry.set_compatibility(level_of_all.upper())
    if level:
        registry.set_compatibility(level.upper(), subject)
    found = {"subject": subject, "compatibility": registry.compatibility(subject)}
    emit(found, lambda: click.echo(found["compatibility"]))


def _version(registry, subject, version):
    if version == "latest":
        return registry.latest(subject)
    return version, *registry.version(subject, version)


def _reference(text):
    from standalone.schema_registry.schema import Reference

    name, _, rest = text.partition("=")
    subject, _, version = rest.rpartition(":")
    if not (name and subject and version.lstrip("-").isdigit()):
        raise click.UsageError(f"--reference takes NAME=SUBJECT:VERSION, not '{text}'.")
    return Reference(name, subject, int(version))


# ---- for produce and consume


class ValuesIn:
    """Serializes lines of JSON with a schema, for keys and values."""

    def __init__(self, topic, kinds, props):
        from standalone.tools.schemas import client_of, writer_of

        client = client_of(props)
        self._writers = {part: writer_of(client, topic, part, kind, props) for part, kind in kinds.items() if kind}

    def data(self, part, line, number):
        """Raises ClickException with the line number and the mismatch."""
        from standalone.errors import ConnectError

        writer = self._writers.get(part)
        if writer is None or line is None:
            return line
        try:
            return writer.data(json.loads(line))
        except ValueError as error:
            raise click.ClickException(printable(f"The {part} of line {number} is not JSON: {error}.")) from None
        except ConnectError as error:
            raise click.ClickException(printable(f"The {part} of line {number} does not fit the schema. {error}")) from None


class ValuesOut:
    """Deserializes bytes with any schema to a line of JSON."""

    def __init__(self, kinds, props):
        from standalone.tools.schemas import client_of, reader_of

        self._parts = {part for part, kind in kinds.items() if kind}
        self._reader = reader_of(client_of(props))

    def value(self, part, data, where, headers=()):
        from standalone.errors import SerializationError

        if data is None or part not in self._parts:
            return data
        try:
            return self._reader.value(data, None, headers, f"__{part}_schema_id")
        except SerializationError as error:
            raise click.ClickException(printable(f"The {part} of {where} cannot be deserialized: {error}")) from None

    def line(self, part, data, where, headers=()):
        found = self.value(part, data, where, headers)
        return found if found is data else json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
