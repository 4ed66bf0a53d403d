"""connectctl: monitors and controls a running worker and its connectors through the REST API; reads and writes Kafka topics.

    ctl_rest.py        the REST client               ctl_show.py     tables, colours, --json
    ctl_connectors.py  connectors and their states   ctl_config.py   their configurations
    ctl_offsets.py     offsets, lag, Java's file     ctl_log.py      topics: produce and consume
    ctl_dlq.py         dead letter queues            ctl_preview.py  dry runs of a transform chain
    ctl_sql.py         SQL statements
    ctl_schemas.py     schemas of a registry         ctl_reindex.py  a new mapping for a search index, without downtime
    ctl_init.py        sample configurations         ctl_doctor.py   checks of the worker's machine
    ctl_top.py         live rates and lag            ctl_distributed.py  migrating from connect-distributed

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 done, but a connector or task in the result is FAILED.
"""

import os

import click

from standalone.cli import (
    ctl_config,
    ctl_connectors,
    ctl_distributed,
    ctl_dlq,
    ctl_doctor,
    ctl_init,
    ctl_log,
    ctl_offsets,
    ctl_preview,
    ctl_reindex,
    ctl_schemas,
    ctl_sql,
    ctl_top,
)
from standalone.cli.ctl_rest import DEFAULT_URL, Rest
from standalone.cli.ctl_show import Group

_SHELLS = {"bash": "BashComplete", "zsh": "ZshComplete", "fish": "FishComplete"}
_COMPLETE_VARIABLE = "_CONNECTCTL_COMPLETE"


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--url", envvar="CONNECT_URL", default=DEFAULT_URL, show_default=True, help="The worker's REST listener (CONNECT_URL).")
@click.option("--user", envvar="CONNECT_USER", help="NAME or NAME:PASSWORD for basic authentication; prefer CONNECT_PASSWORD for the password.")
@click.option("--cacert", type=click.Path(exists=True, dir_okay=False), help="CA certificates (PEM) to trust for https.")
@click.option("--cert", type=click.Path(exists=True, dir_okay=False), help="Client certificate (PEM) for mutual TLS.")
@click.option("--key", type=click.Path(exists=True, dir_okay=False), help="Private key (PEM) of --cert, if it is in another file.")
@click.version_option(package_name="connect-standalone", prog_name="connectctl")
@click.pass_context
def main(context, url, user, cacert, cert, key):
    """Monitor and control a running worker and its connectors.

    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 a connector or task in the result is FAILED.
    """
    if os.environ.get("NO_COLOR"):
        context.color = False
    context.obj = Rest.of(context.params, lambda name: click.prompt(f"Password of {name}", hide_input=True, err=True))


_MODULES = (
    *(ctl_init, ctl_doctor, ctl_top, ctl_connectors, ctl_config, ctl_offsets, ctl_log, ctl_dlq, ctl_preview, ctl_schemas, ctl_sql),
    *(ctl_reindex, ctl_distributed),
)
for _module in _MODULES:
    _module.add_to(main)


@main.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
def completion(shell):
    """Print a shell completion script for commands, options and connector names.

    bash: eval "$(connectctl completion bash)" in ~/.bashrc, zsh the same in ~/.zshrc;
    fish: connectctl completion fish > ~/.config/fish/completions/connectctl.fish
    """
    import click.shell_completion as shells

    made = getattr(shells, _SHELLS[shell])(main, {}, "connectctl", _COMPLETE_VARIABLE)
    click.echo(made.source())


if __name__ == "__main__":
    main(prog_name="connectctl")
