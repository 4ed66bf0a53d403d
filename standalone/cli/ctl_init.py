"""connectctl init: write the package's sample configurations, ready to edit and run."""

import pathlib
import sys

import click

from standalone.cli.ctl_show import Command, emit, emit_line, printable, table

WORKER, UNIT, LOGROTATE = "connect-standalone.properties", "connect-standalone.service", "connect-standalone.logrotate"
QUICKSTART = ("file-source", "file-sink")
_INSTALLED_IN = "share/connect-standalone"  # setup.cfg: [options.data_files]
_UNIT_COMMAND = "/opt/connect-standalone/bin/connect-standalone"  # in the sample unit


def add_to(main):
    main.add_command(init)


def _complete_sample(context, parameter, incomplete):
    return [name for name in samples() if name.startswith(incomplete)]


@click.command(cls=Command)
@click.argument("folder", default=".", type=click.Path(file_okay=False))
@click.option(
    "-c", "--connector", "names", metavar="NAME", multiple=True, shell_complete=_complete_sample,
    help="Sample of this connector, such as jdbc-sink; repeatable. Default: the quickstart's samples.",
)
@click.option("--systemd", is_flag=True, help="Also write a systemd unit and a logrotate rule.")
@click.option("--list", "only_list", is_flag=True, help="List the samples without writing any.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(folder, names, systemd, only_list, force):
    """Write sample worker and connector configurations into FOLDER."""
    found = samples()
    if only_list:
        said = {name: _first_words(path) for name, path in found.items()}
        emit(said, lambda: table(("NAME", "WHAT IT DOES"), list(said.items())))
        return
    unknown = [name for name in names if name not in found]
    if unknown:
        raise click.ClickException(f"Unknown sample '{unknown[0]}'. Available: {', '.join(found)}.")
    folder = pathlib.Path(folder)
    connectors = [found[name] for name in names or QUICKSTART]
    wanted = [_folder() / WORKER, *connectors, *(_folder() / name for name in (UNIT, LOGROTATE) if systemd)]
    there = [path.name for path in wanted if (folder / path.name).exists()]
    if there and not force:
        raise click.ClickException(f"{folder} already contains {', '.join(there)}. Use --force to overwrite, or name another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for path in wanted:
        text = path.read_text(encoding="utf-8")
        (folder / path.name).write_text(text.replace(_UNIT_COMMAND, _command()) if path.name == UNIT else text, encoding="utf-8")
        emit_line({"written": str(folder / path.name)}, lambda path=path: click.echo(f"written  {printable(str(folder / path.name))}"))
    run = " ".join(["connect-standalone", WORKER, *(path.name for path in connectors)])
    emit_line({"run": run}, lambda: click.echo(f"run      {run}"))


def samples():
    """{short name: path} of the connector samples."""
    found = {path.stem.removeprefix("connect-"): path for path in sorted(_folder().glob("connect-*.properties")) if path.name != WORKER}
    return {name: path for name, path in found.items() if "connector.class" in path.read_text(encoding="utf-8")}


def _first_words(path):
    """The first sentence of the sample's leading comment."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines).partition(". ")[0].rstrip(".")


def _folder():
    """The samples' folder: config/ of a checkout, or where the wheel installed them."""
    checkout = pathlib.Path(__file__).parents[2]
    if (checkout / "setup.cfg").exists() and (checkout / "config" / WORKER).exists():
        return checkout / "config"
    from importlib import metadata

    for file in metadata.files("connect-standalone") or ():
        if file.name == WORKER:
            return pathlib.Path(file.locate()).resolve().parent
    raise click.ClickException(f"The samples are missing from {sys.prefix}/{_INSTALLED_IN}. Reinstall the package.")


def _command():
    """Path of the worker's command in this environment."""
    beside = pathlib.Path(sys.executable).with_name("connect-standalone")
    return str(beside) if beside.exists() else _UNIT_COMMAND
