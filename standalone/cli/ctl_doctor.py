"""connectctl doctor: check the machine, a worker.properties and the servers that it names."""

import click

from standalone.cli.ctl_show import Command, emit, table


def add_to(main):
    main.add_command(doctor)


@click.command(cls=Command)
@click.argument("worker", metavar="[WORKER.PROPERTIES]", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--spark", "start_spark", is_flag=True, help="Also start Spark, which takes a few seconds.")
@click.pass_context
def doctor(context, worker, start_spark):
    """Check a worker's prerequisites: Python, Java, Spark, clock, limits, disk, permissions; given its file, also Kafka and the schema registry.

    The checks are read-only and need no running worker. Exit code 1 if a check is FAIL.
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
