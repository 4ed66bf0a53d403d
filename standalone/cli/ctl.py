"""connectctl: looks at a running worker and its connectors and steers them, by its REST API; and looks into the log.

    ctl_rest.py        the REST client               ctl_show.py     tables, colours, --json
    ctl_connectors.py  connectors and their states   ctl_config.py   what they are configured with
    ctl_offsets.py     offsets, lag, Java's file     ctl_log.py      topics, produce, consume
    ctl_dlq.py         dead letter queues            ctl_preview.py  records through a chain, before it runs
    ctl_sql.py         statements of SQL
    ctl_schemas.py     schemas of a registry         ctl_reindex.py  another mapping for a search index, without downtime
    ctl_init.py        sample configurations         ctl_doctor.py   what a worker needs of its machine
    ctl_top.py         rates and lag as they change  ctl_distributed.py  moving from connect-distributed

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 done, and a connector or task that was asked about is FAILED.
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
@click.option("--user", envvar="CONNECT_USER", help="NAME or NAME:PASSWORD, for a worker that asks; better give the password in CONNECT_PASSWORD.")
@click.option("--cacert", type=click.Path(exists=True, dir_okay=False), help="Certificates (PEM) to trust, for https.")
@click.option("--cert", type=click.Path(exists=True, dir_okay=False), help="A client certificate (PEM), for a worker that asks.")
@click.option("--key", type=click.Path(exists=True, dir_okay=False), help="Its private key (PEM), if it is not in the same file.")
@click.version_option(package_name="connect-standalone", prog_name="connectctl")
@click.pass_context
def main(context, url, user, cacert, cert, key):
    """Look at a running worker and its connectors, and steer them.

    Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 something asked about is FAILED.
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
    """Print what makes a shell complete commands, options and connectors' names.

    bash: eval "$(connectctl completion bash)" in ~/.bashrc, zsh the same in ~/.zshrc;
    fish: connectctl completion fish > ~/.config/fish/completions/connectctl.fish
    """
    import click.shell_completion as shells

    made = getattr(shells, _SHELLS[shell])(main, {}, "connectctl", _COMPLETE_VARIABLE)
    click.echo(made.source())


if __name__ == "__main__":
    main(prog_name="connectctl")
