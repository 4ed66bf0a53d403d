"""connectctl from-distributed: convert a distributed worker's properties and storage topics to files for this worker."""

import json
import os
from urllib.parse import quote

import click

from standalone.cli.ctl_show import Command, emit, printable, table

WORKER = "worker.properties"


def add_to(main):
    main.add_command(from_distributed)


@click.command("from-distributed", cls=Command)
@click.argument("file", metavar="CONNECT-DISTRIBUTED.PROPERTIES", type=click.Path(exists=True, dir_okay=False))
@click.argument("folder", default=".", type=click.Path(file_okay=False))
@click.option("--spark-master", metavar="URL", help="Run tasks on the executors of this Spark cluster (tasks.run.on=cluster).")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--dry-run", is_flag=True, help="Show the files without writing them.")
def from_distributed(file, folder, spark_master, force, dry_run):
    """Migrate from a group of distributed workers. FILE is their properties file. Reads their three storage topics and writes to FOLDER a
    worker.properties, a file for each connector with its target state, and the source offsets.

    Stop the distributed workers first: later changes are not migrated. Their topics are only read. Sinks continue from the committed
    offsets of their consumer groups (connect-NAME).
    """
    from standalone import properties
    from standalone.runtime.configuration.worker_config import WorkerConfig
    from standalone.tools import distributed

    props = properties.load(file)
    kept, became = distributed.worker_keys(props, folder, spark_master)
    config = WorkerConfig.of(kept)
    with distributed.storage_access(config) as access:
        storage = distributed.read_storage(access, props)
    files = {WORKER: _commented(became) + properties.dump(kept)}
    for name, connector in sorted(storage.connectors.items()):
        state = distributed.STATES.get(storage.targets.get(name, "STARTED"), "RUNNING")
        files[f"{quote(name, safe=' ')}.json"] = json.dumps({"name": name, "config": connector, "initial_state": state}, indent=2) + "\n"
    offsets_file = kept["offset.storage.file.filename"]
    if not dry_run:
        _write(folder, files, offsets_file, force)
        distributed.store_offsets(offsets_file, storage)
    _show(folder, files, became, storage, dry_run)


def _commented(became):
    return "".join(f"# {each.key}: {each.said}\n" for each in became)


def _write(folder, files, offsets_file, force):
    from standalone.private import open_private

    there = [name for name in files if os.path.exists(os.path.join(folder, name))]
    there += [os.path.basename(offsets_file)] if os.path.exists(offsets_file) else []
    if there and not force:
        raise click.ClickException(f"{folder} already contains {', '.join(there)}. Use --force to overwrite, or name another folder.")
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(offsets_file):
        os.remove(offsets_file)
    for name, text in files.items():
        with open_private(os.path.join(folder, name), "wb") as file:  # configurations hold passwords
            file.write(text.encode())


def _show(folder, files, became, storage, dry_run):
    connectors = [
        {
            "name": name, "file": f"{quote(name, safe=' ')}.json", "target": storage.targets.get(name, "STARTED"),
            "was": storage.statuses.get(name, {}).get("state"), "offsets": sum(each[0] == name for each in storage.offsets),
        }
        for name in sorted(storage.connectors)
    ]  # fmt: skip
    run = " ".join(["connect-standalone", *files])
    said = {"folder": folder, "dry_run": dry_run, "keys": [each._asdict() for each in became], "connectors": connectors, "run": run}

    def render():
        table(("KEY", "WHAT BECOMES OF IT"), [(each.key, each.said) for each in became])
        rows = [(each["name"], each["file"], each["target"], each["was"] or "-", each["offsets"]) for each in connectors]
        table(("CONNECTOR", "FILE", "TARGET STATE", "WAS", "SOURCE OFFSETS"), rows, empty="no connectors in the config topic")
        click.echo(f"{'would be written to' if dry_run else 'written to'} {printable(str(folder))}")
        click.echo(f"run      {printable(run)}")

    emit(said, render)
