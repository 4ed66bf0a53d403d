#!/usr/bin/env python3
"""Which ways of rotation a follower of files comes through: LogSource and FileStreamSource beside rsyslog's imfile, Java's FileStreamSource
and the OpenTelemetry Collector's filelog receiver, each in a process of its own.

    .venv/bin/python scripts/bench/logs_peers.py [--only rsyslog LogSource] [--cases copytruncate] [--at-once 3] [--repeats 3] [--page docs/logs.md]

The cases are those of tests/connectors/rotation_cases.py, in real time. Each program is set up as its manual says for rotated logs. It gets
three seconds more whenever no line comes any more, a minute where it was just started. Needs Java 17 and Maven for the broker and Java's
Connect; rsyslog with omkafka takes part where it is installed, the Collector where Go is, which builds it once (some minutes) with nothing but
that receiver. Prints a Markdown table: of several repeats the worst.
"""

import argparse
import concurrent.futures
import contextlib
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts" / "bench")]

from compare import JVM, write_properties  # noqa: E402

from tests.connectors.rotation_cases import CASES, Scene  # noqa: E402
from tests.servers.java_connect import connect_jars  # noqa: E402
from tests.servers.kafka_broker import KafkaBroker  # noqa: E402
from tests.servers.server import CACHE, Unavailable, free_port  # noqa: E402

QUIET_SECONDS = 3.0  # without a line, then none is expected any more
START_SECONDS = 60.0
MOMENT_SECONDS = 0.02
STRING = "org.apache.kafka.connect.storage.StringConverter"
COLLECTOR = "0.160.0"


# --- Programs --------------------------------------------------------------------------------------------------------


class Peer:
    """`command(folder, path, topic, bootstrap)` follows the log of that path and publishes it."""

    def __init__(self, name, command, output=None):
        self.name = name
        self.command = command
        self.output = output  # makes what its lines are read from; else it is the topic


def connect(command, connector, worker=()):
    def made(folder, path, topic, bootstrap):
        settings = {
            "bootstrap.servers": bootstrap, "key.converter": STRING, "value.converter": STRING,
            "offset.storage.file.filename": folder / "connect.offsets", "offset.flush.interval.ms": 1000,
            "listeners": f"http://127.0.0.1:{free_port()}", **dict(worker),
        }  # fmt: skip
        source = {"name": "peers", "tasks.max": 1, "topic": topic, **connector(path)}
        return [*command, write_properties(folder / "worker.properties", settings), write_properties(folder / "source.properties", source)]

    return made


def java():
    libs = connect_jars()
    plugin = next(libs.glob("connect-file-*.jar"))
    path = ":".join(str(jar) for jar in sorted(libs.glob("*.jar")) if jar != plugin)
    logging = f"-Dlog4j2.configurationFile={ROOT / 'tests/servers/log4j2.properties'}"
    command = ["java", *JVM, logging, "-cp", path, "org.apache.kafka.connect.cli.ConnectStandalone"]
    source = lambda path: {"connector.class": "FileStreamSource", "file": path}  # noqa: E731
    return Peer("Java FileStreamSource", connect(command, source, {"plugin.path": plugin, "plugin.discovery": "service_load"}))


def rsyslog():
    if not (shutil.which("rsyslogd") and glob.glob("/usr/lib/*/rsyslog/omkafka.so")):
        raise Unavailable("rsyslogd with omkafka is not installed (Debian: rsyslog-kafka)")

    def command(folder, path, topic, bootstrap):
        (folder / "rsyslog.conf").write_text(RSYSLOG.format(folder=folder, path=path, topic=topic, bootstrap=bootstrap))
        return ["rsyslogd", "-n", "-f", str(folder / "rsyslog.conf"), "-i", str(folder / "pid")]

    return Peer("rsyslog imfile", command)


RSYSLOG = """global(workDirectory="{folder}")
main_queue(queue.type="LinkedList" queue.size="100000" queue.workerThreads="1")
module(load="imfile" mode="inotify") module(load="omkafka")
template(name="raw" type="string" string="%msg%")
ruleset(name="ship") {{ action(type="omkafka" broker=["{bootstrap}"] topic="{topic}" template="raw" closeTimeout="5000") }}
input(type="imfile" file="{path}" tag="t" ruleset="ship" reopenOnTruncate="on" freshStartTail="off" persistStateInterval="1")
"""


def collector():
    binary = CACHE / f"otelcol-{COLLECTOR}" / "otelcol"
    if not binary.exists():
        if not shutil.which("go"):
            raise Unavailable("the OpenTelemetry Collector is built with Go, which is not installed")
        build_collector(binary)

    def command(folder, path, topic, bootstrap):
        (folder / "state").mkdir(exist_ok=True)
        (folder / "otelcol.yaml").write_text(COLLECTS.format(folder=folder, path=path))
        return [str(binary), "--config", str(folder / "otelcol.yaml")]

    return Peer("OpenTelemetry filelog", command, lambda folder: Printed(folder / "log"))


def build_collector(binary):
    folder = binary.parent
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "builder.yaml").write_text(BUILT.format(folder=folder, version=COLLECTOR))
    environment = {**os.environ, "GOBIN": str(folder)}
    for command in (
        ["go", "install", f"go.opentelemetry.io/collector/cmd/builder@v{COLLECTOR}"],
        [str(folder / "builder"), "--config", str(folder / "builder.yaml")],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"the OpenTelemetry Collector cannot be built: {(done.stdout + done.stderr)[-500:]}")


BUILT = """dist: {{name: otelcol, output_path: "{folder}"}}
receivers: [{{gomod: github.com/open-telemetry/opentelemetry-collector-contrib/receiver/filelogreceiver v{version}}}]
exporters: [{{gomod: go.opentelemetry.io/collector/exporter/debugexporter v{version}}}]
extensions: [{{gomod: github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage v{version}}}]
"""

# Rotated files are among those that are looked at: so its manual asks for where files are copied, or moved while it is down.
COLLECTS = """receivers:
  filelog:
    include: ["{folder}/logs/app*"]
    exclude: ["{folder}/logs/*.gz"]
    start_at: beginning
    poll_interval: 50ms
    storage: file_storage
exporters:
  debug: {{verbosity: detailed, use_internal_logger: false}}
extensions:
  file_storage: {{directory: "{folder}/state"}}
service:
  extensions: [file_storage]
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    logs: {{receivers: [filelog], exporters: [debug]}}
"""


def ours(name, connector):
    return lambda: Peer(name, connect([str(ROOT / "scripts" / "connect-standalone")], connector))


PEERS = {
    "LogSource": ours("LogSource", lambda path: {"connector.class": "LogSource", "paths": path}),
    "FileStreamSource": ours("FileStreamSource", lambda path: {"connector.class": "FileStreamSource", "file": path}),
    "rsyslog": rsyslog,
    "java": java,
    "otel": collector,
}


# --- What came -------------------------------------------------------------------------------------------------------


class Published:
    """The records of a topic."""

    def __init__(self, bootstrap, topic):
        from kafka import KafkaConsumer, TopicPartition

        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        self._consumer.assign([TopicPartition(topic, 0)])

    def more(self):
        records = self._consumer.poll(timeout_ms=100)
        return [record.value.decode() for each in records.values() for record in each]

    def close(self):
        self._consumer.close()


class Printed:
    """What the Collector's debug exporter has printed: a body of a record a line."""

    def __init__(self, path):
        self._path, self._at = path, 0

    def more(self):
        time.sleep(0.1)
        if not self._path.exists():
            return []
        with open(self._path, "rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        return [match[1].decode() for match in re.finditer(rb"^Body: Str\((.*)\)$", whole, re.MULTILINE)]

    def close(self):
        pass


# --- One case --------------------------------------------------------------------------------------------------------


class Running:
    """A program as the reader of a Scene."""

    def __init__(self, command, folder, output):
        self._command, self._folder, self._output = command, folder, output
        self._process = None
        self._is_fresh = False  # nothing has come since it was started
        self.came = []

    def start(self):
        self._is_fresh = True
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder)

    def stop(self, number=signal.SIGTERM):
        self._process.send_signal(number)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self):
        self.stop(signal.SIGKILL)

    def moment(self):
        time.sleep(MOMENT_SECONDS)

    def catch_up(self, count, quiet=QUIET_SECONDS):
        until = time.monotonic() + (START_SECONDS if self._is_fresh else quiet)
        while sum(not line.startswith("#") for line in self.came) < count and time.monotonic() < until:
            more = self._output.more()
            if more:
                self.came += more
                self._is_fresh = False
                until = time.monotonic() + quiet

    def wait_until_up(self):
        deadline = time.monotonic() + START_SECONDS
        while not self.came:
            self.came += self._output.more()
            self._is_fresh = not self.came
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"it does not start: {(self._folder / 'log').read_text(errors='replace')[-300:]}")

    def close(self):
        if self._process is not None and self._process.poll() is None:
            self.stop()
        self._output.close()


def verdict(peer, case, broker):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="peers-"))
    logs = folder / "logs"
    logs.mkdir()
    path, topic = logs / "app.log", folder.name.replace("_", "-")
    broker.create(topic)
    output = peer.output(folder) if peer.output else Published(broker.bootstrap, topic)
    running = Running(peer.command(folder, path, topic, broker.bootstrap), folder, output)
    scene = Scene(logs, running, real_time=True, **case.log)
    try:
        scene.log.append(b"# it reads\n")
        running.start()
        running.wait_until_up()
        case.act(scene)
        scene.catch_up()
        running.catch_up(len(scene.written) + 1, quiet=1.0)  # nothing may come twice
        found = scene.verdict(running.came)
    except (RuntimeError, OSError) as error:
        found = f"failed: {error}"
    finally:
        running.close()
    shutil.rmtree(folder, ignore_errors=True)
    return found


# --- All of it -------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--cases", default="", help="a part of the names of cases")
    parser.add_argument("--page", type=pathlib.Path, help="a page of the documentation that the table is put into, such as docs/logs.md")
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=1)
    asked = parser.parse_args()
    peers = []
    for name in asked.only:
        try:
            peers.append(PEERS[name]())
        except Unavailable as reason:
            print(f"left out: {reason}", file=sys.stderr)
    cases = [case for case in CASES if asked.cases in f"{case.family}: {case.name}"]
    results = {}
    with KafkaBroker() as started, contextlib.ExitStack() as at_end:
        broker = Topics(started.bootstrap)
        pool = at_end.enter_context(concurrent.futures.ThreadPoolExecutor(asked.at_once))
        running = {
            pool.submit(verdict, peer, case, broker): (peer, case) for case in cases for peer in peers for _ in range(asked.repeats)
        }
        for done in concurrent.futures.as_completed(running):
            peer, case = running[done]
            results.setdefault((peer.name, case), []).append(done.result())
            print(f"{case.family}: {case.name}: {peer.name}: {done.result() or 'all'}", file=sys.stderr, flush=True)
    found = table([peer.name for peer in peers], cases, results)
    print(found)
    if asked.page:
        asked.page.write_text(with_section(asked.page.read_text(), found))


class Topics:
    def __init__(self, bootstrap):
        from kafka.admin import KafkaAdminClient

        self.bootstrap = bootstrap
        self._new = lambda: KafkaAdminClient(bootstrap_servers=bootstrap)

    def create(self, topic):
        from kafka.admin import NewTopic

        admin = self._new()
        try:
            admin.create_topics([NewTopic(topic, 1, 1)])
        finally:
            admin.close()


def table(names, cases, results):
    rows = [f"| | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    passed = {name: 0 for name in names}
    for case in cases:
        cells = []
        for name in names:
            worst = max(results[name, case], key=len)
            passed[name] += not worst
            cells.append(worst or "all")
        rows.append(f"| {case.family}: {case.name} | {' | '.join(cells)} |")
    rows.append(f"| of {len(cases)} | {' | '.join(str(passed[name]) for name in names)} |")
    return "\n".join(rows)


HEADING = "## Beside other programs"
SECTION = f"""{HEADING}

What becomes of the lines of one log that is rotated in the ways by which OpenTelemetry's and Vector's own tests judge a follower of files, and in
those that such programs are known to get wrong. `all`: each line came once, and in order; a line that comes again after `kill -9` is none too many.
`scripts/bench/logs_peers.py` has measured it, each program in a process of its own and set up as its manual says; of repeats the worst counts.

"""


def with_section(page, found):
    """The page with this table in its section, which goes before the one about syslog where there is none yet."""
    begin = page.find(HEADING)
    if begin < 0:
        begin = end = page.index("## Syslog")
    else:
        end = page.index("\n## ", begin) + 1
    return f"{page[:begin]}{SECTION}{found}\n\n{page[end:]}"


if __name__ == "__main__":
    main()
