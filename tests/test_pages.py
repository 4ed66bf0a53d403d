"""The pages of docs/: the tutorials' commands run as written, generated examples are so, quoted messages are the code's, the site builds."""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys

import pytest

from scripts.doclib import plugins, rest
from standalone import SourceRecord
from standalone.testing import apply_transforms
from tests.runtime.local import wait_for
from tests.servers.kafka_broker import free_port

ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "docs"
COMMANDS = pathlib.Path(sys.executable).parent


# --- The tutorials --------------------------------------------------------------------------------------------------


def steps(page):
    """[(command, the lines that it prints)] of what is behind "$ " in a page."""
    found = []
    for block in re.findall(r"(?:^    .*\n)+", (DOCS / page).read_text(), re.MULTILINE):
        for line in (line[4:].rstrip() for line in block.splitlines()):
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found:
                found[-1][1].append(line)
    return found


@pytest.mark.parametrize("page", ["tutorial-first-pipeline.md", "tutorial-database-to-lake.md", "tutorial-sql.md"])
def test_a_tutorial_runs_as_written(tmp_path, page):
    rest_port, log_port, worker = free_port(), free_port(), None
    environment = {
        **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
        **{"PATH": f"{COMMANDS}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "CONNECT_URL": f"http://127.0.0.1:{rest_port}"},
    }
    folder = tmp_path

    def run(command):
        return subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)

    try:
        for command, printed in steps(page):
            if command.startswith("cd "):
                folder = folder / command[3:]
            elif command.startswith("connect-standalone"):
                own = folder / "connect-standalone.properties"
                own.write_text(f"{own.read_text()}\nlisteners=http://127.0.0.1:{rest_port}\nembedded.log.listener=127.0.0.1:{log_port}\n")
                worker = subprocess.Popen(shlex.split(command), cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                wait_for(lambda: worker.poll() is not None or run("connectctl about").stdout.count("health: healthy"), 60)
            elif printed:
                # A pipeline takes its time: what is printed is what it comes to.
                last = []
                wait_for(lambda: last.__setitem__(slice(None), run(command).stdout.rstrip("\n").split("\n")) or last == printed, what=f"{command}: {printed}")
            else:
                done = run(command)
                assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        if worker is not None and worker.poll() is None:
            worker.kill()
            worker.wait()


# --- Generated pages -----------------------------------------------------------------------------------------------

EXAMPLES = [
    pytest.param(plugin, settings, before, after, id=f"{plugin.__name__} {' '.join(settings.values())}")
    for kind, target in plugins.targets()
    if kind == "transform"
    for plugin in [plugins.load(target)]
    for settings, before, after in plugins.examples(plugin)
    if plugins.is_json(before) and plugins.is_json(after)
]


@pytest.mark.parametrize("plugin, settings, before, after", EXAMPLES)
def test_a_transforms_example_is_so(plugin, settings, before, after):
    config = {"transforms": "t", "transforms.t.type": f"{plugin.__name__}$Value", **{f"transforms.t.{key}": value for key, value in settings.items()}}
    assert apply_transforms(config, SourceRecord("topic", json.loads(before))).value == json.loads(after)


def test_there_are_examples():
    assert len(EXAMPLES) >= 12
    assert {plugin.__name__ for plugin in (plugins.load(target) for kind, target in plugins.targets() if kind == "transform") if not plugins.examples(plugin)} <= {"Filter", "Sql"}


def test_every_request_has_what_it_needs():
    for path, method, filled, body in rest.requests():
        assert "{" not in filled, path
        needs_body = "requestBody" in rest.document()["paths"][path][method.lower()]
        assert (body is not None) == needs_body, f"{method} {path}"
        assert body is None or json.loads(body)


def test_links_to_a_heading_lead_to_one():
    for page in DOCS.glob("*.md"):
        for target, anchor in re.findall(r"\]\(([\w.-]+\.md)#([^)]+)\)", page.read_text()):
            headings = re.findall(r"^#+ (.*)$", (page.parent / target).read_text(), re.MULTILINE)
            assert anchor in {plugins.anchor(heading.replace("`", "")) for heading in headings}, f"{page.name}: {target}#{anchor}"


# --- Quoted messages -----------------------------------------------------------------------------------------------


def test_messages_that_troubleshooting_quotes_are_the_codes():
    code = "\n".join(path.read_text() for folder in ("standalone", "connectors") for path in (ROOT / folder).rglob("*.py"))
    quoted = re.findall(r"^> (.*)$", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)
    assert len(quoted) > 10
    for message in quoted:
        for piece in re.split(r"…|127\.0\.0\.1:\d+|Address already in use|embedded\.log\.(?:listener|dir): ", message):
            assert piece.strip(" .'") in code, f"no message has {piece!r}"


# --- The site ------------------------------------------------------------------------------------------------------


def test_the_site_builds_without_a_warning_and_holds_every_page(tmp_path):
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", ROOT / "scripts" / "site" / "mkdocs.yml", "--site-dir", tmp_path / "site"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr  # --strict: a warning is a failure
    for page in DOCS.glob("*.md"):
        assert page.name == "pull_request_template.md" or (tmp_path / "site" / page.with_suffix(".html").name).exists(), page.name
    text = (tmp_path / "site" / "index.html").read_text()
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//(?!localhost)[^\"]*\.(?:js|css|woff2?)", text), "nothing is loaded from elsewhere"
    assert "Unknown magic byte" in (tmp_path / "site" / "search" / "search_index.json").read_text()
