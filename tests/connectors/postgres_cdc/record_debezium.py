"""Writes tests/golden/debezium.json.xz again: what Debezium's own connector, in the genuine Connect, writes of the history in history.py.

    python tests/connectors/postgres_cdc/record_debezium.py        needs Java, Maven and PostgreSQL; takes some three minutes
"""

import contextlib
import json
import lzma
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from standalone.local_worker import read_all  # noqa: E402
from standalone.testing import LocalWorker, wait_for  # noqa: E402
from tests.connectors.postgres_cdc import history, test_cdc_as_debezium  # noqa: E402
from tests.servers.java_connect import JavaConnect  # noqa: E402
from tests.servers.postgresql import PostgreSql  # noqa: E402

DEBEZIUM = "io.debezium:debezium-connector-postgres:3.2.0.Final"
OF_CONNECT = ("jackson-", "slf4j-")  # jars that Connect brings itself
SETTLE_SECONDS = 4  # it reads columns as they are when it comes to a change: each is to be done before the next
JSON = "org.apache.kafka.connect.json.JsonConverter"


def main():
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        plugin = fetched(folder / "plugins" / "debezium")
        server = PostgreSql().start()
        stack.callback(server.stop)
        for statement in history.SETUP:
            run(server, [statement])
        worker = stack.enter_context(LocalWorker(folder / "log"))
        files = []
        for name in history.CONFIGS:
            files.append(folder / f"{name}.properties")
            files[-1].write_text("".join(f"{key}={value}\n" for key, value in history.config(name, server.port).items()))
        props = {
            "bootstrap.servers": worker.bootstrap, "key.converter": JSON, "value.converter": JSON, "offset.storage.file.filename": folder / "offsets",
            "plugin.path": plugin.parent,
        }  # fmt: skip
        with JavaConnect(props, files, folder):
            wait_for(lambda: run(server, ["SELECT count(*) FROM pg_replication_slots WHERE active"])[0][0] == len(files), 180)
            for transaction in history.CHANGES:
                run(server, transaction)
                time.sleep(SETTLE_SECONDS)
        written = told(worker.bootstrap)
    data = json.dumps(written, ensure_ascii=False, separators=(",", ":")).encode()
    (ROOT / "tests" / "golden" / "debezium.json.xz").write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def fetched(folder):
    pom = folder.parent.parent / "pom.xml"
    group, artifact, version = DEBEZIUM.split(":")
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version><dependencies><dependency>"
        f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency></dependencies></project>"
    )
    subprocess.run(["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={folder}"], check=True)
    for jar in folder.iterdir():
        if jar.name.startswith(OF_CONNECT):
            jar.unlink()
    return folder


def run(server, statements):
    import psycopg

    with psycopg.connect(host="127.0.0.1", port=server.port, user="postgres", dbname="postgres") as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def told(bootstrap):
    """{settings' name: {topic: records}}"""
    from kafka import KafkaAdminClient

    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    topics = sorted(client.list_topics())
    client.close()
    found = {}
    for topic in topics:
        name, _, rest = topic.partition(".")
        for record in read_all(bootstrap, topic):
            key, value = (None if part is None else json.loads(part) for part in (record.key, record.value))
            headers = [[each, text and text.decode()] for each, text in record.headers]
            made = test_cdc_as_debezium.lasting({"key": key, "value": value, "headers": headers})
            found.setdefault(name, {}).setdefault(rest, []).append(made)
    return found


if __name__ == "__main__":
    main()
