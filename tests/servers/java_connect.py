"""The genuine connect-standalone, for tests: its jars come from Maven, once, into a cache folder."""

import pathlib

from tests.servers.server import HERE, Server, free_port, jars, java
from tests.servers.server import JAVA_OPTIONS as QUICK_START

VERSION = "4.3.1"
JAVA_OPTIONS = ["-Xms128m", "-Xmx512m", *QUICK_START]


def connect_jars():
    return jars(f"connect-{VERSION}", HERE.parent.parent / "scripts" / "bench" / "pom.xml")


class JavaConnect(Server):
    """`with JavaConnect(worker_props, [connector_file, ...], folder):` runs it; the end of the block stops it as SIGTERM does."""

    name = "java-connect"

    def __init__(self, props, connectors, folder):
        super().__init__()
        self._folder = pathlib.Path(folder)
        self.port = free_port()
        self._props = {"listeners": f"http://127.0.0.1:{self.port}", "plugin.discovery": "only_scan", **props}
        self._connectors = connectors

    def start(self):
        worker = self._folder / "java-worker.properties"
        worker.write_text("".join(f"{key}={value}\n" for key, value in self._props.items()))
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        logging = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
        self._begin([java(), *JAVA_OPTIONS, logging, "-cp", f"{connect_jars()}/*", main, worker, *self._connectors])
        return self

    def stop(self):
        self.shut_down()  # the folder is the test's
