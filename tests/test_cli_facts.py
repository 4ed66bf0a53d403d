"""Every fact of golden/cli.json, recorded of Java's worker: its command line, its offsets file, its file connectors.

Each is observed of our command, in the recorded shape. It holds, or OURS says what is seen instead and docs/differences.md, which names
the fact, says why. Left out are classes of Java's exceptions, which are hints; waits are as short as what is waited for allows.
"""

import json
import os
import pathlib
import re
import signal
import socket
import time
import urllib.request
import uuid

import pytest
from confluent_kafka import Consumer, TopicPartition

from standalone.log.client_config import AdminConfig
from tests.command import GOOD
from tests.lab import Lab, until
from tests.runtime.local import wait_for
from tests.servers.kafka_broker import free_port
from tests.suite.patience import PATIENCE_SECONDS

ROOT = pathlib.Path(__file__).parent.parent
GOLDEN = {fact["case"]: fact["observed"] for fact in json.loads((ROOT / "tests/golden/cli.json").read_text())}
DIFFERENCES = (ROOT / "docs/differences.md").read_text()
ON_KAFKA = "broker-goes-away", "sigterm-while-broker-down"
BY_SIGNAL = {143: 0, 130: 0}  # one line of the page for all facts that end by a signal

# The parts of a fact that ours shows otherwise.
OURS = {
    "help-flag": {"exit_code": 0},
    "no-bootstrap-servers": {"process": "stays up", "exit_code": 0},
    "broker-down-at-start": {"seconds_until_exit_about": 60},
    "sigterm": {"offsets_file_exists_before_sigterm": True, "offsets_file_bytes_after": True},  # as many as a journal has
    "sigkill": {"topic_values": list("12345")},
    "offsets-file-deleted": {"topic_values": list("1234512345")},
    "offsets-file-corrupt": {"exit_code": 2},
    "source-truncated": {
        "after_shorter": ["aaaa", "bbbb", "c"],
        "offsets_after_shorter": [{"position": 2}],
        "after_longer": ["aaaa", "bbbb", "c", "xxxxxxx", "dddd"],
    },
    "source-replaced-new-inode": dict.fromkeys(["after_replace", "after_restart"], ["old1", "old2", "new1", "new2", "new3"]),
    "source-file-deleted": {"topic_values": ["x", "y", "z"]},
    "source-bytes": {"values": ["ünï ✓", "bad \udcff byte", "nul \x00 byte"], "offsets": [{"position": 32}]},
    "source-batch-size": {"count_first": 25, "offsets_first": [{"position": 50}], "count_after_append": 26},
    "source-file-is-directory": {"status": {"connector": "RUNNING", "tasks": ["FAILED"]}},
    "source-multibyte-text": {
        "offset": {"position": 17},
        "after_resume": ["ünï ✓", "second"],
        "after_append": ["ünï ✓", "second", "third"],
    },
}

OBSERVERS = {}  # fact -> what observes it, and perhaps others with it: observer(lab, want) -> {fact: observed}


def want(fact):
    """What ours is to show."""
    shown = {key: BY_SIGNAL.get(value, value) if key.startswith("exit_code") else value for key, value in GOLDEN[fact].items()}
    return {**{key: value for key, value in shown.items() if key != "exception_classes_logged"}, **OURS.get(fact, {})}


def test_every_fact_is_observed():
    assert OBSERVERS.keys() == GOLDEN.keys()


@pytest.mark.parametrize("fact", [fact for fact in GOLDEN if fact not in ON_KAFKA])
def test_fact(fact, seen):
    assert seen(fact) == want(fact)


@pytest.mark.kafka
@pytest.mark.parametrize("fact", ON_KAFKA)
def test_fact_of_a_broker_that_goes_away(fact, seen, outage_broker):
    assert seen(fact) == want(fact)


@pytest.mark.parametrize("fact", OURS)
def test_a_fact_that_ours_shows_otherwise_is_among_the_documented_differences(fact):
    assert any(GOLDEN[fact].get(key) != value for key, value in OURS[fact].items()), "it is not a difference"
    assert f"`{fact}`" in DIFFERENCES


def test_no_fact_that_holds_is_among_them():
    named = set(re.findall(r"`([\w-]+)`", DIFFERENCES)) & GOLDEN.keys()
    assert named == OURS.keys()
    assert "exit codes 143 and 130 after SIGTERM and SIGINT" in DIFFERENCES


# --- The workers ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def crowd(tmp_path_factory, forks):
    """The worker of all facts of file connectors that need none of their own."""
    lab = Lab(tmp_path_factory.mktemp("crowd"), forks)
    yield lab.up()
    lab.close()


@pytest.fixture(scope="module")
def seen(tmp_path_factory, forks, request):
    """seen(fact); what was observed with another fact is not observed again."""
    found = {}

    def see(fact):
        if fact not in found:
            observer, own = OBSERVERS[fact]
            lab = Lab(tmp_path_factory.mktemp("lab"), forks) if own else request.getfixturevalue("crowd")
            if fact in ON_KAFKA:
                lab.broker = request.getfixturevalue("_outage_broker")
            try:
                found.update(observer(lab))
            finally:
                if own:
                    lab.close()
        return found[fact]

    return see


def observes(*facts, own=False):
    """The function observes these facts; alone in its own worker, or of the one that all share."""

    def register(function):
        one = lambda lab: {facts[0]: function(lab)}  # noqa: E731
        OBSERVERS.update(dict.fromkeys(facts, (function if len(facts) > 1 else one, own)))
        return function

    return register


# --- The command line -------------------------------------------------------------------------------------------------
def ends(arguments):
    def observe(lab):
        code, output = lab.run(*arguments(lab), seconds=PATIENCE_SECONDS)
        return {"process": "exits", "exit_code": code, "usage_printed": "Usage:" in output}

    return observe


def files(*make):
    """The arguments: a good worker's file, and connectors' files."""
    return lambda c: [c.worker(), *(each(c) for each in make)]


def missing(name):
    return lambda c: str(c.folder / name)


def good(c):
    return c.connector("good.properties", name="good")


ENDS = {
    "no-arguments": lambda c: [],
    "help-flag": lambda c: ["--help"],
    "worker-file-missing": lambda c: [missing("no.properties")(c)],
    "worker-malformed-escape": lambda c: [c.file("w", "a=\\u12g4\n")],
    "no-key-converter": lambda c: [c.worker(without=["key.converter"])],
    "no-value-converter": lambda c: [c.worker(without=["value.converter"])],
    "no-offset-file-setting": lambda c: [c.worker(without=["offset.storage.file.filename"])],
    "bad-flush-interval": lambda c: [c.worker(offset__flush__interval__ms="soon")],
    "unknown-converter": lambda c: [c.worker(value__converter="no.such.Converter")],
    "bad-listeners": lambda c: [c.worker(listeners="nonsense")],
    "connector-file-missing": files(missing("no.properties"), good),
    "connector-file-without-name": files(lambda c: c.file("n.properties", "connector.class=FileStreamSource\ntopic=t\n"), good),
    "connector-unknown-class": files(lambda c: c.connector(connector__class="no.such.Klass"), good),
    "connector-invalid-config": files(lambda c: c.file("b.properties", "name=b\nconnector.class=FileStreamSource\n"), good),
    "good-then-bad": files(good, lambda c: c.connector(connector__class="no.such.Klass")),
    "same-name-twice": files(good, lambda c: c.connector(name="good")),
    "json-name-mismatch": files(lambda c: c.file("c.json", {"name": "jsn", "config": {**GOOD, "name": "other"}})),
    "json-malformed": files(lambda c: c.file("c.json", '{"name": "jsn", "config": {"na')),
    "json-flat-map-no-name": files(lambda c: c.file("c.json", {key: GOOD[key] for key in GOOD if key != "name"})),
}
for case, arguments in ENDS.items():
    observes(case, own=True)(ends(arguments))


@observes("port-in-use", own=True)
def port_in_use(lab):
    with socket.create_server(("127.0.0.1", lab.port)):
        return ends(files())(lab)


def stays_up(lab, connectors, *arguments, **props):
    """With these connectors, until SIGTERM."""
    lab.up(*arguments, **props)
    found = {"process": "stays up", "connectors": until(lab.statuses, connectors)}
    return {**found, "exit_code_on_sigterm": lab.stop(), "usage_printed": "Usage:" in lab.output()}


@observes("no-bootstrap-servers", own=True)
def no_bootstrap_servers(lab):
    lab.start(lab.worker(without=["bootstrap.servers"], embedded__log__listener=lab.bootstrap))
    lab.wait_up()
    return {"process": "stays up", "exit_code": lab.stop(), "usage_printed": "Usage:" in lab.output()}


@observes("worker-only", own=True)
def worker_only(lab):
    return stays_up(lab, {})


@observes("unknown-worker-key", "plugin-path-missing", own=True)
def odd_worker_keys(lab):
    found = stays_up(lab, {}, some__key="1", plugin__path=missing("plugins")(lab))
    return {"unknown-worker-key": found, "plugin-path-missing": found}


RUNNING = {"connector": "RUNNING", "tasks": ["RUNNING"]}


@observes("offset-file-folder-missing", own=True)
def offset_file_folder_missing(lab):
    offsets = missing("folder/connect.offsets")(lab)
    return stays_up(lab, {"ofm": RUNNING}, lab.connector(name="ofm"), offset__storage__file__filename=offsets)


def flat(name, **more):
    return {**GOOD, "name": name, **more}


def lines(name, **more):
    return "".join(f"{key.replace('__', '.')}={value}\n" for key, value in flat(name, **more).items())


def request(name, **more):
    return {"name": name, "config": GOOD | {"name": name}, **more}


# Fact, the connector's name there, the file's suffix, what is in it for a connector of some name.
FORMS = [
    ("two-good", "ok1", "properties", lines),
    ("two-good", "ok2", "properties", lines),
    ("connector-alias", "ok1", "properties", lines),
    ("connector-simple-name", "ok1", "properties", lambda name: lines(name, connector__class="FileStreamSourceConnector")),
    ("json-flat-map", "jsn", "json", flat),
    ("json-create-request", "jsn", "json", request),
    ("json-create-request-stopped", "jsn", "json", lambda name: request(name, initial_state="STOPPED")),
    ("json-create-request-paused", "jsn", "json", lambda name: request(name, initial_state="PAUSED")),
    ("json-in-properties-suffix", "jsn", "properties", request),
    ("properties-in-json-suffix", "jsn", "json", lines),
    ("json-unknown-field", "jsn", "json", lambda name: request(name, bogus=1)),
    ("json-flat-map-with-number", "jsn", "json", lambda name: flat(name, **{"tasks.max": 1})),
]


@observes(*dict.fromkeys(form[0] for form in FORMS), own=True)
def forms_of_a_connectors_file(lab):
    """All in one worker, for which each connector is named after its fact, too."""
    paths, wanted = [], {}
    for fact, name, suffix, content in FORMS:
        paths.append(lab.file(f"{fact}.{name}.{suffix}", content(f"{fact}.{name}")))
        wanted[f"{fact}.{name}"] = want(fact)["connectors"][name]
    worker = stays_up(lab, wanted, *paths)
    found = {}
    for fact, name, _, _ in FORMS:
        shown = found.setdefault(fact, {**worker, "connectors": {}})
        shown["connectors"][name] = worker["connectors"].get(f"{fact}.{name}")
    return found


# --- The broker -------------------------------------------------------------------------------------------------------
@observes("broker-down-at-start", own=True)
def broker_down_at_start(lab):
    """How long it waits is a setting, here four seconds; what is told is the default, if the setting was kept to."""
    began = time.monotonic()
    code, _ = lab.run(lab.worker(bootstrap__servers=f"127.0.0.1:{free_port()}", admin__default__api__timeout__ms="4000"))
    kept = 1.5 < time.monotonic() - began < 40
    return {"process": "exits", "exit_code": code, "seconds_until_exit_about": kept and AdminConfig.of({}).seconds("default.api.timeout.ms")}


@observes(*ON_KAFKA, own=True)
def broker_goes_away(lab):
    lab.bootstrap = lab.broker.bootstrap
    topic = f"ba-{uuid.uuid4().hex[:8]}"
    lab.up(bootstrap__servers=lab.bootstrap)
    out = lab.sink("ba-RUN", topics=topic)
    path = lab.source("ba", b"1\n2\n", topic=topic)
    wanted = want("broker-goes-away")
    found = {"file_before": until(lambda: read(out), wanted["file_before"])}
    wait_for(lambda: [entry["kafka_offset"] for entry in lab.offsets("ba-RUN")] == [2])
    lab.broker.shut_down()
    append(path, b"3\n")
    wait_for(lambda: re.search("Trying again|tried again", lab.output()))
    found["during"] = {
        "states": lab.statuses(),
        **{key: answer(lab, f"/{key.replace('root', '')}")[0] for key in ("health", "connectors", "root")},
        "file": read(out),
        "process": "still running" if lab.process.poll() is None else "ended",
    }
    lab.broker.restart()
    found["file_after"] = until(lambda: read(out), wanted["file_after"])
    append(path, b"4\n")
    found["file_after_another_line"] = until(lambda: read(out), wanted["file_after_another_line"])
    found["states_after"] = lab.statuses()
    lab.broker.kill()
    began = time.monotonic()
    code = lab.stop()
    took = time.monotonic() - began
    at_most = 5 if took < 25 else 5 * round(took / 5)  # tasks have five seconds to stop; a busy machine is slower, a wait for the broker takes longer
    return {"broker-goes-away": found, "sigterm-while-broker-down": {"exit_code": code, "seconds_rounded_to_5": at_most}}


def answer(lab, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{lab.port}{path}", timeout=PATIENCE_SECONDS) as response:
        return [response.status, json.load(response)]


def read(path):
    return path.read_text() if path.exists() else None


def append(path, content):
    with path.open("ab") as file:
        file.write(content)


# --- The offsets file -------------------------------------------------------------------------------------------------
@observes(
    "sigterm", "restart-resumes", "sigint", "sigkill", "offsets-file-deleted", "offsets-file-corrupt", "offsets-file-empty", own=True
)  # fmt: skip
def offsets_file(lab):
    """One after the other, upon what the one before has left."""
    found = {}
    path = lab.folder / "in.txt"
    stored = lab.folder / "connect.offsets"
    path.write_bytes(b"1\n2\n3\n")

    def up():
        lab.up(lab.connector(), offset__flush__interval__ms="600000")

    def values(fact, key="topic_values"):
        return until(lambda: lab.values("t"), want(fact)[key])

    up()
    found["sigterm"] = {"records_before": values("sigterm", "records_before"), "offsets_file_exists_before_sigterm": stored.exists()}
    began = time.monotonic()
    found["sigterm"]["exit_code"] = lab.stop()
    found["sigterm"]["seconds_below_10"] = time.monotonic() - began < 10
    found["sigterm"].update({"offsets_file_exists_after": stored.exists(), "offsets_file_bytes_after": stored.stat().st_size > 0})

    append(path, b"4\n")
    up()
    found["restart-resumes"] = {"topic_values": values("restart-resumes")}
    found["restart-resumes"]["exit_code"] = lab.stop()

    up()
    code = lab.stop(signal.SIGINT)
    up()
    found["sigint"] = {"exit_code": code, "topic_values": values("sigint")}
    append(path, b"5\n")
    wait_for(lambda: lab.values("t")[-1] == "5" and lab.offsets("ok1") == [{"position": 10}])
    killed = lab.stop(signal.SIGKILL)
    up()
    found["sigkill"] = {"exit_code": "killed" if killed == -signal.SIGKILL else killed, "topic_values": values("sigkill")}

    lab.stop()
    stored.unlink()
    up()
    found["offsets-file-deleted"] = {"topic_values": values("offsets-file-deleted")}
    lab.stop()
    stored.write_bytes(b"\x00\x01 no offsets \xff\n and more\n")
    code, _ = lab.run(lab.worker(), lab.connector())
    found["offsets-file-corrupt"] = {"process": "exits", "exit_code": code}
    stored.write_bytes(b"")
    up()
    found["offsets-file-empty"] = {"process": "stays up"}
    return found


# --- FileStreamSource -------------------------------------------------------------------------------------------------
def values(lab, fact, key):
    return until(lambda: lab.values(fact), want(fact)[key])


def offsets(lab, fact, key):
    return until(lambda: lab.offsets(fact), want(fact)[key])


def status(lab, fact, key="status"):
    return until(lambda: lab.status(fact), want(fact)[key])


# What the file holds, what is appended then, what is shown of each: as keys of the fact.
READ = {
    "source-append": (b"a\nb\n", b"c\n"),
    "source-no-trailing-newline": (b"full\npart", b"ial\n"),
    "source-cr-at-end": (b"a\nb\r", b"\nc\n"),
    "source-line-endings": (b"a\r\nb\rc\n\nd\n",),
    "source-bytes": ("ünï ✓\n".encode() + b"bad \xff byte\nnul \x00 byte\n",),
    "source-bom": (b"\xef\xbb\xbfx\n",),
}


def reads(fact, content, appended=None):
    def observe(lab):
        path = lab.source(fact, content)
        wanted, found = want(fact), {}
        for key in wanted:
            if key == "then":
                append(path, appended)
            found[key] = (offsets if key.startswith("offsets") else values)(lab, fact, key)
        return found

    return observe


for case, contents in READ.items():
    observes(case)(reads(case, *contents))


@observes("source-record-shape")
def source_record_shape(lab):
    lab.source("source-record-shape", b"a\n")
    (message,) = wait_for(lambda: lab.messages("source-record-shape"))
    return {"key": message.key(), "value": message.value().decode(), "partition": message.partition()}


@observes("source-truncated")
def source_truncated(lab):
    fact = "source-truncated"
    path = lab.source(fact, b"aaaa\nbbbb\n")
    found = {"first": values(lab, fact, "first")}
    path.write_bytes(b"c\n")
    found["after_shorter"] = values(lab, fact, "after_shorter")
    found["offsets_after_shorter"] = offsets(lab, fact, "offsets_after_shorter")
    append(path, b"xxxxxxx\ndddd\n")
    return {**found, "after_longer": values(lab, fact, "after_longer"), "status": status(lab, fact)}


@observes("source-replaced-new-inode")
def source_replaced_new_inode(lab):
    fact = "source-replaced-new-inode"
    path = lab.source(fact, b"old1\nold2\n")
    found = {"first": values(lab, fact, "first")}
    lab.file("replacement", "new1\nnew2\nnew3\n")
    (lab.folder / "replacement").rename(path)
    found["after_replace"] = values(lab, fact, "after_replace")
    found["status"] = status(lab, fact)
    lab.ask("POST", f"/connectors/{fact}/restart?includeTasks=true")
    wait_for(lambda: lab.status(fact) == RUNNING)
    return {**found, "after_restart": values(lab, fact, "after_restart")}


@observes("source-file-missing")
def source_file_missing(lab):
    path = lab.source("source-file-missing")
    found = {"status_while_missing": status(lab, "source-file-missing", "status_while_missing")}
    path.write_bytes(b"x\n")
    return {**found, "then": values(lab, "source-file-missing", "then")}


@observes("source-file-deleted")
def source_file_deleted(lab):
    fact = "source-file-deleted"
    path = lab.source(fact, b"x\n")
    wait_for(lambda: lab.values(fact))
    path.unlink()
    found = {"status_after_delete": status(lab, fact, "status_after_delete")}
    path.write_bytes(b"y\nz\n")
    return {**found, "topic_values": values(lab, fact, "topic_values")}


@observes("source-long-line")
def source_long_line(lab):
    lab.source("source-long-line", b"x" * 50_000 + b"\nshort\n")
    return {"lengths": until(lambda: [len(value) for value in lab.values("source-long-line")], [50_000, 5])}


@observes("source-line-larger-than-request")
def source_line_larger_than_request(lab):
    fact = "source-line-larger-than-request"
    lab.source(fact, b"x" * 2_000_000 + b"\nshort\n")
    found = {"status": status(lab, fact)}
    return {**found, "lengths": [len(value) for value in lab.values(fact)]}


@observes("source-batch-size")
def source_batch_size(lab):
    fact, wanted = "source-batch-size", want("source-batch-size")
    path = lab.source(fact, b"x\n" * 25, **{"batch.size": "10"})
    count = lambda key: until(lambda: len(lab.values(fact)), wanted[key])  # noqa: E731
    found = {"count_first": count("count_first"), "offsets_first": offsets(lab, fact, "offsets_first")}
    append(path, b"y\n")
    found["count_after_append"] = count("count_after_append")
    append(path, b"z\n")
    found["count_after_second_append"] = count("count_after_second_append")
    return {**found, "in_order": lab.values(fact) == ["x"] * 25 + ["y", "z"]}


@observes("source-empty-file")
def source_empty_file(lab):
    lab.source("source-empty-file", b"")
    return {"status": status(lab, "source-empty-file"), "offsets": offsets(lab, "source-empty-file", "offsets")}


@observes("source-file-is-directory")
def source_file_is_directory(lab):
    lab.source("source-file-is-directory", file=str(lab.folder))
    return {"status": status(lab, "source-file-is-directory")}


@observes("source-tasks-max-5")
def source_tasks_max_5(lab):
    lab.source("source-tasks-max-5", b"x\n", **{"tasks.max": "5"})
    found = {"topic_values": values(lab, "source-tasks-max-5", "topic_values")}
    return {**found, "tasks": len(lab.status("source-tasks-max-5")["tasks"])}


@observes("source-delete-and-create-again")
def source_delete_and_create_again(lab):
    fact = "source-delete-and-create-again"
    lab.source(fact, b"x\n")
    wait_for(lambda: lab.values(fact))
    lab.ask("DELETE", f"/connectors/{fact}")
    path = lab.source(fact)
    append(path, b"y\n")  # what it read a second time would come before this
    wait_for(lambda: "y" in lab.values(fact))
    return {"topic_values": lab.values(fact)[:-1]}


@observes("source-other-name-same-file")
def source_other_name_same_file(lab):
    path = lab.source("same-file", b"x\n")
    wait_for(lambda: lab.values("same-file"))
    lab.source("source-other-name-same-file", file=str(path))
    return {"topic_values": values(lab, "source-other-name-same-file", "topic_values")}


@observes("source-multibyte-text")
def source_multibyte_text(lab):
    fact = "source-multibyte-text"
    path = lab.source(fact, "ünï ✓\nsecond\n".encode())
    content = path.read_bytes()
    found = {"file_bytes": len(content), "file_characters": len(content.decode()), "first": values(lab, fact, "first")}
    (found["offset"],) = until(lambda: lab.offsets(fact), [want(fact)["offset"]])
    lab.ask("PUT", f"/connectors/{fact}/stop")
    wait_for(lambda: lab.status(fact) == {"connector": "STOPPED", "tasks": []})
    lab.ask("PUT", f"/connectors/{fact}/resume")
    wait_for(lambda: lab.status(fact) == RUNNING)
    found["after_resume"] = values(lab, fact, "after_resume")
    append(path, b"third\n")
    return {**found, "after_append": values(lab, fact, "after_append")}


@observes("source-stdin", "source-stdin-closed", "source-stdin-sigterm", own=True)
def source_stdin(lab):
    reading, writing = os.pipe()
    with open(reading) as stdin, open(writing, "wb", 0) as typed:
        source = lab.file("sin.properties", "name=sin\nconnector.class=FileStreamSource\ntopic=source-stdin\n")
        lab.up(source, stdin=stdin)
        typed.write(b"typed one\ntyped two\npart")
        found = {"topic_values": values(lab, "source-stdin", "topic_values"), "states": lab.statuses()}
        found.update({"offsets": lab.get("/connectors/sin/offsets"), "tasks": len(lab.status("sin")["tasks"])})
    closed = {"topic_values": until(lambda: lab.values("source-stdin"), want("source-stdin-closed")["topic_values"]), "states": lab.statuses()}
    closed["process"] = "still running" if lab.process.poll() is None else "ended"
    return {"source-stdin": found, "source-stdin-closed": closed, "source-stdin-sigterm": {"exit_code": lab.stop()}}


# --- FileStreamSink ---------------------------------------------------------------------------------------------------
def content(path, fact, key="content"):
    return until(lambda: read(path), want(fact)[key])


@observes("sink-existing-file")
def sink_existing_file(lab):
    lab.file("sink-existing-file.out", "before\n")
    return {"content": content(lab.sink("sink-existing-file", ["a", "b"]), "sink-existing-file")}


@observes("sink-missing-folder")
def sink_missing_folder(lab):
    lab.sink("sink-missing-folder", ["a"], file=str(lab.folder / "no folder" / "out"))
    return {"status": status(lab, "sink-missing-folder"), "folder_created": (lab.folder / "no folder").exists()}


@observes("sink-stdout")
def sink_stdout(lab):
    lab.sink("sink-stdout", ["a line for standard output"], file=None)
    shown = until(lambda: "\na line for standard output\n" in lab.output(), True)
    return {"status": status(lab, "sink-stdout"), "line_on_stdout_of_worker": shown}


@observes("sink-file-renamed")
def sink_file_renamed(lab):
    path = lab.sink("sink-file-renamed", ["one"])
    wait_for(lambda: read(path) == "one\n")
    path.rename(renamed := lab.folder / "renamed")
    lab.send("sink-file-renamed", "two")
    found = {"renamed_file": content(renamed, "sink-file-renamed", "renamed_file")}
    return {**found, "original_path_exists": path.exists()}


@observes("sink-file-truncated")
def sink_file_truncated(lab):
    path = lab.sink("sink-file-truncated", ["one", "two"])
    wait_for(lambda: read(path) == "one\ntwo\n")
    os.truncate(path, 0)
    lab.send("sink-file-truncated", "three")
    return {"content": content(path, "sink-file-truncated")}


@observes("sink-odd-values", "sink-topics-regex")
def sink_odd_values(lab):
    path = lab.sink("sink-odd-values", ["with\nnewline", None, ""])
    found = {"content": content(path, "sink-odd-values")}
    lab.send("sink-odd-values-2", "a", "b")
    both = lab.sink("sink-topics-regex", topics=None, **{"topics.regex": "sink-odd-values(-2)?"})
    lines = until(lambda: sorted((read(both) or "").split("\n")), want("sink-topics-regex")["sorted_lines"])
    return {"sink-odd-values": found, "sink-topics-regex": {"sorted_lines": lines}}


@observes("sink-topic-absent")
def sink_topic_absent(lab):
    lab.sink("sink-topic-absent")
    return {"status": status(lab, "sink-topic-absent")}


@observes("sink-sigterm-commits", own=True)
def sink_sigterm_commits(lab):
    fact = "sink-sigterm-commits"
    path = lab.up().sink(fact, ["a"])
    wait_for(lambda: read(path) == "a\n")
    code = lab.stop()
    lab.up()
    consumer = Consumer({"bootstrap.servers": lab.bootstrap, "group.id": f"connect-{fact}"})
    committed = [[0, consumer.committed([TopicPartition(fact, 0)], PATIENCE_SECONDS)[0].offset]]
    consumer.close()
    return {"exit_code": code, "consumer_group": "connect-<connector name>", "committed": committed}


# --- The worker, while tasks fail -------------------------------------------------------------------------------------
@observes("worker-during-failures", "sigterm-with-failed-tasks", own=True)
def worker_during_failures(lab):
    lab.up().sink("fails", ["a"], file=str(lab.folder / "no folder" / "out"))
    wait_for(lambda: lab.status("fails")["tasks"] == ["FAILED"])
    return {"worker-during-failures": {"health": answer(lab, "/health")}, "sigterm-with-failed-tasks": {"exit_code": lab.stop()}}
