"""Runs the cases of failing records (golden/errors.json and similar) in a worker on a real broker.

A case with `setup.records` and `setup.connector` is run as it says: the records are produced, a file sink is created, and when its task
has failed or has committed all of them, what is asked for in `observed` is looked at. Three cases are described in words only; they
are found by their name. DIR and RUN stand for a folder and an id of this run, in what goes in and in what comes out.
"""

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.log.committed import group_offsets

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETTLE_SECONDS = 30
STAGES = ("KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER", "TRANSFORMATION", "TASK_PUT", "KAFKA_PRODUCE")
JSON = "org.apache.kafka.connect.json.JsonConverter"
EXTRACT = "org.apache.kafka.connect.transforms.ExtractField$Value"


def outcomes(cases, bootstrap, folder):
    """[{case, observed}] of them all, by one worker."""
    with Lab(bootstrap, pathlib.Path(folder)) as lab:
        return [{"case": case["case"], "observed": observed(lab, case)} for case in cases]


def observed(lab, case):
    named = {"failed-then-tolerant": _failed_then_tolerant, "source-transform-none": _source_fails, "source-transform-all": _source_fails}
    run = _sink_case if "connector" in case.get("setup", {}) else named[case["case"]]
    found = run(lab, case)
    text = json.dumps(found).replace(lab.run, "RUN").replace(json.dumps(str(lab.folder))[1:-1], "DIR")
    return json.loads(text)


class Lab:
    """A broker's clients and a worker of ours, as a process with its REST API."""

    def __init__(self, bootstrap, folder):
        self.bootstrap, self.folder = bootstrap, folder
        self.run = f"{os.getpid()}{time.time_ns() % 10**9}"
        self.log = folder / "worker.log"
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._rest = f"http://127.0.0.1:{probe.getsockname()[1]}"
        strings = "".join(f"{part}.converter=org.apache.kafka.connect.storage.StringConverter\n" for part in ("key", "value"))
        (self.folder / "worker.properties").write_text(
            f"bootstrap.servers={self.bootstrap}\nlisteners={self._rest}\n{strings}"
            f"offset.storage.file.filename={self.folder}/connect.offsets\noffset.flush.interval.ms=500\nspark.start=lazy\n"
        )
        with open(self.log, "wb") as log:
            command = [sys.executable, "-m", "standalone.cli.worker", str(self.folder / "worker.properties")]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)})
        wait_for(lambda: self._process.poll() is not None or self.up(), 60)
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(60)

    def up(self):
        try:
            return self.ask("GET", "/")[0] == 200
        except OSError:
            return False

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._rest + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def filled(self, text):
        return text.replace("RUN", self.run).replace("DIR", str(self.folder))

    def topic(self, name, records):
        for future in self._admin.create_topics([NewTopic(name, 1, 1)]).values():
            future.result(30)
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 50})
        for record in records:
            headers = [(name, None if value is None else value.encode()) for name, value in record.get("headers", [])]
            producer.produce(name, record.get("value"), record.get("key"), partition=0, headers=headers)
        producer.flush(30)

    def committed(self, connector):
        found = group_offsets(self.bootstrap, f"connect-{connector}")
        return sorted([partition, offset] for (_, partition), offset in found.items())

    def records(self, topic):
        """Every record of a topic's only partition; none where there is no such topic."""
        if topic not in self._admin.list_topics(timeout=30).topics:
            return []
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"look-{self.run}", "enable.auto.commit": False})
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
            consumer.assign([TopicPartition(topic, 0, low)])
            found, deadline = [], time.monotonic() + 30
            while len(found) < high - low and time.monotonic() < deadline:
                message = consumer.poll(1)
                if message is not None and not message.error():
                    found.append(message)
            return found
        finally:
            consumer.close()

    def status(self, connector):
        found = self.ask("GET", f"/connectors/{connector}/status")[1]
        tasks = found.get("tasks", [])
        shown = {"connector": found["connector"]["state"], "tasks": [task["state"] for task in tasks]}
        if tasks and "trace" in tasks[0]:
            shown["trace_exceptions"] = re.findall(r"^(?:Caused by: )?([\w.$]+)(?=: |$)", tasks[0]["trace"], re.MULTILINE)
        return shown

    def settled(self, connector, count=None):
        """Wait until its task has failed or, where a count is given, has committed so many records; its status."""

        def done():
            status = self.status(connector)
            return status["tasks"] and (
                "FAILED" in status["tasks"] or count is not None and sum(offset for _, offset in self.committed(connector)) >= count
            )

        with contextlib.suppress(TimeoutError):  # what is seen then is the outcome
            wait_for(done, SETTLE_SECONDS)
        return self.status(connector)

    def errors_logged(self, connector):
        """[(level, line)] of what the worker told of this connector's bad records."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [(re.search(r"\b(ERROR|WARN|INFO)\b", line)[1], line) for line in lines if "Error in stage" in line and f"'{connector}'" in line]


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)


def _sink_case(lab, case):
    config = {key: lab.filled(value) for key, value in case["setup"]["connector"].items()}
    name = f"{case['case']}-{lab.run}"
    records = case["setup"]["records"]
    for topic in config["topics"].split(","):
        lab.topic(topic.strip(), records)
    config = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", **config}
    created, _ = lab.ask("POST", "/connectors", {"name": name, "config": {"tasks.max": "1", **config}})
    found = {"create_status": created, "status": lab.settled(name, len(records)), "file": _text(config.get("file"))}
    found["committed_offsets"] = lab.committed(name)
    if letters := config.get("errors.deadletterqueue.topic.name"):
        found["dlq"] = [_letter(message) for message in lab.records(letters)]
    logged = lab.errors_logged(name)
    text = "\n".join(line for _, line in logged)
    found["error_log_lines"], found["error_log_level"] = len(logged), sorted({level for level, _ in logged})
    found["error_log_mentions"] = {
        "stage": any(stage in text for stage in STAGES),
        "class": config.get("value.converter", JSON) in text or EXTRACT in text,
        "topic": config["topics"] in text,
        **{part: part in text for part in ("partition", "offset", "timestamp")},
        "value_text": any(record["value"] in text for record in records if record.get("value")),
    }
    asked = case.get("observed") or found
    lab.ask("DELETE", f"/connectors/{name}")
    return {key: value for key, value in found.items() if key in asked}


def _letter(message):
    def text(data):
        return None if data is None else data.decode(errors="replace")

    return {"key": text(message.key()), "value": text(message.value()), "headers": [[name, text(value)] for name, value in message.headers() or ()]}


def _text(path):
    path = path and pathlib.Path(path)
    return path.read_text() if path and path.exists() else None


def _failed_then_tolerant(lab, case):
    names = [f"{case['case']}-{kind}-{lab.run}" for kind in ("bad", "other")]
    lab.topic(f"rest-{names[0]}", [{"value": "1"}, {"value": "not json"}, {"value": "3"}])
    lab.topic(f"rest-{names[1]}", [{"value": "x"}, {"value": "y"}])
    files = [lab.folder / name for name in names]
    plain = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
    for name, file, more in zip(names, files, (plain, {})):
        config = {"connector.class": "FileStreamSink", "file": str(file), "topics": f"rest-{name}", **more}
        lab.ask("POST", "/connectors", {"name": name, "config": config})
    found = {"status": lab.settled(names[0]), "file": _text(files[0])}
    lab.settled(names[1], 2)
    found["other_sink_file_after_failure"] = _text(files[1])
    lab.ask("PATCH", f"/connectors/{names[0]}/config", {"errors.tolerance": "all"})
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: lab.committed(names[0]) == [[0, 3]], SETTLE_SECONDS)
    found |= {"status_after_patch": lab.status(names[0]), "file_after_patch": _text(files[0]), "committed": lab.committed(names[0])}
    for name in names:
        lab.ask("DELETE", f"/connectors/{name}")
    return found


def _source_fails(lab, case):
    tolerance = case["case"].rpartition("-")[2]
    name = f"{case['case']}-{lab.run}"
    file = lab.folder / f"{name}.txt"
    file.write_text("one\ntwo\n")
    chain = {"transforms": "e", "transforms.e.type": EXTRACT, "transforms.e.field": "a", "errors.tolerance": tolerance, "errors.log.enable": "true"}
    config = {"connector.class": "FileStreamSource", "file": str(file), "topic": f"rest-{name}", **chain}
    lab.ask("POST", "/connectors", {"name": name, "config": config})
    with contextlib.suppress(TimeoutError):
        wait_for(lambda: len(lab.errors_logged(name)) >= (2 if tolerance == "all" else 1), SETTLE_SECONDS)
    status = lab.settled(name) if tolerance == "none" else lab.status(name)
    offsets = lab.ask("GET", f"/connectors/{name}/offsets")[1]["offsets"]
    values = [message.value().decode() for message in lab.records(f"rest-{name}")]
    lab.ask("DELETE", f"/connectors/{name}")
    return {"status": status, "topic_values": values, "offsets": offsets}


def alike(wanted, found):
    """Whether what was observed is what is wanted: strings in angle brackets stand for any wording."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return set(wanted) == set(found) and all(alike(wanted[key], found[key]) for key in wanted)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(alike, wanted, found))
    if isinstance(wanted, str) and (start := re.fullmatch(r"<(?:stack trace )?text(?: starting with (.*))?>", wanted)):
        return isinstance(found, str) and found.startswith(start[1] or "")
    return wanted == found and type(wanted) is type(found)
