"""connectctl doctor: checks the machine, a worker's file and the servers that it names."""

import click

from standalone.cli.ctl_show import Command, emit, table


def add_to(main):
    main.add_command(doctor)


@click.command(cls=Command)
@click.argument("worker", metavar="[WORKER.PROPERTIES]", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--spark", "start_spark", is_flag=True, help="Start Spark, too, which takes some seconds.")
@click.pass_context
def doctor(context, worker, start_spark):
    """Check what a worker needs: Python, Java, Spark, clock, limits, disk, permissions, and with its file Kafka and the schema registry.

    Nothing is changed, and no worker has to run. Exit code 1 if a check is FAIL.
    """
    from standalone import properties
    from standalone.tools.doctor import FAIL, checks

    found = list(checks(properties.load(worker) if worker else None, start_spark))

    def render():
        table(("CHECK", "RESULT", "FOUND"), [(each.check, each.level, each.found) for each in found])
        for each in found:
            if each.advice:
                click.echo(f"{each.check}: {each.advice}")

    emit([each._asdict() for each in found], render)
    if any(each.level == FAIL for each in found):
        context.exit(1)
