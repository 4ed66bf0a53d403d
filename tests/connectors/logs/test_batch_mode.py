"""on.eof=exit in a whole worker: it ends with 0 after the last of its sources, with all that they read published and noted."""

import pytest

from tests.runtime.local import wait_for

SMALL, LARGE = ["a", "b", "unfinished"], [f"line {number}" for number in range(50_000)]


@pytest.fixture
def sources(command):
    """Three sources that end, one of which drops all that it reads, and one that does not."""
    (command.folder / "small.log").write_text("\n".join(SMALL))
    (command.folder / "large.log").write_text("".join(f"{line}\n" for line in LARGE))
    (command.folder / "in.txt").write_text("")
    ends = {"connector.class": "LogSource", "on.eof": "exit", "topic": "t"}
    drops = {"transforms": "drop", "transforms.drop.type": "Filter"}
    return [
        command.connector("small.properties", **ends, name="small", paths=command.folder / "small.log"),
        command.connector("large.properties", **ends, name="large", paths=command.folder / "large.log"),
        command.connector("dropped.properties", **ends, **drops, name="dropped", paths=command.folder / "*.log"),
        command.connector("follows.properties", name="follows"),
    ]


@pytest.mark.parametrize("exactly_once", ["disabled", "enabled"])
def test_the_worker_ends_behind_the_last_of_its_sources(exactly_once, command, sources):
    worker = command.worker(exactly__once__source__support=exactly_once, embedded__log__dir=str(command.folder / "log.d"))
    code, output = command.run(worker, *sources)
    assert code == 0, output
    assert "All sources have finished" in output
    with (command.folder / "large.log").open("a") as file:
        file.write("more\n")
    assert command.run(worker, *sources)[0] == 0
    sink = {"connector.class": "FileStreamSink", "topics": "t", "file": "out.txt", "consumer.override.isolation.level": "read_committed"}
    command.start(worker, command.connector("sink.properties", **{**sink, "name": "sink", "topic": ""}))
    out, expected = command.folder / "out.txt", sorted([*SMALL, *LARGE, "more"])
    wait_for(lambda: out.exists() and len(out.read_text().splitlines()) >= len(expected))
    assert sorted(out.read_text().splitlines()) == expected


def test_a_source_that_fails_is_not_at_its_end(command, sources):
    refused = command.connector("refused.properties", **{
        "name": "refused", "connector.class": "LogSource", "on.eof": "exit", "topic": "t", "paths": command.folder / "small.log", "max.line.bytes": 3,
        "long.lines": "fail",
    })  # fmt: skip
    code, output = command.run(command.worker(task__failure__exit="true"), *sources, refused)
    assert code == 4, output
