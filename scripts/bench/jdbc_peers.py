"""What JDBC's bench compares with: bare COPY, psycopg with confluent-kafka, Debezium's JDBC sink, and rows by PyMySQL."""

import base64
import contextlib
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from standalone.testing import wait_for  # noqa: E402
from tests.servers import java_connect  # noqa: E402
from tests.servers.server import CACHE  # noqa: E402

JSON = "org.apache.kafka.connect.json.JsonConverter"
PATIENCE_SECONDS = 600
FETCHED_ROWS = 20_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

# --- COPY ------------------------------------------------------------------------------------------------------------


def copy_out(connection):
    """All rows as CSV in memory, as psycopg reads them."""
    with connection.cursor() as cursor, cursor.copy("COPY items TO STDOUT (FORMAT csv)") as copy:
        return b"".join(copy)


def copy_in(connection, table, data):
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
        copy.write(data)


def merge(connection, table, data):
    """An upsert without a connector: COPY into a temporary table, then one INSERT ... ON CONFLICT DO UPDATE."""
    with connection.transaction():
        connection.execute(f"CREATE TEMP TABLE stage ON COMMIT DROP AS SELECT * FROM {table} WITH NO DATA")
        copy_in(connection, "stage", data)
        names = [column.name for column in connection.execute("SELECT * FROM stage").description]
        sets = ", ".join(f"{name} = EXCLUDED.{name}" for name in names if name != "id")
        connection.execute(f"INSERT INTO {table} SELECT * FROM stage ON CONFLICT (id) DO UPDATE SET {sets}")


# --- psycopg and confluent-kafka ---------------------------------------------------------------------------------------


def first_message(bootstrap, topic):
    import confluent_kafka

    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        message = consumer.poll(PATIENCE_SECONDS)
        assert message is not None and message.error() is None, message and message.error()
        return message.value()
    finally:
        consumer.close()


def produce_rows(connection, bootstrap, topic, opening, rows, compression):
    """Read rows by a server-side cursor and produce the messages that JdbcSource makes of them. `opening` is their text before the payload,
    which is encoded once. Returns the first message."""
    import confluent_kafka

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 1_000_000, "compression.type": compression})
    first = None
    with connection.transaction(), connection.cursor(name="rows") as cursor:
        cursor.itersize = FETCHED_ROWS
        cursor.execute("SELECT * FROM items ORDER BY id LIMIT %s", [rows])
        names = [column.name for column in cursor.description]
        for row in cursor:
            payload = {name: _json_value(value) for name, value in zip(names, row)}
            message = opening + json.dumps(payload, separators=(",", ":")).encode() + b"}"
            first = first or message
            while True:
                try:
                    producer.produce(topic, message)
                    break
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)
    assert producer.flush(PATIENCE_SECONDS) == 0
    return first


def _json_value(value):
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.date):
        return value.toordinal() - EPOCH.toordinal()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if value is None or isinstance(value, (str, int, float)):
        return value
    unscaled = int(value.scaleb(2))  # numeric(12,2)
    return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()


# --- PyMySQL -----------------------------------------------------------------------------------------------------------


def mysql_rows(connection):
    """Read all rows by an unbuffered cursor; returns their number."""
    import pymysql

    with connection.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute("SELECT * FROM items ORDER BY id")
        count = 0
        while found := cursor.fetchmany(FETCHED_ROWS):
            count += len(found)
        return count


# --- Debezium ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def debezium(server, broker, table, mode):
    """Java Connect with Debezium's sink that writes topic `items` to the table; gives a function that ends the bench if the sink failed."""
    sink = {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector", "topics": "items", "tasks.max": "1", "collection.name.format": table,
        "connection.url": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres", "connection.username": "postgres", "connection.password": "any",
        "insert.mode": mode, "primary.key.mode": "record_value", "primary.key.fields": "id", "schema.evolution": "none", "batch.size": "5000",
        "consumer.override.auto.offset.reset": "earliest", "consumer.override.max.poll.records": "5000",
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-debezium-") as folder:
        worker = {
            "bootstrap.servers": broker.bootstrap, "offset.storage.file.filename": f"{folder}/offsets", "plugin.path": debezium_jars().parent,
            "key.converter": JSON, "value.converter": JSON,
        }  # fmt: skip
        java_connect.JAVA_OPTIONS[:] = ["-Xms512m", "-Xmx2g"]  # as on a server; tests set less
        with java_connect.JavaConnect(worker, [], folder) as connect:
            address = f"http://127.0.0.1:{connect.port}/connectors"
            wait_for(lambda: _rest(address) is not None or time.sleep(0.1), PATIENCE_SECONDS, "Java Connect to start")
            _rest(f"{address}/peer/config", sink)
            yield lambda: _check(address)


def _check(address):
    for task in _rest(f"{address}/peer/status")["tasks"]:
        if task["state"] == "FAILED":
            sys.exit(f"Debezium's sink failed: {task['trace'][:2000]}")


def _rest(url, body=None):
    """The response of Java Connect's REST API; None if it does not run."""
    method, data = ("GET", None) if body is None else ("PUT", json.dumps(body).encode())
    try:
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())
    except OSError:
        return None


def debezium_jars():
    """The folder with the sink's jars, from Maven; without Jackson's, which Java Connect has."""
    libs = CACHE / "bench-debezium" / "libs"
    if not libs.is_dir():
        part = libs.with_suffix(".part")
        pom = ROOT / "scripts" / "bench" / "debezium-pom.xml"
        subprocess.run(["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={part}"], check=True)
        for jar in part.glob("jackson-*.jar"):
            jar.unlink()
        part.rename(libs)
    return libs
