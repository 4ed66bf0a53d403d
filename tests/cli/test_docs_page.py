"""The commands that the documents show are commands that there are, with options that there are."""

import pathlib
import re
import shlex

import click
import pytest

from standalone.cli.ctl import main

ROOT = pathlib.Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted({line for page in PAGES for line in re.findall(r"^ {4}(?:\$ )?(?:\S*/)?connectctl (.*)$", page.read_text().partition("## All commands and options")[0], re.MULTILINE)})


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_a_command_with_its_options(example):
    command, arguments, name = main, shlex.split(example.partition(" | ")[0]), "connectctl"
    while isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        _, rest, _ = command.make_parser(context).parse_args(list(arguments))
        name, *arguments = rest
        command = command.commands[name]
    values, left, _ = command.make_parser(click.Context(command, info_name=name)).parse_args(list(arguments))
    assert not left
    required = [argument.name for argument in command.params if isinstance(argument, click.Argument) and argument.required]
    assert all(values.get(argument) for argument in required)


def test_there_are_examples():
    assert len(EXAMPLES) > 30


def commands(group=main, name="connectctl"):
    for key, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {key}")
        else:
            yield f"{name} {key}", command


@pytest.mark.parametrize("name, command", list(commands()))
def test_every_command_has_words_and_speaks_json(name, command):
    assert command.help
    assert any("--json" in parameter.opts for parameter in command.params), name
    assert all(parameter.help for parameter in command.params if isinstance(parameter, click.Option)), name
