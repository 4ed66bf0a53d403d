"""The snippets of README and pages: configurations that the worker takes, commands that connectctl has, Python and SQL that parse.

Whole pages that run as written are in test_docs.py and test_pages.py. A fenced block names its language; `text` is output, or the
configuration of another product. Blocks of a shell are not run where they need Docker, systemd or root: their commands are looked up.
"""

import doctest
import pathlib
import re
import shlex

import pytest

from standalone import properties
from standalone.cli import ctl
from standalone.plugins import Plugins
from standalone.runtime.configuration.connector_config import ConnectorConfig
from standalone.runtime.configuration.worker_config import WorkerConfig
from standalone.streams.sql import parser

ROOT = pathlib.Path(__file__).parent.parent
GENERATED = {"configuration.md", "client-settings.md", "connectctl.md", "metrics.md", "plugins.md", "rest-api.md"}  # scripts/docs makes them of the code
PAGES = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED)]
LANGUAGES = {"python", "properties", "sql", "sh", "ini", "yaml", "text"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OWN = "LineCounter"  # the connector that docs/tutorial-connector.md writes: test_docs.py runs it
COMMAND = re.compile(r"^\s*(?:\$ )?(?:docker exec (?:-i )?\w+ |\S*/bin/)?(connectctl [^\n`]*)$", re.MULTILINE)


def blocks(language):
    """[(page, number of the block, text)]"""
    return [
        pytest.param(text, id=f"{page.name} {number}")
        for page in PAGES
        for number, (found, text) in enumerate(FENCE.findall(page.read_text()), 1)
        if found == language and OWN not in text
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_names_its_language(page):
    assert {language for language, _ in FENCE.findall(page.read_text())} <= LANGUAGES


@pytest.mark.parametrize("text", blocks("properties"))
def test_a_configuration_is_one_that_the_worker_takes(tmp_path, text):
    props = properties.parse(text)
    samples = properties.load(ROOT / "config" / "connect-standalone.properties")
    if "connector.class" not in props:
        kept = {key: value for key, value in samples.items() if not any(key.startswith(f"{each}.") for each in props)}  # no keys of another converter
        assert WorkerConfig.of({**kept, **props}).warnings == []
        return
    worker = WorkerConfig.of(samples)
    found = ConnectorConfig.of({"name": "snippet", **props}, Plugins([]), worker)
    assert found.warnings == []


@pytest.mark.parametrize("text", blocks("python"))
def test_python_compiles(text):
    if text.startswith(">>> "):
        text = doctest.script_from_examples(text)  # tests of their pages run these
    compile(text, "snippet", "exec")


@pytest.mark.parametrize("text", blocks("sql"))
def test_sql_parses(text):
    assert parser.read(text)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_yaml_is_read(text):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert isinstance(yaml.safe_load(text), dict)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_its_commands_are_connectctls(page):
    for command in COMMAND.findall(page.read_text()):
        words = shlex.split(command.split(" | ")[0].split(" <<")[0].replace("…", "x"), comments=True)[1:]
        if words:
            parse(ctl.main, words)


def parse(command, words):
    """As click reads the words, without a call; an error names an option or a command that there is not."""
    with command.context_class(command, info_name="connectctl") as context:
        parser = command.make_parser(context)
        if hasattr(command, "commands"):
            parser.allow_interspersed_args = False
        _, rest, _ = parser.parse_args(args=list(words))
        if hasattr(command, "commands") and rest:
            assert rest[0] in command.commands, f"connectctl has no {rest[0]!r}"
            parse(command.commands[rest[0]], rest[1:])


def test_a_command_that_there_is_not_is_seen():
    with pytest.raises(AssertionError, match="explode"):
        parse(ctl.main, ["explode"])
    with pytest.raises(Exception, match="--explode"):
        parse(ctl.main, ["list", "--explode"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_repository_that_it_names_are_there(page):
    for name in re.findall(r"(?<![\w/])((?:config|scripts|examples)/[\w./-]*\w)", page.read_text()):
        assert (ROOT / name).exists(), name
